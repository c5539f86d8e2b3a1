"""B10: trouble while a group is removed is a warning beside the grade, and changes nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from live_runs import Dataset, docker, endings, live

pytestmark = pytest.mark.docker

SOMEBODY_JOINS = """
import subprocess

def pytest_harbor_episode_finished(result):
    chosen = ["--filter", f"label=pytest-harbor.episode={result.episode}"]
    network = subprocess.check_output(["docker", "network", "ls", "-q", *chosen], text=True).strip()
    words = ["docker", "run", "-d", "--name", "guest-" + result.task, "--network", network]
    subprocess.run([*words, "debian:bookworm-slim", "sleep", "300"], check=True)
"""
"""A network with a guest cannot be removed."""


def test_b10_a_network_that_cannot_be_removed(tmp_path: Path) -> None:
    dataset = Dataset(tmp_path / "dataset")
    task = dataset.task("task")
    dataset.conftest(SOMEBODY_JOINS)
    with live(dataset) as run:
        assert run.end() == pytest.ExitCode.OK, run.printed
        assert "1 passed in" in run.printed
        left = dataset.left()
        assert len(left) == 2, left  # the network and its guest
        (registered,) = run.state.glob("runs/*/projects/*")  # the janitor does not give it up
        assert f"network {registered.name}_default" in left
        result = run.result(task)
        assert (result["outcome"], result["verdict"], result["reward"]) == ("passed", "passed", 1.0)
        assert endings(run.junit) == {task: None}
        trouble = " ".join(result["warnings"])
        assert "could not be removed" in trouble
        by_hand = "docker compose -p task-"
        assert by_hand in trouble
        assert by_hand in run.printed
        docker("rm", "-f", f"guest-{task}")
        run.assert_nothing_left()
