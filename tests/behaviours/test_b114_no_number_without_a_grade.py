"""B114: an engine that fails in the middle, and an agent that breaks, leave no number at all."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import pytest
import requests
from episodes import Part, many_steps, play

from pytest_harbor.agents.base import Turn, TurnResult
from pytest_harbor.agents.nop import NopAgent
from pytest_harbor.sandbox.group import Group

pytestmark = pytest.mark.docker


@dataclass(frozen=True)
class Outage(NopAgent):
    """In the second turn the engine goes away, until somebody looks."""

    def run_turn(self, turn: Turn) -> TurnResult:
        if turn.index == 1:
            gone = requests.ConnectionError("Connection refused")
            mock.patch.object(turn.container.engine.api, "send", side_effect=gone).start()
        return TurnResult("exited", 0)


@dataclass(frozen=True)
class Broken(NopAgent):
    """An agent with a fault of its own, in the second turn."""

    def run_turn(self, turn: Turn) -> TurnResult:
        if turn.index == 1:
            turn.container.run("echo done > /logs/agent/so-far", deadline=turn.deadline)
            raise ZeroDivisionError("an agent's own fault")
        return TurnResult("exited", 0)


def test_b114_the_engine_goes_away(tmp_path: Path) -> None:
    def back_again(_: Group) -> None:
        mock.patch.stopall()

    played = play(many_steps(tmp_path, "", Part(), Part(), Part()), Outage(), look=back_again)
    result = played.result
    assert (result.outcome, result.verdict) == ("sandbox_died", "error")
    assert result.fault is not None
    assert "Connection refused" in result.fault.message
    assert (result.reward, result.reward_as_harbor, result.rewards) == (None, None, {})
    assert [step.reward for step in result.steps] == [1, None, None]
    assert played.json("result.json")["verifier_result"] is None


def test_b114_an_unknown_fault_is_an_error(tmp_path: Path) -> None:
    played = play(many_steps(tmp_path, "", Part(), Part(), Part()), Broken())
    result = played.result
    assert (result.outcome, result.verdict, result.reward) == ("internal", "error", None)
    assert result.fault is not None
    assert (result.fault.phase, result.fault.message) == ("agent", "an agent's own fault")
    assert [step.verdict for step in result.steps] == ["passed", "error", "skipped"]
    assert "ZeroDivisionError" in played.read("exception.txt")
    assert played.read("steps/two/agent/so-far") == "done\n"
