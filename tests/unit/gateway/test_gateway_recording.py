"""What was recorded is given again, with no network and no key; what differs is said."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fake_model_server import CANARY, FakeModelServer, Planned, lines
from wire_shapes import CHAT, CHAT_STREAM, DONE, MESSAGE, MESSAGES_STREAM, RESPONSES_STREAM, chunk

from pytest_harbor.errors import RecipeError
from pytest_harbor.gateway import Budget, Gateway, ModelServer, Terms
from pytest_harbor.gateway.canonical import canonical, digest, explain
from pytest_harbor.gateway.recording import read_recording
from pytest_harbor.steady import steady_text

LONG = "You are an agent. " * 20


def said(*texts: str, **more: Any) -> dict[str, Any]:
    roles = ("user", "assistant")
    messages = [{"role": roles[at % 2], "content": text} for at, text in enumerate(texts)]
    return {"model": "m", "messages": [{"role": "system", "content": LONG}, *messages], **more}


@pytest.fixture
def recording(
    policy: ModelServer, upstream: FakeModelServer, client: httpx2.Client, tmp_path: Path
) -> Path:
    """The agent's three calls: whole, streamed, refused; and one of the user."""
    folder = tmp_path / "recording"
    upstream.plan(
        Planned(body=CHAT),
        Planned(events=[*CHAT_STREAM]),
        Planned(status=400, body={"error": {"message": f"no, {CANARY}"}}),
        Planned(events=[*MESSAGES_STREAM]),
    )
    with Gateway(record=folder, environment={"POLICY_KEY": CANARY}) as gateway:
        agent = gateway.open("ep1", "agent", policy).v1
        user = gateway.open("ep1", "user", policy).v1
        client.post(f"{agent}/chat/completions", json=said("Hello"))
        client.post(f"{agent}/chat/completions", json=said("Hello", "Hi", "Go", stream=True))
        client.post(f"{agent}/chat/completions", json=said("Hello", "Hi", "Go", "Done", "Sure?"))
        client.post(f"{user}/messages", json=said("What now?", stream=True))
    return folder


def replaying(recording: Path, **more: Any) -> Gateway:
    return Gateway(replay=recording, environment={}, **more)


def test_answers_come_again_without_network_and_key(
    recording: Path,
    policy: ModelServer,
    upstream: FakeModelServer,
    client: httpx2.Client,
) -> None:
    asked_before = len(upstream.got)
    with replaying(recording) as gateway:
        agent = gateway.open("ep1", "agent", policy).v1
        user = gateway.open("ep1", "user", policy).v1
        assert gateway.unreplayed("ep1") == {"agent": 3, "user": 1}
        first = client.post(f"{agent}/chat/completions", json=said("Hello"))
        second = client.post(
            f"{agent}/chat/completions", json=said("Hello", "Hi", "Go", stream=True)
        )
        third = client.post(
            f"{agent}/chat/completions", json=said("Hello", "Hi", "Go", "Done", "Sure?")
        )
        fourth = client.post(f"{user}/messages", json=said("What now?", stream=True))
        assert first.json() == CHAT
        assert second.content == b"".join(CHAT_STREAM[:3]) + DONE  # it did not ask for usage
        assert (third.status_code, third.json()) == (400, {"error": {"message": "no, [redacted]"}})
        assert fourth.content == b"".join(MESSAGES_STREAM)
        assert gateway.unreplayed("ep1") == {}
        summary = gateway.revoke("ep1")
        assert (summary.calls, summary.failed, summary.tokens) == (4, 1, 3300)
        assert {call.provider for call in gateway.calls("ep1")} == {"replay"}
    assert len(upstream.got) == asked_before


def test_no_key_is_recorded_and_nothing_is_written_twice(recording: Path) -> None:
    for path in recording.rglob("*.jsonl"):
        assert CANARY not in path.read_text()
    written = (recording / "ep1" / "agent.jsonl").read_text()
    assert written.count(LONG) == 1
    assert [each.number for each in read_recording(recording / "ep1" / "agent.jsonl")] == [1, 2, 3]
    assert lines(recording / "ep1" / "agent.jsonl")[0] == {"recording": 1, "party": "agent"}


def test_another_session_id_date_or_hash_is_no_difference(
    policy: ModelServer, upstream: FakeModelServer, client: httpx2.Client, tmp_path: Path
) -> None:
    def body(session: str, date: str, commit: str, took: str, call: str) -> dict[str, Any]:
        return {
            "model": "m",
            "prompt_cache_key": session,
            "client_metadata": {"session": session},
            "input": [
                {"role": "user", "content": f"Today is {date}."},
                {"type": "function_call", "id": f"fc_{call}", "call_id": call, "name": "sh"},
                {
                    "type": "function_call_output",
                    "call_id": call,
                    "output": f"Wall time: {took} seconds\n[main {commit}] add hello",
                },
            ],
            "stream": True,
        }

    upstream.plan(Planned(events=[*RESPONSES_STREAM]))
    with Gateway(record=tmp_path, environment={"POLICY_KEY": CANARY}) as gateway:
        url = gateway.open("ep1", "agent", policy).v1
        first = body("s1", "2026-11-29", "3af8c82", "0.0512", "call_1")
        recorded = client.post(f"{url}/responses", json=first)
    with replaying(tmp_path) as gateway:
        url = gateway.open("ep1", "agent", policy).v1
        again = body("s2", "2027-01-02", "1111111", "1.2", "call_9")
        assert client.post(f"{url}/responses", json=again).content == recorded.content


def test_a_request_that_differs_is_told_in_what(
    recording: Path, policy: ModelServer, client: httpx2.Client
) -> None:
    with replaying(recording) as gateway:
        agent = gateway.open("ep1", "agent", policy).v1
        answer = client.post(
            f"{agent}/chat/completions", json=said("Help me, please", temperature=1)
        )
        assert answer.status_code == 400
        assert answer.json()["error"]["code"] == "replay_mismatch"
        assert answer.json()["error"]["message"] == (
            "request 1 of agent is not in the recording agent.jsonl; from exchange 1 it differs "
            "in:\n"
            "messages[1].content:\n"
            '    recorded "Hello"\n'
            '    asked    "Help me, please"\n'
            "temperature: not recorded, asked 1"
        )
        (call,) = gateway.calls("ep1")
        assert (call.fault, call.ended) == ("replay_mismatch", "failed")
        # It did not use anything up: the right request is still answered, once.
        right = [client.post(f"{agent}/chat/completions", json=said("Hello")) for _ in range(2)]
        assert [each.status_code for each in right] == [200, 400]
        assert "once more: it was exchange 1" in right[1].json()["error"]["message"]
        other = client.post(f"{agent}/messages", json=said("Hello"))
        assert "all that was recorded on this wire is given" in other.json()["error"]["message"]


def test_side_by_side_calls_may_come_in_any_order(
    policy: ModelServer, upstream: FakeModelServer, client: httpx2.Client, tmp_path: Path
) -> None:
    answers = [{**CHAT, "id": f"chatcmpl-{number}"} for number in range(6)]
    upstream.plan(*(Planned(body=answer) for answer in answers))
    with Gateway(record=tmp_path, environment={"POLICY_KEY": CANARY}) as gateway:
        url = gateway.open("ep1", "judge", policy).v1
        for number in range(6):
            client.post(f"{url}/chat/completions", json=said(f"Rubric {number}?"))
    with replaying(tmp_path) as gateway, ThreadPoolExecutor(6) as pool:
        url = gateway.open("ep1", "judge", policy).v1
        found = pool.map(
            lambda n: client.post(f"{url}/chat/completions", json=said(f"Rubric {n}?")).json(),
            reversed(range(6)),
        )
        assert list(found) == answers[::-1]


def test_equal_calls_get_their_answers_in_order(
    policy: ModelServer, upstream: FakeModelServer, client: httpx2.Client, tmp_path: Path
) -> None:
    upstream.plan(Planned(status=400, body={"error": "first"}), Planned(body=CHAT))
    with Gateway(record=tmp_path, environment={"POLICY_KEY": CANARY}) as gateway:
        url = f"{gateway.open('ep1', 'agent', policy).v1}/chat/completions"
        recorded = [client.post(url, json=said("Hello")).status_code for _ in range(2)]
    with replaying(tmp_path) as gateway:
        url = f"{gateway.open('ep1', 'agent', policy).v1}/chat/completions"
        replayed = [client.post(url, json=said("Hello")).status_code for _ in range(2)]
    assert recorded == replayed == [400, 200]


def test_what_broke_off_breaks_off_again_and_what_hung_hangs(
    policy: ModelServer, upstream: FakeModelServer, client: httpx2.Client, tmp_path: Path
) -> None:
    def ask(url: str) -> None:
        with pytest.raises(httpx2.RemoteProtocolError):
            client.post(url, json=said("Stream", stream=True))
        with pytest.raises(httpx2.ReadTimeout):
            client.post(url, json=said("Hang"), timeout=0.3)

    upstream.plan(Planned(events=[chunk("H"), 0.05, "cut"]), Planned(body=CHAT, delay=1.0))
    with Gateway(record=tmp_path, environment={"POLICY_KEY": CANARY}) as gateway:
        ask(f"{gateway.open('ep1', 'agent', policy).v1}/chat/completions")
        recorded = gateway.revoke("ep1")
    with replaying(tmp_path) as gateway:
        ask(f"{gateway.open('ep1', 'agent', policy).v1}/chat/completions")
        replayed = gateway.revoke("ep1")
    assert recorded.faults == replayed.faults == {"cut": 1}
    assert recorded.abandoned == replayed.abandoned == 1


def test_the_gateways_own_errors_are_recorded_and_budgets_are_not(
    policy: ModelServer, upstream: FakeModelServer, client: httpx2.Client, tmp_path: Path
) -> None:
    upstream.plan(Planned(body=CHAT, delay=1.0), Planned(body=CHAT))
    quick = ModelServer(**{**vars(policy), "timeout": 0.2})
    with Gateway(record=tmp_path, environment={"POLICY_KEY": CANARY}) as gateway:
        gateway.begin("ep1", Terms(budget=Budget(tokens=1000)))
        url = f"{gateway.open('ep1', 'agent', quick).v1}/chat/completions"
        recorded = [client.post(url, json=said(text)).status_code for text in "abc"]
    assert recorded == [504, 200, 402]
    assert len(read_recording(tmp_path / "ep1" / "agent.jsonl")) == 2
    with replaying(tmp_path) as gateway:
        gateway.begin("ep1", Terms(budget=Budget(tokens=1000)))
        url = f"{gateway.open('ep1', 'agent', quick).v1}/chat/completions"
        assert [client.post(url, json=said(text)).status_code for text in "abc"] == recorded


def test_a_new_attempt_replaces_the_recording(
    policy: ModelServer, upstream: FakeModelServer, client: httpx2.Client, tmp_path: Path
) -> None:
    upstream.plan(Planned(body=CHAT))
    with Gateway(record=tmp_path, environment={"POLICY_KEY": CANARY}) as gateway:
        for text in ("one", "two"):
            url = f"{gateway.open('ep1', 'agent', policy).v1}/chat/completions"
            client.post(url, json=said(text))
            gateway.revoke("ep1")
    (only,) = read_recording(tmp_path / "ep1" / "agent.jsonl")
    assert only.request["messages"][1]["content"] == "two"


def test_a_missing_recording_names_what_there_is(recording: Path, policy: ModelServer) -> None:
    with replaying(recording) as gateway:
        with pytest.raises(RecipeError, match="parties recorded there: agent, user"):
            gateway.open("ep1", "judge", policy)
        with pytest.raises(RecipeError, match=r"episodes recorded in .*: ep1$"):
            gateway.open("ep2", "agent", policy)
    (recording / "ep1" / "agent.jsonl").write_text("{}\n")
    with replaying(recording) as gateway, pytest.raises(RecipeError, match="record it again"):
        gateway.open("ep1", "agent", policy)


def test_a_server_may_replay_while_others_do_not(
    recording: Path, policy: ModelServer, upstream: FakeModelServer, client: httpx2.Client
) -> None:
    upstream.forget()
    upstream.plan(Planned(body=MESSAGE))
    user = ModelServer("user", provider="replay", recording=recording)
    with Gateway(environment={"POLICY_KEY": CANARY}) as gateway:
        gateway.begin("other", Terms(recording="ep1"))
        url = gateway.open("other", "user", user).v1
        answer = client.post(f"{url}/messages", json=said("What now?", stream=True))
        assert answer.content == b"".join(MESSAGES_STREAM)
        agent = gateway.open("other", "agent", policy).v1
        assert client.post(f"{agent}/messages", json=said("x")).json() == MESSAGE


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Today's date: Sat Nov 29 2026", "Today's date: Mon Dec 7 2026"),
        ("Date:   Sat Nov 29 16:34:45 2026 +0000", "Date:   Sun Jan 3 01:02:03 2027 +0100"),
        ("at 2026-11-29T16:34:45.123Z", "at 2027-01-01T00:00:00Z"),
        ("commit 3af8c821a8b3f4d2c1e0", "commit 0123456789abcdefabcd"),
        ("-rw-r--r-- 1 root root 5 Nov 29 16:34 a", "-rw-r--r-- 1 root root 5 Dec  1 09:05 a"),
        (
            "session 6f1c2a3e-1111-4222-8333-444455556666",
            "session 00000000-0000-0000-0000-000000000000",
        ),
        ("took 12ms, 3.5 s", "took 7.25 ms, 12 s"),
        ("http://172.30.0.1:45001/" + "a" * 32 + "/v1", "http://127.0.0.1:9/" + "b" * 32 + "/v1"),
        ("/tmp/tmpab12cd34/x", "/tmp/tmpzz99yy88/x"),
        ("Chunk ID: 1f2e3d\n", "Chunk ID: aaaaaa\n"),
        ("real 0m1.52s", "real 1m0.01s"),
    ],
)
def test_texts_that_say_the_same_at_another_time(one: str, other: str) -> None:
    assert steady_text(one) == steady_text(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [("exit code 0", "exit code 1"), ("5 passed", "6 passed"), ("/tmp/plan.md", "/tmp/plan2.md")],
)
def test_texts_that_say_something_else(one: str, other: str) -> None:
    assert steady_text(one) != steady_text(other)


def test_arguments_called_id_are_compared_and_ids_of_messages_are_not() -> None:
    def body(message: str, argument: str) -> dict[str, Any]:
        block = {"type": "tool_use", "id": message, "input": {"id": argument}}
        return {"messages": [{"role": "assistant", "content": [block]}]}

    def print_(*given: str) -> str:
        return digest(canonical(body(*given)))

    assert print_("a", "x") == print_("b", "x")
    assert print_("a", "x") != print_("a", "y")


def test_differences_are_short_and_readable() -> None:
    recorded = {"a": "x" * 100 + "tail", "b": "one\ntwo\nthree", "c": [1, 2], "d": True}
    asked = {"a": "x" * 100 + "TAIL", "b": "one\n2\nthree", "c": [1, 2, 3], "e": None}
    assert explain(recorded, asked).splitlines() == [
        "a:",
        '    recorded "...' + "x" * 30 + 'tail"',
        '    asked    "...' + "x" * 30 + 'TAIL"',
        "b: (- recorded, + asked)",
        "    @@ -1,3 +1,3 @@",
        "     one",
        "    -two",
        "    +2",
        "     three",
        "c: recorded 2 entries, asked with 3",
        "d: recorded true, not asked",
        "e: not recorded, asked null",
    ]
    many = explain({str(n): n for n in range(9)}, {str(n): -n for n in range(1, 10)})
    assert many.splitlines()[-1] == "... and 4 more differences"
