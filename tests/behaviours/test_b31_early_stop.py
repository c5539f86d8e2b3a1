"""B31: a task that was stopped early has not passed, and both scores say what they count."""

from __future__ import annotations

from pathlib import Path

import pytest
from episodes import GIVES_1, Part, many_steps, play

from pytest_harbor.task.load import load_task

pytestmark = pytest.mark.docker

GIVES_04 = "echo 0.4 > /logs/verifier/reward.txt"
FINAL = 'multi_step_reward_strategy = "final"'


@pytest.mark.parametrize(
    ("strategy", "gate", "test", "reward", "as_harbor"),
    [
        # the observed cases of harbor-format 3.4
        ("", "min_reward = 0.5", GIVES_04, 0.4 / 3, 0.4),
        (FINAL, "min_reward = 0.5", GIVES_04, 0.0, 0.4),
        ("", "min_reward = {tests = 1.0}", GIVES_1, 1 / 3, 1.0),
        (FINAL, "min_reward = {tests = 1.0}", GIVES_1, 0.0, 1.0),
    ],
)
def test_b31_a_missed_gate(
    tmp_path: Path, strategy: str, gate: str, test: str, reward: float, as_harbor: float
) -> None:
    played = play(many_steps(tmp_path, strategy, Part(test=test, toml=gate), Part(), Part()))
    result = played.result
    assert (result.outcome, result.verdict) == ("gate_stopped", "failed")
    assert result.reward == pytest.approx(reward)
    assert result.reward_as_harbor == as_harbor
    assert (result.steps_run, result.steps_total) == (1, 3)
    assert [step.verdict for step in result.steps] == ["failed", "skipped", "skipped"]
    assert [step.reward for step in result.steps[1:]] == [0, 0]
    assert "min_reward" in result.verdict_reason
    harbor = played.json("result.json")
    assert harbor["verifier_result"] == {"rewards": {"reward": as_harbor}}
    assert [step["step_name"] for step in harbor["step_results"]] == ["one"]
    assert not (played.folder / "steps/two").exists()


def test_b31_a_setup_that_fails_leaves_no_reward_of_ours(tmp_path: Path) -> None:
    second = Part(files={"workdir/setup.sh": "echo no network; exit 7\n"})
    played = play(many_steps(tmp_path, "", Part(), second, Part()))
    result = played.result
    assert (result.outcome, result.verdict, result.reward) == ("setup_failed", "error", None)
    assert result.reward_as_harbor == 1.0  # and valid, for Harbor (sharp edge 3)
    assert result.fault is not None
    assert "setup.sh of step two exited with 7: no network" in result.fault.message
    assert [step.reward for step in result.steps] == [1, None, None]


def test_b31_a_gate_that_is_met_lets_pass(tmp_path: Path) -> None:
    test = """echo '{"reward": 0.5, "tests": 1}' > /logs/verifier/reward.json"""
    parts = (
        Part(test=test, toml="min_reward = {tests = 1.0, reward = 0.5}"),
        Part(toml="min_reward = 1"),
    )
    task = many_steps(tmp_path, "", *parts)
    assert load_task(task).steps[1].min_reward == 1
    result = play(task, recipe={"pass.threshold": 0.7}).result
    assert (result.outcome, result.reward) == ("passed", 0.75)
    assert result.rewards == {"reward": 0.75, "tests": 0.5}
    assert result.reward_as_harbor == 0.75
