"""A server that does not answer is found out before anything is spent."""

from __future__ import annotations

import subprocess
import sys

import pytest
from fake_model_server import CANARY, FakeModelServer, Planned
from wire_shapes import CHAT, MESSAGE, RESPONSE

from pytest_harbor.errors import RecipeError
from pytest_harbor.gateway import Budget, Gateway, ModelServer, Terms
from pytest_harbor.gateway.preflight import EPISODE, firewall_hint, try_server


def test_one_real_answer_on_each_wire(
    gateway: Gateway, policy: ModelServer, upstream: FakeModelServer
) -> None:
    upstream.plan(Planned(body=CHAT), Planned(body=RESPONSE), Planned(body=MESSAGE))
    calls = [try_server(gateway, policy, wire) for wire in ("chat", "responses", "messages")]
    assert [call.wire for call in calls if call] == ["chat", "responses", "messages"]
    assert [got.path for got in upstream.got] == [
        "/v1/chat/completions",
        "/v1/responses",
        "/v1/messages",
    ]
    assert gateway.summary(EPISODE).tokens == 3300


def test_a_server_that_refuses_is_quoted_without_its_key(
    gateway: Gateway, policy: ModelServer, upstream: FakeModelServer
) -> None:
    said = {"error": {"message": f"Incorrect API key provided: {CANARY}"}}
    upstream.plan(Planned(status=401, body=said))
    with pytest.raises(RecipeError) as caught:
        try_server(gateway, policy)
    assert str(caught.value) == (
        "model server 'policy' does not answer a chat request (auth, status 401): "
        "Incorrect API key provided: [redacted]"
    )


def test_scripts_and_recordings_need_no_trying(
    gateway: Gateway, policy: ModelServer, tmp_path: object
) -> None:
    script = ModelServer("policy", provider="script", rules=__file__)  # type: ignore[arg-type]
    assert try_server(gateway, script) is None
    with Gateway(replay=__file__) as replaying:  # type: ignore[arg-type]
        assert try_server(replaying, policy) is None


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
