"""What a run leaves behind when it is ended in the worst moments: nothing, and whole results.

One Ctrl-C, SIGTERM and the death of one worker are B01, B02 and B04 in tests/behaviours; what
removes the rest, and what it spares, is in test_leftovers.py.
"""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest
from live_runs import HOW_MANY, SIDECAR, SLEEPS, Dataset, at_work, docker, live


@pytest.mark.parametrize("how", HOW_MANY)
def test_double_ctrl_c(how: str, tmp_path: Path) -> None:
    with at_work(tmp_path, *HOW_MANY[how]) as at:
        at.run.send(signal.SIGINT, signal.SIGINT)
        assert at.run.end() in (pytest.ExitCode.INTERRUPTED, -signal.SIGINT)
        at.run.assert_nothing_left()
        at.assert_results()


@pytest.mark.parametrize("how", HOW_MANY)
def test_sigkill_of_everything(how: str, tmp_path: Path) -> None:
    with at_work(tmp_path, *HOW_MANY[how]) as at:
        at.run.send(signal.SIGKILL)
        assert at.run.end() == -signal.SIGKILL
        at.run.assert_nothing_left()
        at.assert_results()


# -- before the groups are up ------------------------------------------------------------------

NEVER_READY = """
services:
  main: {}
  first:
    image: debian:bookworm-slim
    command: sleep infinity
    volumes: ["kept:/kept"]
    healthcheck: {test: "exit 1", interval: 1s, retries: 500}
  second:
    image: debian:bookworm-slim
    command: sleep infinity
    depends_on: {first: {condition: service_healthy}}
volumes: {kept: {}}
"""
"""Compose waits for the first service before it starts the second."""


@pytest.mark.parametrize(
    ("number", "to_whom"),
    [
        (signal.SIGINT, "all"),
        (signal.SIGTERM, "controller"),
        (signal.SIGKILL, "all"),
        (signal.SIGKILL, "workers"),
    ],
    ids=["ctrl-c", "sigterm to the controller", "sigkill", "sigkill of the workers"],
)
def test_while_compose_starts_a_group_and_builds_an_image(
    number: signal.Signals, to_whom: str, tmp_path: Path
) -> None:
    dataset = Dataset(tmp_path / "dataset")
    starts = dataset.task("starts", compose=NEVER_READY)
    dockerfile = f"FROM debian:bookworm-slim\nRUN sleep 500 && echo {dataset.tag}\n"
    builds = dataset.task("builds", **{"environment/Dockerfile": dockerfile})
    with live(dataset, "-n", "2") as run:
        run.until(lambda: f"container {starts}" in " ".join(dataset.left()))
        run.until(lambda: len(in_the_making(dataset)) == 1)
        run.until(lambda: len(run.helpers()) == 2)
        if to_whom == "workers":
            run.send(signal.SIGSTOP, group=False)  # no new ones, until these are gone
            for pid in children(run.process.pid):
                os.kill(pid, number)
            run.send(signal.SIGKILL, group=False)
        else:
            run.send(number, group=to_whom == "all")
        run.end()
        run.assert_nothing_left()
        assert in_the_making(dataset) == []
        assert builds not in docker("image", "ls", "--format", "{{.Repository}}")
        for task in (starts, builds):
            assert run.outcome(task) == "interrupted", run.result(task)
        if number != signal.SIGKILL:
            assert run.process.returncode == pytest.ExitCode.INTERRUPTED
            page = (run.job / "report.html").read_text()
            assert starts in page
            assert builds in page


def in_the_making(dataset: Dataset) -> list[str]:
    """What the engine runs for a dataset's image; needs an engine on this machine."""
    found = subprocess.run(
        ["pgrep", "-f", f"^/bin/sh -c sleep 500 && echo {dataset.tag}"],
        capture_output=True,
        text=True,
        check=False,
    )
    return found.stdout.split()


def children(pid: int) -> list[int]:
    """The processes that a process started."""
    found = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False)
    return [int(word) for word in found.stdout.split()]


IN_A_THREAD = """
import sys, threading, pytest
codes = []
thread = threading.Thread(target=lambda: codes.append(pytest.main(sys.argv[1:])))
thread.start()
thread.join()
sys.exit(codes[0])
"""


def test_a_run_in_a_thread(tmp_path: Path) -> None:
    """No signal can be handled there: it runs all the same, and the janitor does the rest."""
    dataset = Dataset(tmp_path / "dataset")
    finished = dataset.task("done")
    stopped = dataset.task("side", SLEEPS, compose=SIDECAR)
    with live(dataset, program=("-c", IN_A_THREAD)) as run:
        run.until_works(stopped)
        run.send(signal.SIGTERM)
        assert run.end() == -signal.SIGTERM
        run.assert_nothing_left()
        assert run.outcome(finished) == "passed"
        assert run.outcome(stopped) == "interrupted"
