"""B87: episodes whose simulated user failed are in no rate, and are counted where one looks."""

from __future__ import annotations

from pathlib import Path

import pytest
from sample_job import episode, fault

from pytest_harbor.episode.outcome import Outcome
from pytest_harbor.report.numbers import numbers, summary
from pytest_harbor.report.summary import render_totals

USERS_FAULTS = (Outcome.USER_DEGRADED, Outcome.USER_LOST, Outcome.MCP_UNAVAILABLE)


@pytest.mark.parametrize("outcome", USERS_FAULTS)
@pytest.mark.parametrize("reward", [None, 0.0, 1.0])
def test_b87_in_no_rate(outcome: Outcome, reward: float | None) -> None:
    broken = fault(outcome, "agent", "its model answered with status 401")
    results = [
        episode("d/t/task.toml::t[attempt1]", attempt=1),
        episode("d/t/task.toml::t[attempt2]", (), outcome, reward, attempt=2, fault=broken),
        episode("d/t/task.toml::t[attempt3]", (), Outcome.FAILED, 0.0, attempt=3),
    ]
    found = numbers(Path("nowhere"), results)
    assert (found.whole.sums.resolved, found.whole.sums.valid) == (1, 2)
    [group] = found.groups
    assert [row.pass_at.value for row in group.attempts.by_k] == [0.5, 1.0]
    document = summary("job", found)
    assert document["totals"]["excluded"] == {outcome.value: 1}
    [excluded] = document["excluded"]
    assert excluded["outcome"] == outcome.value
    assert f"1 of 3 not graded: 1 {outcome}" in render_totals(found.whole.sums)
