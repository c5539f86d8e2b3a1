"""What an agent asks of its MCP servers, recorded step by step, on the real engine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
import pytest
from episodes import ASK, USER, USER_FILES, Part, many_steps, one_step, play

from pytest_harbor.agents.base import Capabilities, Grant, Turn, TurnResult
from pytest_harbor.agents.nop import NopAgent
from pytest_harbor.gateway import Gateway

pytestmark = pytest.mark.docker

ASKS = ASK + "ask; ask"


@pytest.fixture
def gateway() -> Iterator[Gateway]:
    with Gateway() as gateway:
        yield gateway


@dataclass(frozen=True)
class Silent(NopAgent):
    """An agent in the contest that asks nothing, and remembers what it was given."""

    name: str = "silent"
    capabilities = Capabilities(mcp_transports=frozenset({"streamable-http"}))
    given: list[Grant] = field(default_factory=list)

    def run_turn(self, turn: Turn) -> TurnResult:
        self.given.extend(turn.grants)
        return super().run_turn(turn)


def test_calls_are_counted_step_by_step(tmp_path: Path, gateway: Gateway) -> None:
    parts = (Part(solve=ASKS), Part(solve="env"), Part(solve=ASK + "ask"))
    played = play(many_steps(tmp_path, USER, *parts, **USER_FILES), gateway=gateway)
    assert played.result.reward == 1
    grants = [step.grants[0] for step in played.result.steps]
    assert [grant.calls for grant in grants] == [{"ask_user": n} for n in (2, 0, 1)]
    assert [grant.errors for grant in grants] == [0, 0, 0]
    assert grants[0].wait_seconds > 0
    assert {grant.url for grant in grants} == {"http://user-server:8000/mcp"}
    assert "asked 3" in played.read("steps/three/agent/oracle.txt")
    calls = [json.loads(line) for line in played.read("mcp-calls.jsonl").splitlines()]
    told = [(call["step"], call["server"], call["tool"], call["reply"]) for call in calls]
    steps = ("one", "one", "three")
    assert told == [
        (step, "user-server", "ask_user", f"asked {n}") for n, step in enumerate(steps, 1)
    ]


def test_the_address_is_a_secret_and_headers_stay_here(tmp_path: Path, gateway: Gateway) -> None:
    agent = Silent()
    toml = USER + 'headers = { "X-Token" = "Bearer ${TOKEN}" }\n'
    task = one_step(tmp_path, toml, **USER_FILES)
    host = {"TOKEN": "canary-0123456789"}
    played = play(task, agent, recipe={"task_mcp_grants": "required"}, gateway=gateway, host=host)
    [given] = agent.given
    assert given.name == "user-server"
    assert given.url is not None
    assert given.url.endswith("/mcp")
    assert "user-server" not in given.url
    assert given.headers == {}
    secret = given.url.split("/")[3]
    assert len(secret) > 20
    assert secret not in played.everything
    assert "canary-0123456789" not in played.everything
    assert played.result.outcome == "passed"
    never = "the agent never called the required MCP server 'user-server'"
    assert never in played.result.warnings
    assert played[0].grants[0].calls == {"ask_user": 0}


@dataclass(frozen=True)
class Renaming(Silent):
    """An agent whose CLI takes no tool called ask_user; it calls what it is offered."""

    capabilities = Capabilities(tool_aliases={"ask_user": "ask_the_user"})

    def run_turn(self, turn: Turn) -> TurnResult:
        def post(method: str, **params: object) -> str:
            message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            with httpx2.Client(trust_env=False, verify=False) as client:
                return client.post(turn.grants[0].url or "", json=message).text

        assert '"ask_the_user"' in post("tools/list")
        assert "asked 1" in post("tools/call", name="ask_the_user", arguments={})
        return super().run_turn(turn)


def test_a_tool_under_an_alias_counts_under_its_own_name(tmp_path: Path, gateway: Gateway) -> None:
    played = play(one_step(tmp_path, USER, **USER_FILES), Renaming(), gateway=gateway)
    assert played.result.fault is None
    assert played[0].grants[0].calls == {"ask_user": 1}
