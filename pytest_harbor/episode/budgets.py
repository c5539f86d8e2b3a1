"""What the recipe says about time, handed to the one resolver."""

from __future__ import annotations

from pytest_harbor.settings import PhaseTable, Recipe
from pytest_harbor.task.model import Step, Task
from pytest_harbor.task.timeouts import Budget, Declared, Phase, resolve

_TABLES: dict[Phase, str] = {
    "environment start": "start",
    "agent setup": "setup",
    "step setup": "setup",
    "agent": "agent",
    "verifier": "verifier",
}


def start_budget(task: Task, recipe: Recipe) -> Budget:
    """Time for building, pulling and starting the group, in seconds."""
    seconds = task.config.environment.build_timeout_sec
    return _budget(
        "environment start", recipe, Declared(seconds, "[environment] build_timeout_sec")
    )


def setup_budget(recipe: Recipe) -> Budget:
    """Time for setting up the agent, in seconds."""
    return _budget("agent setup", recipe)


def step_setup_budget(recipe: Recipe) -> Budget:
    """Time for a step's setup.sh, in seconds."""
    return _budget("step setup", recipe)


def agent_budget(step: Step, recipe: Recipe) -> Budget:
    """Time for a turn, in seconds."""
    return _budget("agent", recipe, step.agent_timeout)


def verifier_budget(step: Step, recipe: Recipe) -> Budget:
    """Time for test.sh alone, in seconds."""
    return _budget("verifier", recipe, step.verifier_timeout)


def _budget(phase: Phase, recipe: Recipe, declared: Declared | None = None) -> Budget:
    name = _TABLES[phase]
    table: PhaseTable = getattr(recipe.timeouts, name)
    own = table.multiplier is not None
    key = f"timeouts.{name}.multiplier" if own else "timeouts.multiplier"
    return resolve(
        phase,
        declared,
        multiplier=table.multiplier if table.multiplier is not None else recipe.timeouts.multiplier,
        multiplier_source=recipe.source(key),
        cap=table.cap,
        cap_source=recipe.source(f"timeouts.{name}.cap"),
        override=table.seconds,
        override_source=recipe.source(f"timeouts.{name}.seconds"),
    )
