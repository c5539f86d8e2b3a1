"""B113: pass@k is told whatever single rewards are, with the number it is taken over."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fake_datasets import run, write_task
from sample_job import START, episode

from pytest_harbor.episode.outcome import Outcome
from pytest_harbor.episode.result import EpisodeResult
from pytest_harbor.report.job import write_job
from pytest_harbor.report.lines import render_numbers
from pytest_harbor.report.numbers import numbers

FRACTION = (Outcome.FAILED, 0.5)
ENOUGH = (Outcome.PASSED, 0.5)
"""The same reward under a pass rule that is content with it."""
PASSED = (Outcome.PASSED, 1.0)
FAILED = (Outcome.FAILED, 0.0)
ERROR = (Outcome.START_FAILED, None)


def attempts(task: str, *ends: tuple[Outcome, float | None]) -> list[EpisodeResult]:
    return [
        episode(
            f"d/{task}/task.toml::{task}[attempt{number}]",
            outcome=outcome,
            reward=reward,
            attempt=number,
        )
        for number, (outcome, reward) in enumerate(ends, 1)
    ]


@pytest.mark.parametrize(("half", "passed"), [(FRACTION, 1), (ENOUGH, 2)])
def test_b113_a_fraction_and_an_error_hide_nothing(half: Any, passed: int) -> None:
    found = numbers(Path("nowhere"), attempts("t", PASSED, half, ERROR))
    [group] = found.groups
    assert [(row.k, row.tasks, row.left_out) for row in group.attempts.by_k] == [
        (1, 1, 0),
        (2, 1, 0),
    ]
    assert group.attempts.by_k[0].pass_at.value == passed / 2
    assert group.attempts.by_k[1].pass_at.value == 1.0
    assert group.attempts.by_k[1].pass_hat.value == passed - 1
    assert any("3 attempts at 1 task, 2 graded" in line for line in render_numbers(found))


def test_b113_an_error_is_no_failed_attempt() -> None:
    """Counted as a failure it would halve pass^2."""
    results = [*attempts("a", PASSED, PASSED, ERROR), *attempts("b", PASSED, PASSED, PASSED)]
    [group] = numbers(Path("nowhere"), results).groups
    assert [row.pass_hat.value for row in group.attempts.by_k] == [1.0, 1.0, 1.0]
    assert [row.left_out for row in group.attempts.by_k] == [0, 0, 1]


def written(tmp_path: Path, results: list[EpisodeResult]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Harbor's statistics of the group, and ours."""
    write_job(tmp_path / "job", results, started_at=START)
    theirs = json.loads((tmp_path / "job" / "result.json").read_text())["stats"]["evals"]
    ours = json.loads((tmp_path / "job" / "summary.json").read_text())["groups"]
    return next(iter(theirs.values())), ours[0]


def test_b113_harbors_file_keeps_harbors_rule_and_ours_says_more(tmp_path: Path) -> None:
    plain = [*attempts("a", PASSED, FAILED, FAILED, ERROR), *attempts("b", FAILED, FAILED)]
    theirs, ours = written(tmp_path, plain)
    assert theirs["pass_at_k"] == {"2": pytest.approx(1 / 3)}
    assert [row["k"] for row in ours["attempts"]["by_k"]] == [1, 2, 3]
    theirs, ours = written(tmp_path, attempts("a", PASSED, FRACTION))
    assert theirs["pass_at_k"] == {}
    assert [row["pass_at_k"] for row in ours["attempts"]["by_k"]] == [0.5, 1.0]


def test_b113_harbors_own_choice_of_k(tmp_path: Path) -> None:
    theirs, _ = written(tmp_path, attempts("a", *[PASSED] * 11))
    assert list(theirs["pass_at_k"]) == ["2", "4", "5", "8", "10"]


def test_b113_a_run_writes_and_shows_it(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\n")
    (write_task(pytester.path / "ds" / "broken") / "task.toml").write_text("[agent")
    result = run(pytester, "--harbor-attempts=2", "--harbor-job-name=j", "--harbor-jobs-dir=jobs")
    result.assert_outcomes(errors=2)
    result.stdout.fnmatch_lines(
        [
            "0 of 0 graded episodes resolved",
            "2 of 2 not graded: 2 task_invalid",
            "  2 attempts at 1 task, 0 graded",
            "run folder: jobs/j",
        ]
    )
    document = json.loads((pytester.path / "jobs" / "j" / "summary.json").read_text())
    assert document["totals"]["excluded"] == {"task_invalid": 2}
    [group] = document["groups"]
    assert group["attempts"]["by_k"] == []
    assert group["attempts"]["by_task"][0]["episodes"] == 2
    assert all("task.toml" in each["why"] for each in document["excluded"])
