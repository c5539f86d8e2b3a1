"""B50: a worker that dies takes no finished step with it."""

from __future__ import annotations

import pytest
from junit_tools import cases
from played import key_of, play
from sample_job import episode, step, unreached

from pytest_harbor.episode.outcome import Outcome


def test_b50_two_steps_passed_and_then_the_worker_died(pytester: pytest.Pytester) -> None:
    killed = episode(
        key_of("t1"),
        steps=[
            step("a", 0, verdict="skipped"),
            step("b", 1, verdict="skipped"),
            unreached("c", 2, ""),
        ],
        outcome=Outcome.INTERRUPTED,
        reward=None,
        verdict_reason="",
    )
    fine = episode(key_of("t2"), steps=[step("a", 0)])
    found = cases(play(pytester, [killed, fine], "-n2"))
    ours = [(each.name.removeprefix("test_task"), each.ending) for each in found]
    assert [each for each in ours if each[0].startswith("[")] == [
        ("[t1]", "error"),
        ("[t1][a]", None),
        ("[t1][b]", None),
        ("[t1][c]", "skipped"),
        ("[t2]", None),
        ("[t2][a]", None),
    ]
    task = next(each for each in found if each.name == "test_task[t1]")
    assert "crashed while running" in task.text
    assert task.properties["harbor.steps_run"] == "2"
    assert "harbor.reward" not in task.properties
