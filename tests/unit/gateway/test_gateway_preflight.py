"""A server that does not answer is found out before anything is spent."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from fake_model_server import CANARY, FakeModelServer, Planned
from wire_shapes import CHAT, MESSAGE, RESPONSE

from pytest_harbor.errors import RecipeError
from pytest_harbor.gateway import Budget, Gateway, ModelServer, Terms
from pytest_harbor.gateway.preflight import account_of, firewall_hint, try_once


def test_one_real_answer_on_each_wire(
    gateway: Gateway, policy: ModelServer, upstream: FakeModelServer
) -> None:
    upstream.plan(Planned(body=CHAT), Planned(body=RESPONSE), Planned(body=MESSAGE))
    for wire in ("chat", "responses", "messages"):
        try_once(gateway, replace(policy, try_with=wire), "real-1")  # type: ignore[arg-type]
    assert [got.path for got in upstream.got] == [
        "/v1/chat/completions",
        "/v1/responses",
        "/v1/messages",
    ]
    calls = gateway.calls(account_of(policy))
    assert [call.wire for call in calls] == ["chat", "responses", "messages"]
    assert gateway.summary(account_of(policy)).tokens == 3300
    assert gateway.episodes == ()


def test_once_in_a_run_whichever_worker_comes_first(
    policy: ModelServer, upstream: FakeModelServer, tmp_path: Path
) -> None:
    upstream.plan(Planned(body=CHAT))
    for _ in range(2):
        with Gateway(environment={"POLICY_KEY": CANARY}, shared=tmp_path) as worker:
            try_once(worker, policy, "real-1")
            try_once(worker, policy, "real-1")
    assert len(upstream.got) == 1


def test_a_server_that_refuses_is_quoted_without_its_key(
    policy: ModelServer, upstream: FakeModelServer, tmp_path: Path
) -> None:
    said = {"error": {"message": f"Incorrect API key provided: {CANARY}"}}
    upstream.plan(Planned(status=401, body=said))
    for _ in range(2):  # the second is told what the first found
        with (
            Gateway(environment={"POLICY_KEY": CANARY}, shared=tmp_path) as worker,
            pytest.raises(RecipeError) as caught,
        ):
            try_once(worker, policy, "real-1")
        assert str(caught.value) == (
            "model server 'policy' does not answer a chat request (auth, status 401): "
            "Incorrect API key provided: [redacted]"
        )
    assert len(upstream.got) == 1
    assert CANARY not in "".join(path.read_text() for path in tmp_path.iterdir())


def test_a_server_that_takes_too_long_has_not_answered(
    gateway: Gateway,
    policy: ModelServer,
    upstream: FakeModelServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pytest_harbor.gateway.preflight._SECONDS", 0.2)
    upstream.plan(Planned(body=CHAT, delay=2))
    with pytest.raises(RecipeError, match=r"does not answer a chat request in 0\.2 s"):
        try_once(gateway, policy, "real-1")


def test_what_costs_nothing_or_cannot_be_asked_is_not_tried(
    gateway: Gateway, policy: ModelServer, upstream: FakeModelServer
) -> None:
    script = ModelServer("policy", provider="script", rules=__file__)  # type: ignore[arg-type]
    try_once(gateway, script, "real-1")
    try_once(gateway, ModelServer("policy", provider="local"), "real-1")
    try_once(gateway, replace(policy, try_with="off"), "real-1")
    try_once(gateway, policy, None)
    with Gateway(replay=__file__) as replaying:  # type: ignore[arg-type]
        try_once(replaying, policy, "real-1")
    assert upstream.got == []


def test_a_try_is_no_part_of_a_recording(
    policy: ModelServer, upstream: FakeModelServer, tmp_path: Path
) -> None:
    upstream.plan(Planned(body=CHAT))
    with Gateway(environment={"POLICY_KEY": CANARY}, record=tmp_path) as gateway:
        try_once(gateway, policy, "real-1")
    assert len(upstream.got) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_budget_in_usd_needs_prices(gateway: Gateway, policy: ModelServer, terms: Terms) -> None:
    gateway.begin("ep1", Terms(budget=Budget(usd=1)))
    with pytest.raises(RecipeError, match=r"cannot bind model server 'policy': .* for real-1"):
        gateway.open("ep1", "agent", policy)
    gateway.begin("ep2", Terms(budget=Budget(usd=1), prices=terms.prices))
    assert gateway.open("ep2", "agent", policy).url


def test_the_hint_names_the_address() -> None:
    hint = firewall_hint("http://172.30.0.1:4567")
    assert "172.30.0.1:4567" in hint
    assert "iptables -I INPUT -i br-+ -p tcp -d 172.30.0.1" in hint


def test_the_keys_in_use_are_known_to_who_writes_files(
    gateway: Gateway, policy: ModelServer
) -> None:
    assert gateway.secrets == frozenset()
    gateway.open("ep1", "agent", policy)
    assert gateway.secrets == {CANARY}


def test_importing_the_room_loads_no_web_server_and_no_client() -> None:
    heavy = {"uvicorn", "httpx2", "starlette", "yaml", "pydantic", "mcp", "docker", "pytest"}
    code = f"import sys, pytest_harbor.gateway; print({heavy!r} & set(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "set()"
