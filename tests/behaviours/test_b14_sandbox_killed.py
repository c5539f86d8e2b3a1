"""B14, B40: when main dies under the agent, or after it, that is said; it is no low score."""

from __future__ import annotations

from pathlib import Path

import pytest
from episodes import Part, many_steps, one_step, play

pytestmark = pytest.mark.docker


def test_b14_the_agent_kills_its_container(tmp_path: Path) -> None:
    solve = "echo goodbye > /logs/agent/letter.txt; kill 1; sleep 30"
    played = play(many_steps(tmp_path, "", Part(), Part(solve=solve), Part()))
    result = played.result
    assert (result.outcome, result.verdict) == ("sandbox_died", "error")
    assert result.fault is not None
    assert result.fault.phase == "agent"
    assert "died with exit code" in result.fault.message
    assert "out of memory: no" in result.fault.message
    assert result.reward is None
    assert result.reward_as_harbor is None
    assert result.rewards == {}
    # the step before it keeps its grade, the one after it has none
    assert [step.reward for step in result.steps] == [1, None, None]
    assert [step.verdict for step in result.steps] == ["passed", "error", "skipped"]
    # what the dead container still holds is kept
    assert played.read("steps/two/agent/letter.txt") == "goodbye\n"


def test_b40_main_dies_between_agent_and_verifier(tmp_path: Path) -> None:
    hook = '[[verifier.collect]]\ncommand = "kill 1; sleep 30"\n'
    result = play(one_step(tmp_path, hook)).result
    assert result.outcome == "sandbox_died"
    assert result.fault is not None
    assert result.fault.phase == "collect"
    assert result.steps[0].grade is None
    assert result.reward is None
