"""B20: of several nested limits, the one that fired is named, with the time that it took."""

from __future__ import annotations

import pytest
from boxes import a_box

from pytest_harbor.sandbox.container import Entry
from pytest_harbor.task.timeouts import Budget, Deadline

pytestmark = pytest.mark.docker


def test_the_inner_limit_is_named() -> None:
    outer = Deadline.after(60, "agent budget of step plan")
    inner = Deadline.after(Budget(1.0, "1 s ([verifier.collect] timeout_sec)"), "collect hook")
    with a_box() as box:
        ran = box.run("sleep 20", deadline=inner.sooner(outer))
        assert ran.timed_out
        assert ran.limit == "collect hook: 1 s ([verifier.collect] timeout_sec), after 1 s"
        box.put([Entry("/logs", None)])
        later = Deadline.after(0.5, "agent budget of step plan").sooner(Deadline.after(60, "job"))
        ran = box.run_logged("sleep 20", log="/logs/x", deadline=later)
        assert ran.limit.startswith("agent budget of step plan, after 0.")
        assert ran.seconds == pytest.approx(0.5, abs=0.4)


def test_none_is_named_when_none_fired() -> None:
    with a_box() as box:
        assert box.run("true", deadline=Deadline.after(60, "plenty")).limit == ""
        assert box.run("true", deadline=Deadline.never("no limit")).exit_code == 0
