"""Datasets for tests of the plugin: task folders full of traps, and episodes that cost nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import pytest_harbor.episode.result  # noqa: F401 (so that runs inside this process share it)

TRAP = 'open({mark!r}, "a").write(__file__ + "\\n")\nraise SystemExit("TASK CODE RUN")\n'
TASK_TOML = '[metadata]\ndifficulty = "easy"\n'
STEPS_TOML = """\
[metadata]
difficulty = "hard"
est-minutes = 5
tags = ["C++", "web-dev"]
[[steps]]
name = "plan"
[[steps]]
name = "build"
[[steps]]
name = "test"
"""

EPISODES = '''
"""Episodes of a test dataset: each task's episode.json says how its episode ends."""
import json
from datetime import datetime, timedelta, timezone

import pytest
from pytest_harbor.episode.result import EpisodeResult, Interval, StepResult

START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)


def ran(seconds):
    finished = START + timedelta(seconds=seconds)
    return Interval(started_at=START, finished_at=finished, seconds=seconds)


class FakeEpisode:
    def __init__(self, item, attempt):
        self.folder = f"jobs/job/{item.name}"
        self._item, self._attempt = item, attempt

    def run(self):
        folder = self._item.task.folder
        path = folder / "episode.json"
        told = json.loads(path.read_text()) if path.is_file() else {}
        if "raises" in told:
            raise RuntimeError(told["raises"])
        steps = tuple(
            StepResult(index=index, ran=ran(step.pop("seconds", 1.5)), **step)
            for index, step in enumerate(told.pop("steps", []))
        )
        values = {"outcome": "passed", "reward": 1.0, "verdict": "passed", **told}
        return EpisodeResult(
            episode=self._item.name, key=self._item.nodeid, task=folder.name,
            task_path=str(folder), attempt=self._attempt, steps=steps, steps_total=len(steps),
            ran=ran(2), **values,
        )


@pytest.fixture
def harbor_episode(request, harbor_attempt):
    return FakeEpisode(request.node, harbor_attempt)
'''


def write_task(folder: Path, toml: str = TASK_TOML, **episode: Any) -> Path:
    """A task folder; keywords say how its fake episode ends."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "task.toml").write_text(toml, encoding="utf-8")
    (folder / "instruction.md").write_text("Do it.\n", encoding="utf-8")
    if episode:
        (folder / "episode.json").write_text(json.dumps(episode), encoding="utf-8")
    return folder


def set_traps(task: Path, mark: Path) -> None:
    """Python in every place of a task where pytest might run it; what runs leaves a mark."""
    trap = TRAP.format(mark=str(mark))
    for name in (
        "conftest.py",
        "test_task.py",
        "setup.py",
        "tests/conftest.py",
        "tests/test_outputs.py",
        "tests/__init__.py",
        "test_more/conftest.py",
        "test_more/test_it.py",
        "environment/conftest.py",
        "environment/test_app.py",
        "solution/test_solution.py",
        "steps/plan/tests/conftest.py",
        "steps/plan/tests/test_plan.py",
    ):
        path = task / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(trap, encoding="utf-8")


def run(pytester: pytest.Pytester, *args: object, inside: bool | None = None) -> pytest.RunResult:
    """Run pytest on what a test laid out, without plugins that only cost time.

    ``inside`` this process it is five times as fast; it is done so unless there are workers.
    """
    inside = not any(str(arg).startswith("-n") for arg in args) if inside is None else inside
    calm = ("-W", "default::pytest_harbor.collection.HarborWarning")
    words = ("-p", "no:anyio", "-p", "no:hypothesispytest", *calm, *map(str, args))
    return pytester.runpytest_inprocess(*words) if inside else pytester.runpytest_subprocess(*words)


def listed(result: pytest.RunResult) -> list[str]:
    """The node ids in the output of ``--collect-only -q``."""
    return [line for line in result.outlines if "::" in line and " " not in line.split("::")[0]]


def collect(pytester: pytest.Pytester, *args: object, inside: bool | None = None) -> list[str]:
    """The node ids that pytest collects, which must succeed."""
    result = run(pytester, "--collect-only", "-q", *args, inside=inside)
    done = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
    assert result.ret in done, result.outlines + result.errlines
    return [line for line in result.outlines if "::" in line]
