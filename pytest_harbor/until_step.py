"""``task.toml::task::step`` on the command line: run the task, but only until that step.

The steps of an episode share one container, so a step cannot run without those before it. pytest
knows no such argument; it is taken for ``task.toml::task`` plus what ``--harbor-until-step`` says,
for that task alone.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_harbor.guard import TASK_FILE
from pytest_harbor.recipe import Layer
from pytest_harbor.task.outline import read_outline

_UNTIL = pytest.StashKey[dict[Path, tuple[str, str]]]()


def take_step_arguments(config: pytest.Config) -> None:
    """Rewrite such arguments before pytest collects, and remember the steps.

    Raises:
        pytest.UsageError: the task has no such step, or is named with two.
    """
    until = config.stash.setdefault(_UNTIL, {})
    for position, argument in enumerate(config.args):
        file_part, _, selection = argument.partition("::")
        task, _, step = selection.rpartition("::")
        path = config.invocation_params.dir / file_part
        if not task or path.name != TASK_FILE:
            continue
        _check_step(path, step, argument)
        known, _ = until.setdefault(path.parent, (step, argument))
        if known != step:
            raise pytest.UsageError(f"{argument}: the task is also to stop after {known}")
        config.args[position] = f"{file_part}::{task}"


def _check_step(path: Path, step: str, argument: str) -> None:
    outline = read_outline(path)
    if outline.error is None and step not in outline.steps:
        names = ", ".join(outline.steps) or "none, it is a single-step task"
        raise pytest.UsageError(f"{argument}: no such step; the steps of the task: {names}")


def step_layers(config: pytest.Config, task_folder: Path) -> list[Layer]:
    """The recipe layer for a task that was named with a step; else none."""
    found = config.stash.get(_UNTIL, {}).get(task_folder)
    if found is None:
        return []
    step, argument = found
    return [Layer({"until_step": step}, {"until_step": f"the argument {argument}"})]
