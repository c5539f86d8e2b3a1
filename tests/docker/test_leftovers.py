"""What dead runs left goes with the next run, or when asked; what lives or is kept is spared."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from live_runs import (
    SIDECAR,
    Dataset,
    LiveRun,
    a_dead_process,
    docker,
    leave,
    live,
)

from pytest_harbor.sandbox.labels import Owner

UNTIL_TOLD = "until [ -e /tmp/go-on ]; do sleep 0.2; done"


def of(dataset: Dataset, project: str) -> list[str]:
    """What is left of a project."""
    return [name for name in dataset.left() if project in name]


def test_a_run_begins_with_a_sweep(tmp_path: Path) -> None:
    dataset = Dataset(tmp_path / "dataset")
    task = dataset.task("task")
    dead = leave(dataset, "dead", a_dead_process())
    expired = leave(dataset, "old", a_dead_process(), **{"pytest-harbor.owner-host": "elsewhere",
                    "pytest-harbor.expires": "1000000000"})  # fmt: skip
    kept = leave(dataset, "kept", a_dead_process(), **{"pytest-harbor.keep": "yes"})
    alive = leave(dataset, "alive", Owner.of_this_process("another"))
    try:
        with live(dataset) as run:
            assert run.end() == pytest.ExitCode.OK, run.printed
            assert run.outcome(task) == "passed"
            assert of(dataset, dead) == []
            assert of(dataset, expired) == []
            assert len(of(dataset, kept)) == 3
            assert len(of(dataset, alive)) == 3
    finally:
        for project in (dead, expired, kept, alive):
            remove(dataset, project)


def test_clean_spares_the_living_and_says_what_it_removes(tmp_path: Path) -> None:
    living, dataset = Dataset(tmp_path / "living"), Dataset(tmp_path / "dataset")
    works = living.task("works", UNTIL_TOLD, compose=SIDECAR)
    dataset.task("kept", compose=SIDECAR)
    state = tmp_path / "state"
    with (
        live(living, state=state) as run,
        live(dataset, "--harbor-keep", state=state) as keeps,
    ):
        assert keeps.end() == pytest.ExitCode.OK, keeps.printed
        (project,) = set(docker("ps", "--filter", f"name=kept-{dataset.tag}", "--format",
                                '{{.Label "com.docker.compose.project"}}').split())  # fmt: skip
        assert len(of(dataset, project)) == 4
        assert f"docker compose -p {project} down" in keeps.printed
        run.until_works(works)
        leave(dataset, "dead", a_dead_process())
        before = living.left()
        done = clean(state)
        assert dataset.left() == []
        assert living.left() == before
        assert f"  of {project}\n" in done
        assert living.tag not in done
        run.inside(works, "touch /tmp/go-on")
        assert run.end() == pytest.ExitCode.OK, run.printed
        run.assert_nothing_left()


def clean(state: Path) -> str:
    """What ``pytest --harbor-clean`` prints, called where no test is."""
    state.mkdir(exist_ok=True)
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--harbor-clean"],
        cwd=state.parent,
        env=LiveRun.environment(state),
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert run.stderr == ""
    return run.stdout


def remove(dataset: Dataset, project: str) -> None:
    """Remove what a test made itself."""
    for thing in of(dataset, project):
        kind, _, name = thing.partition(" ")
        docker(kind, "rm", "-f", name)


def test_two_runs_of_the_same_tasks_at_the_same_time(tmp_path: Path) -> None:
    """They share the folder, the state and the image; each has groups and a janitor of its own."""
    dataset = Dataset(tmp_path / "dataset")
    dockerfile = f"FROM debian:bookworm-slim\nRUN sleep 1; echo {dataset.tag}\n"
    builds = dataset.task("builds", minutes=60, **{"environment/Dockerfile": dockerfile})
    works = dataset.task("works", UNTIL_TOLD, compose=SIDECAR)
    try:
        with (
            live(dataset, name="first") as first,
            live(dataset, "-n", "2", name="second") as second,
        ):
            first.until_works(works)
            second.until_works(works)
            assert first.outcome(builds) == "passed"
            second.until(lambda: second.outcome(builds) == "passed")
            assert len(of(dataset, works)) == 8
            names = docker("network", "ls", "-q", "--filter", f"name={works}").split()
            template = "{{range .IPAM.Config}}{{.Subnet}}{{end}}"
            subnets = docker("network", "inspect", "--format", template, *names).split()
            assert len(set(subnets)) == 2
            images = docker("image", "ls", "-q", f"pytest-harbor/{builds}-main").split()
            assert len(images) == 1
            assert len(first.janitors()) == 2

            second.send(signal.SIGKILL)
            second.end()
            first.until(lambda: len(of(dataset, works)) == 4 and len(first.janitors()) == 1)
            first.inside(works, "touch /tmp/go-on")
            assert first.end() == pytest.ExitCode.OK, first.printed
            first.assert_nothing_left()
            assert {task: first.outcome(task) for task in (builds, works)} == {
                builds: "passed",
                works: "passed",
            }
            assert second.outcome(works) == "interrupted"
    finally:
        for image in set(docker("image", "ls", "-q", f"pytest-harbor/{builds}-main").split()):
            docker("image", "rm", "-f", image)
