"""B02: SIGTERM (CI cancels, a pod stops) ends a run as Ctrl-C does."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from live_runs import HOW_MANY, at_work

pytestmark = pytest.mark.docker


@pytest.mark.parametrize(
    ("how", "to_all"),
    [("serial", True), ("two workers", True), ("two workers", False)],
    ids=["serial", "two workers", "controller only"],
)
def test_b02_sigterm(how: str, to_all: bool, tmp_path: Path) -> None:
    with at_work(tmp_path, *HOW_MANY[how]) as at:
        at.run.send(signal.SIGTERM, group=to_all)
        assert at.run.end() == pytest.ExitCode.INTERRUPTED
        at.run.assert_nothing_left()
        at.assert_results()
        at.assert_reports()
