"""B01: one Ctrl-C ends a run in order and leaves nothing, also when xdist cuts a teardown off."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from live_runs import HOW_MANY, at_work

pytestmark = pytest.mark.docker

SLOW_TEARDOWN = """
import time
import pytest

@pytest.fixture(autouse=True)
def slow(request, harbor_compose):
    yield
    if request.node.name.startswith("side"):
        time.sleep(30)
"""


@pytest.mark.parametrize("how", HOW_MANY)
def test_b01_ctrl_c(how: str, tmp_path: Path) -> None:
    with at_work(tmp_path, *HOW_MANY[how]) as at:
        at.run.send(signal.SIGINT)
        assert at.run.end() == pytest.ExitCode.INTERRUPTED
        at.run.assert_nothing_left()
        at.assert_results()
        at.assert_reports()


def test_b01_a_teardown_that_takes_longer_than_xdist_waits(tmp_path: Path) -> None:
    """xdist interrupts it after five seconds, before it comes to the group."""
    with at_work(tmp_path, "-n", "2", conftest=SLOW_TEARDOWN) as at:
        at.run.send(signal.SIGINT)
        assert at.run.end() == pytest.ExitCode.INTERRUPTED
        at.run.assert_nothing_left()
        at.assert_results()
        at.assert_reports()
