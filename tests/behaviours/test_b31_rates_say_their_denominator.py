"""B31: an episode that a gate stopped is in every denominator, and none is left unsaid."""

from __future__ import annotations

import json
from pathlib import Path

from sample_job import START, episode, step, unreached

from pytest_harbor.episode.outcome import Outcome
from pytest_harbor.report.job import write_job


def test_b31_stopped_early_is_graded_and_not_resolved(tmp_path: Path) -> None:
    """Harbor's reward for it is 1.0; whoever averages that has resolved everything."""
    steps = [step("a", 0, gate="min_reward missed"), unreached("b", 1), unreached("c", 2)]
    stopped = episode(
        "d/t/task.toml::t[attempt1]",
        steps,
        Outcome.GATE_STOPPED,
        1 / 3,
        reward_as_harbor=1.0,
    )
    passed = episode("d/t/task.toml::t[attempt2]", attempt=2)
    write_job(tmp_path, [stopped, passed], started_at=START)
    document = json.loads((tmp_path / "summary.json").read_text())
    sums = document["totals"]
    assert (sums["resolved"], sums["valid"], sums["episodes"]) == (1, 2, 2)
    assert sums["mean_reward_valid"] == (1 / 3 + 1) / 2
    [group] = document["groups"]
    assert [row["pass_hat_k"] for row in group["attempts"]["by_k"]] == [0.5, 0.0]
