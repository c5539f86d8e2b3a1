"""B56: a task is shown as the pass rule says, and counted once, whatever its steps are."""

from __future__ import annotations

from typing import Any

import pytest
from fake_datasets import EPISODES, STEPS_TOML, run, write_task

RULED = """

from pytest_harbor.episode.verdict import rule

class Ruled(FakeEpisode):
    def run(self):
        result = super().run()
        ruling = rule(
            result.steps, reward=result.reward, strategy=result.reward_strategy,
            threshold=result.threshold, fault=result.fault,
        )
        return result.model_copy(update={
            "steps": ruling.steps, "outcome": ruling.outcome,
            "verdict": ruling.verdict, "verdict_reason": ruling.reason,
        })

@pytest.fixture
def harbor_episode(request, harbor_attempt):
    return Ruled(request.node, harbor_attempt)
"""


def episode(*rewards: float | None, **more: Any) -> dict[str, Any]:
    """An episode with a reward per step."""
    names = ("plan", "build", "test")
    steps = [{"name": name, "reward": reward} for name, reward in zip(names, rewards, strict=True)]
    return {"steps": steps, **more}


def test_b56_the_verdict_of_the_task_is_the_rule_s(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\n")
    pytester.makeconftest(EPISODES + RULED)
    died = {"outcome": "sandbox_died", "phase": "agent", "message": "gone"}
    broken = episode(1.0, 1.0, None, reward=None, fault=died)
    broken["steps"][2] |= {"fault": died}
    for name, told in {
        "decided": episode(0.0, 0.5, 1.0, reward=1.0, reward_strategy="final"),
        "lenient": episode(1.0, 0.0, 1.0, reward=0.67, threshold=0.5),
        "low": episode(1.0, 1.0, 0.0, reward=0.0, reward_strategy="final"),
        "mean": episode(1.0, 0.0, 1.0, reward=0.67),
        "broken": broken,
    }.items():
        write_task(pytester.path / "ds" / name, STEPS_TOML, **told)
    result = run(pytester, "-v")
    for name, word in (
        ("decided", "PASSED"),
        ("lenient", "PASSED"),
        ("low", "FAILED"),
        ("mean", "FAILED"),
        ("broken", "ERROR"),
    ):
        result.stdout.fnmatch_lines([f"ds/{name}/task.toml::{name} {word} *"], consecutive=False)
    tasks = [line for line in result.outlines if line.startswith("ds/") and "SUB" not in line]
    assert len(tasks) == 5
    result.stdout.no_fnmatch_line("*contains * failed subtest*")
    counted = run(pytester, "-p", "no:terminal", "-k", "decided or lenient")
    assert counted.ret == pytest.ExitCode.OK
