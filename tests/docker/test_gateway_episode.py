"""Episodes whose model calls go through the gateway, on the real engine."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from episodes import GIVES_1, USER, USER_FILES, Part, many_steps, one_step, play
from models import KEY, MODEL, Upstream

from pytest_harbor.agents.base import Turn, TurnResult
from pytest_harbor.agents.nop import NopAgent
from pytest_harbor.episode.outcome import Outcome
from pytest_harbor.errors import HarborError
from pytest_harbor.gateway import Gateway, Summary
from pytest_harbor.sandbox.group import Group

HOST = {"UPSTREAM_KEY": KEY}


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    with Upstream() as upstream:
        yield upstream


@pytest.fixture
def gateway() -> Iterator[Gateway]:
    with Gateway(environment=HOST) as gateway:
        yield gateway


def server(name: str, upstream: Upstream, **more: Any) -> dict[str, Any]:
    """A model server in a recipe; tokens of its model have a price."""
    table = {"base_url": upstream.url, "key": {"env": "UPSTREAM_KEY"}, "model": "real-1"}
    table |= {"try_with": "off", **more}
    prices = {"prices.real-1.input": 10.0, "prices.real-1.output": 100.0}
    return {f"model_servers.{name}.{key}": value for key, value in table.items()} | prices


SIDE = """
services:
  main: {}
  side:
    image: debian:bookworm-slim
    init: true
    command: sleep infinity
    environment: {MODEL: "${MODEL}/v1", WHERE: "${WHERE:-}"}
"""
ASK_SIDE = MODEL + 'model "${MODEL%/v1}" "from the side"'


def side_asks(group: Group) -> str:
    """Let the sidecar ask its model, after the episode."""
    from groups import soon

    ran = group.container("side").run(ASK_SIDE, deadline=soon(20))
    return ran.output.decode()


def test_every_party_reaches_its_model_and_nobody_the_key(
    tmp_path: Path, gateway: Gateway, upstream: Upstream
) -> None:
    ask = MODEL + 'model "$POLICY" hello; model "$POLICY/v1" again; env; cat /proc/*/environ'
    grade = MODEL + 'model "$JUDGE" verdict; env; ' + GIVES_1
    collect = '[[steps.verifier.collect]]\nservice = "side"\ncommand = """' + ASK_SIDE + '"""\n'
    files = {"environment/docker-compose.yaml": SIDE}
    task = many_steps(tmp_path, "", Part(ask, grade, collect), Part("true"), **files)
    recipe = {
        **server("policy", upstream),
        **server("user_model", upstream),
        **server("judge", upstream),
        "agent.env.POLICY": {"model_server": "policy"},
        "verifier.env.JUDGE": {"model_server": "judge"},
        "compose_variables.MODEL": {"model_server": "user_model"},
    }
    seen: dict[str, Any] = {}

    def look(group: Group) -> None:
        ids = [group.container_id(name) for name in group.services]
        seen["inspected"] = subprocess.check_output(["docker", "inspect", *ids], text=True)
        seen["dead"] = side_asks(group)
        seen["processes"] = subprocess.check_output(["ps", "axeww"], text=True)

    played = play(task, recipe=recipe, host=HOST, gateway=gateway, look=look)
    result = played.result
    assert (result.outcome, result.reward) == (Outcome.PASSED, 1)
    assert "hello from upstream" in played.read("steps/one/agent/oracle.txt")
    assert "hello from upstream" in played.read("steps/one/verifier/test-stdout.txt")

    # who asked how much, by the ledger
    calls = {name: (party.calls, party.failed) for name, party in result.parties.items()}
    assert calls == {"agent": (2, 0), "user": (1, 0), "judge": (1, 0)}
    agent = result.parties["agent"]
    assert (agent.input_tokens, agent.output_tokens) == (200, 40)
    assert agent.cost_usd == pytest.approx(2 * (100 * 10 + 20 * 100) / 1e6)
    assert agent.models == ("real-1-2026-01-01",)
    assert agent.server["model"] == "real-1"
    one, two = result.steps
    assert (one.parties["agent"].calls, two.parties["agent"].calls) == (2, 0)
    assert one.turn is not None
    assert (one.turn.input_tokens, one.turn.output_tokens) == (200, 40)
    assert one.turn.cost_usd == agent.cost_usd == result.cost_usd
    assert result.tokens == 240
    ledger = [json.loads(line) for line in played.read("model-calls.jsonl").splitlines()]
    assert {(call["party"], call["step"]) for call in ledger} == {
        ("agent", "one"),
        ("user", "one"),
        ("judge", "one"),
    }

    # the address died with the episode, and was written nowhere
    assert "hello" not in seen["dead"]
    addresses = json.loads(seen["inspected"])[1]["Config"]["Env"]
    secret = next(a for a in addresses if a.startswith("MODEL=")).split("/")[3]
    assert len(secret) > 20
    assert secret not in played.everything
    printed = played.read("steps/one/agent/oracle.txt")
    shown = next(line for line in printed.splitlines() if line.startswith("POLICY=http://"))
    assert shown.endswith("/[redacted]")

    # the key is with the upstream, and nowhere else
    assert {got["authorization"] for got in map(_lower, upstream.got)} == {f"Bearer {KEY}"}
    for text in (played.everything, seen["inspected"], seen["processes"]):
        assert KEY not in text


def _lower(headers: dict[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def user_recipe(upstream: Upstream, **more: Any) -> dict[str, Any]:
    """The agent's scripts stand in for the simulated user: they call its model."""
    return {
        **server("user_model", upstream, retries=0),
        "agent.env.USER_MODEL": {"model_server": "user_model"},
        **more,
    }


def test_a_user_whose_model_dies_is_degraded_and_no_task_has_failed(
    tmp_path: Path, gateway: Gateway, upstream: Upstream
) -> None:
    ask = MODEL + 'model "$USER_MODEL" hello'
    task = many_steps(tmp_path, "", Part(ask), Part(ask), Part(ask))
    recipe = user_recipe(upstream)
    upstream.stops_after = 1
    result = play(task, recipe=recipe, host=HOST, gateway=gateway).result
    assert (result.outcome, result.verdict, result.reward) == (Outcome.USER_DEGRADED, "error", None)
    assert result.outcome.meaning.retry
    assert result.fault is not None
    assert "model calls of the simulated user failed" in result.fault.message
    assert [step.verdict for step in result.steps] == ["passed", "error", "skipped"]
    assert (result.parties["user"].calls, result.parties["user"].failed) == (2, 1)
    # the step that broke is not graded
    assert result.steps[1].grade is None


def test_a_spent_budget_ends_the_episode_before_the_next_turn(
    tmp_path: Path, gateway: Gateway, upstream: Upstream
) -> None:
    ask = MODEL + 'model "$USER_MODEL" hello'
    task = many_steps(tmp_path, "", Part(ask), Part(ask), Part(ask))
    recipe = user_recipe(upstream, **{"budget.episode.tokens": 200})
    played = play(task, recipe=recipe, host=HOST, gateway=gateway)
    result = played.result
    assert (result.outcome, result.verdict, result.reward) == (Outcome.BUDGET_SPENT, "error", None)
    assert [step.grade is not None for step in result.steps] == [True, True, False]
    assert result.steps[2].turn is None
    assert result.fault is not None
    assert result.fault.message == "the episode's budget of 200 tokens is spent: 240 tokens used"
    assert (result.parties["user"].calls, result.parties["user"].refused) == (2, 0)


def test_a_budget_that_runs_out_while_grading_is_no_missing_reward(
    tmp_path: Path, gateway: Gateway, upstream: Upstream
) -> None:
    judge = MODEL + 'model "$JUDGE" one; model "$JUDGE" two | grep -q hello && ' + GIVES_1
    recipe = {
        **server("judge", upstream),
        "verifier.env.JUDGE": {"model_server": "judge"},
        "budget.episode.tokens": 100,
    }
    task = one_step(tmp_path, test=judge)
    result = play(task, recipe=recipe, host=HOST, gateway=gateway).result
    assert result.outcome == Outcome.BUDGET_SPENT
    assert result.fault is not None
    assert "1 model calls were refused" in result.fault.message


def test_a_model_that_does_not_answer_is_named_before_anything_is_created(
    tmp_path: Path, gateway: Gateway, upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Group, "start", lambda *_: pytest.fail("a group is started"))
    upstream.stops_after = 0
    played = play(
        one_step(tmp_path),
        recipe=user_recipe(upstream, **{"model_servers.user_model.try_with": "chat"}),
        host=HOST,
        gateway=gateway,
    )
    result = played.result
    assert (result.outcome, result.reward) == (Outcome.TASK_INVALID, None)
    assert result.fault is not None
    assert "'user_model' does not answer a chat request (unreachable, " in result.fault.message
    assert result.parties["user"].calls == 0


class Deaf(Gateway):
    """A gateway behind a firewall: it says that it listens, and nothing comes through."""

    def listen(self, address: str, port: int = 0) -> str:
        url = super().listen(address, port)
        self.unlisten(url)
        return url

    def unlisten(self, base_url: str) -> None:
        if base_url in self._host._listeners:
            super().unlisten(base_url)


def test_a_firewall_in_the_way_is_named_before_the_first_turn(
    tmp_path: Path, upstream: Upstream
) -> None:
    with Deaf(environment=HOST) as gateway:
        result = play(
            one_step(tmp_path), recipe=user_recipe(upstream), host=HOST, gateway=gateway
        ).result
    assert result.outcome == Outcome.START_FAILED
    assert result.fault is not None
    assert result.fault.phase == "gateway"
    assert "iptables -I INPUT" in result.fault.message
    assert upstream.got == []


@dataclass(frozen=True)
class Looking(NopAgent):
    """Notes at each turn what of the sidecar is on disk already."""

    place: Path = Path()
    seen: list[list[str]] = field(default_factory=list)

    def run_turn(self, turn: Turn) -> TurnResult:
        logs = self.place.glob("job-*/*/services/user-server.log")
        self.seen.append([log.read_text() for log in logs])
        return super().run_turn(turn)


def test_what_sidecars_said_is_kept_after_every_step(tmp_path: Path) -> None:
    task = many_steps(tmp_path, USER, Part(), Part(), **USER_FILES)
    agent = Looking(place=task.parent)
    play(task, agent)
    first, (log,) = agent.seen
    assert first == []
    assert log.startswith("the user lives\n")


def test_what_sidecars_said_is_kept_when_an_episode_dies(tmp_path: Path) -> None:
    die = "exec 3<>/dev/tcp/user-server/8000; printf 'POST /die HTTP/1.0\\r\\n\\r\\n' >&3; cat <&3"
    played = play(many_steps(tmp_path, USER, Part(die), **USER_FILES))
    assert played.result.outcome == Outcome.USER_LOST
    assert "the user lives" in played.read("services/user-server.log")


class Sulking(Gateway):
    """A gateway whose thread does not answer any more when an episode ends."""

    def revoke(self, episode: str) -> Summary:
        super().revoke(episode)
        raise HarborError("the gateway sulks")


def test_trouble_at_the_end_takes_no_result_along(tmp_path: Path, upstream: Upstream) -> None:
    with Sulking(environment=HOST) as gateway:
        task = one_step(tmp_path)
        result = play(task, recipe=user_recipe(upstream), host=HOST, gateway=gateway).result
    assert (result.outcome, result.reward) == (Outcome.PASSED, 1)
    assert "the gateway sulks" in result.warnings


def test_an_agent_that_counts_for_itself_is_believed_where_the_gateway_saw_nothing(
    tmp_path: Path, gateway: Gateway, upstream: Upstream
) -> None:
    recipe = {**server("policy", upstream), "agent.env.POLICY": {"model_server": "policy"}}
    result = play(one_step(tmp_path), Counting(), recipe=recipe, host=HOST, gateway=gateway).result
    assert (result.tokens, result.parties["agent"].calls) == (7, 0)


@dataclass(frozen=True)
class Counting(NopAgent):
    """Says that its turns take tokens."""

    def run_turn(self, turn: Turn) -> TurnResult:
        return TurnResult("exited", 0, input_tokens=5, output_tokens=2)
