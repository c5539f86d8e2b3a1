"""The run as a process: its folder, its signal handler, its off-switch."""

from __future__ import annotations

import sys

import pytest
from fake_datasets import EPISODES, write_task

from pytest_harbor.job import open_job

TELLS_HANDLER = """
import signal

def test_handler():
    found = signal.getsignal(signal.SIGTERM)
    print("during:", "default" if found == signal.SIG_DFL else found.__name__)
"""

HOST = """
import signal, sys, threading, pytest

def mine(*_): pass

def run():
    pytest.main(["-q", "-s", "-p", "no:cacheprovider", "test_it.py"])

how = sys.argv[1]
if how == "own handler":
    signal.signal(signal.SIGTERM, mine)
if how == "thread":
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
else:
    run()
found = signal.getsignal(signal.SIGTERM)
print("after:", "default" if found == signal.SIG_DFL else found.__name__)
"""


@pytest.mark.parametrize(
    ("how", "during", "after"),
    [
        ("plain", "stop", "default"),
        ("own handler", "mine", "mine"),
        ("thread", "default", "default"),
    ],
)
def test_sigterm_is_handled_where_nobody_else_has_a_say(
    how: str, during: str, after: str, pytester: pytest.Pytester
) -> None:
    pytester.makepyfile(test_it=TELLS_HANDLER)
    host = pytester.makepyfile(host=HOST)
    result = pytester.run(sys.executable, host, how)
    told = dict(line.split(": ") for line in result.outlines if line.startswith(("dur", "aft")))
    assert told == {"during": during, "after": after}


def test_runs_of_one_second_have_folders_of_their_own(pytester: pytest.Pytester) -> None:
    config = pytester.parseconfig()
    jobs = [open_job(config) for _ in range(2)]
    assert len({job.folder for job in jobs}) == 2
    assert len({job.run_id for job in jobs}) == 2
    assert all(job.folder.parent == pytester.path / "jobs" for job in jobs)
    named = pytester.parseconfig("--harbor-job-name", "mine")
    assert open_job(named).folder == pytester.path / "jobs" / "mine"


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_the_plugin_can_be_switched_off(
    workers: tuple[str, ...], pytester: pytest.Pytester
) -> None:
    pytester.makeconftest(EPISODES)
    pytester.makepyfile(test_own="def test_own(): pass\n")
    write_task(pytester.path / "ds" / "task")
    result = pytester.runpytest_subprocess("-p", "no:harbor", *workers)
    result.assert_outcomes(passed=1)
    assert "harbor" not in pytester.runpytest_subprocess("-p", "no:harbor", "--help").stdout.str()
