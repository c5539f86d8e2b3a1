"""The hooks that this plugin calls: what a conftest.py or another plugin may implement.

Hooks of a dataset's conftest.py are called for the tasks below it, like pytest's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pytest_harbor.episode.result import EpisodeResult, StepResult
    from pytest_harbor.settings import Recipe
    from pytest_harbor.task.model import Task


@pytest.hookspec(firstresult=True)
def pytest_harbor_recipe(task: Task, recipe: Recipe) -> Recipe | None:
    """Change how one task is run.

    Called once per episode, after harbor.yaml, ini, environment and options were put together.
    Return the recipe to use instead, made with ``recipe.model_copy(update={...})``, or None to
    leave it as it is. The first implementation that returns one decides.
    """


@pytest.hookspec(firstresult=True)
def pytest_harbor_agent(task: Task, recipe: Recipe) -> Any | None:
    """Provide the agent that works on a task.

    Called once per episode before the built-in agents are looked up by ``recipe.agent.name``.
    Return an agent (see :mod:`pytest_harbor.agents.base`), or None to leave it to others. The
    first implementation that returns one decides.
    """


@pytest.hookspec
def pytest_harbor_step_finished(result: StepResult) -> None:
    """Look at one step of a finished episode, its reward and verdict settled.

    Called in the process that ran the episode (a worker, under ``-n``), for each step in order,
    unreached ones included, before pytest shows the step.
    """


@pytest.hookspec
def pytest_harbor_episode_finished(result: EpisodeResult) -> None:
    """Look at a finished episode.

    Called in the process that ran the episode, once, after the hook for its last step and before
    pytest shows any of it.
    """
