"""The deadline; the resolver's table is tests/behaviours/test_b19_timeouts.py."""

from __future__ import annotations

import pytest

from pytest_harbor.task import timeouts
from pytest_harbor.task.timeouts import Budget, Deadline


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that stands still until a test moves it."""
    now = [100.0]
    monkeypatch.setattr(timeouts.time, "monotonic", lambda: now[0])
    return now


def test_a_deadline_comes(clock: list[float]) -> None:
    deadline = Deadline.after(5, "exec limit")
    assert deadline.remaining() == 5
    assert not deadline.expired
    clock[0] += 4.9
    assert not deadline.expired
    clock[0] += 0.1
    assert deadline.expired
    clock[0] += 60
    assert deadline.remaining() == 0
    assert deadline.elapsed == 65


def test_no_limit(clock: list[float]) -> None:
    deadline = Deadline.after(None)
    clock[0] += 1e9
    assert deadline.remaining() is None
    assert not deadline.expired
    assert Deadline.never().ends is None


def test_of_two_the_sooner_keeps_its_name(clock: list[float]) -> None:
    step = Deadline.after(60, "agent budget")
    clock[0] += 10
    inner = Deadline.after(1, "exec limit")
    for one in (inner.sooner(step), step.sooner(inner)):
        assert one.what == "exec limit"
        assert one.remaining() == 1
    clock[0] += 49.5
    late = Deadline.after(1, "exec limit")
    assert late.sooner(step).what == "agent budget"


def test_a_limit_is_sooner_than_none(clock: list[float]) -> None:
    limited, unlimited = Deadline.after(5, "a"), Deadline.after(None, "b")
    assert limited.sooner(unlimited) is limited
    assert unlimited.sooner(limited) is limited
    assert limited.sooner(None) is limited
    assert unlimited.sooner(None) is unlimited


def test_it_says_which_limit_fired_and_when(clock: list[float]) -> None:
    deadline = Deadline.after(Budget(600.0, "600 s ([agent] timeout_sec)"), "agent")
    clock[0] += 180.04
    assert deadline.describe() == "agent: 600 s ([agent] timeout_sec), after 180 s"


def test_the_budget_names_the_deadline_where_nobody_else_does(clock: list[float]) -> None:
    assert Deadline.after(Budget(1.0, "1 s (default)")).what == "1 s (default)"
    assert Deadline.after(2.0).describe() == "time limit, after 0 s"
