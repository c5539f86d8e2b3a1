"""What an episode will do, settled and checked before anything is created.

A task that cannot run as written fails here, by name and in no time: unsupported features,
variables that are not set, an agent that cannot use what the task grants.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pytest_harbor.agents.base import Agent, Grant
from pytest_harbor.episode.model_servers import MARK, POLICY, referred, settle, with_policy
from pytest_harbor.errors import RecipeError, TaskError
from pytest_harbor.settings import Recipe
from pytest_harbor.task import templates
from pytest_harbor.task.load import unsupported_features
from pytest_harbor.task.model import Step, Task
from pytest_harbor.user.grants import is_relayable, make_grants, refuse_unfit_agent, url_variables

_SENSITIVE = re.compile(r"KEY|SECRET|TOKEN|PASSW|CREDENTIAL|AUTH", re.IGNORECASE)
_LONG = 16
"""Operator values from this length on are treated as secrets, whatever their name."""


@dataclass(frozen=True)
class Plan:
    """One episode, ready to be started."""

    task: Task
    recipe: Recipe
    agent: Agent
    grants: tuple[Grant, ...]
    main_env: Mapping[str, str]
    """What ``main`` starts with, beside what image and Compose file say."""
    variables: Mapping[str, str]
    """What the Compose file may interpolate, beside the runner's own names."""
    agent_env: Mapping[str, str]
    """For each turn; like the verifier's and ``variables``, with placeholders for model servers."""
    solution_env: Mapping[str, str]
    verifier_envs: tuple[Mapping[str, str], ...]
    """By step."""
    overlays: tuple[Path, ...]
    host_names: tuple[str, ...]
    """Host variables that the task asks for."""
    secrets: tuple[str, ...]
    warnings: tuple[str, ...]
    model: str | None = None
    """What the agent asks the model server ``policy`` for; None for agents that need no model."""

    @property
    def model_servers(self) -> tuple[str, ...]:
        """Names of the model servers that the agent needs or a variable refers to."""
        needed = (POLICY,) if self.model is not None else ()
        return tuple(dict.fromkeys((*needed, *referred(self.recipe))))

    @property
    def relayable(self) -> tuple[Grant, ...]:
        """The granted servers that can be reached by way of the gateway."""
        return tuple(grant for grant in self.grants if is_relayable(grant))

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps to run: all, or those up to the one where the operator stops."""
        name = self.recipe.until_step
        if name is None:
            return self.task.steps
        names = [step.name for step in self.task.steps]
        return self.task.steps[: names.index(name) + 1]


def make_plan(task: Task, recipe: Recipe, agent: Agent, host: Mapping[str, str]) -> Plan:
    """Settle everything that can be settled without Docker.

    ``host`` is the operator's environment. Only what the task's ``env`` tables and MCP headers
    name in templates, and what the recipe fetches, is read from it.

    Raises:
        TaskError: the task needs what this release cannot do, or warns under ``strict``.
        RecipeError: a variable is not set, the recipe names a step that is not there, or the
            agent lacks a model or cannot resume.
        UserError: the agent cannot use a required MCP server.
    """
    _refuse(task, recipe)
    _known_step(task, recipe)
    _can_resume(agent, recipe)
    _has_a_solution(task, agent)
    model = None
    if agent.capabilities.needs_model:
        recipe, model = with_policy(recipe, agent.capabilities.wire)
    environment = task.config.environment
    main_env = templates.resolve_table(environment.env, host, where="[environment.env]")
    grants = make_grants(task.mcp_servers, recipe.task_mcp_grants, host)
    unfit = refuse_unfit_agent(agent, grants, recipe.task_mcp_grants)
    operator = settle(recipe.compose_variables, "compose_variables", recipe, host)
    agent_env = settle(recipe.agent.env, "agent.env", recipe, host)
    verifier_env = settle(recipe.verifier.env, "verifier.env", recipe, host)
    if recipe.sandbox.name != "docker":
        from pytest_harbor.bridge.provider import refuse_unprovided

        refuse_unprovided(task, recipe, agent, grants, referred(recipe))
    asked = _asked(task, agent)
    return Plan(
        task=task,
        recipe=recipe,
        agent=agent,
        grants=grants,
        main_env={**main_env, **url_variables(grants)},
        variables={**main_env, **operator},
        agent_env=agent_env,
        solution_env=_solution_env(task, agent, host),
        verifier_envs=tuple(_verifier_env(step, verifier_env, host) for step in task.steps),
        overlays=tuple(Path(path).absolute() for path in recipe.compose_overlays),
        host_names=tuple(name for name in asked if name in host),
        secrets=tuple(
            _secrets(operator, agent_env, verifier_env, {n: host[n] for n in asked if n in host})
        ),
        warnings=(*task.warnings, *unfit),
        model=model,
    )


def _refuse(task: Task, recipe: Recipe) -> None:
    if missing := unsupported_features(task):
        raise TaskError(
            f"{task.name} needs what this release cannot do yet: {'; '.join(missing)}. "
            "It is not run without, since its reward would mean something else"
        )
    if recipe.strict and task.warnings:
        raise TaskError(f"strict ({recipe.source('strict')}): " + "; ".join(task.warnings))


def _known_step(task: Task, recipe: Recipe) -> None:
    names = [step.name for step in task.steps]
    if recipe.until_step is not None and recipe.until_step not in names:
        raise RecipeError(
            f"{recipe.source('until_step')}: {task.name} has no step {recipe.until_step!r}; "
            f"its steps are {', '.join(names)}"
        )


def _can_resume(agent: Agent, recipe: Recipe) -> None:
    if recipe.agent.resume_sessions and not agent.capabilities.resumes:
        raise RecipeError(
            f"{recipe.source('agent.resume_sessions')}: the agent {agent.name} cannot go on with "
            "an earlier session; leave agent.resume_sessions out, or take another agent"
        )


def _has_a_solution(task: Task, agent: Agent) -> None:
    if agent.capabilities.plays_solution and not any(step.solution for step in task.steps):
        raise TaskError(
            f"{task.name} has no solution for the agent {agent.name} to play: there is no "
            "solution/solve.sh in it nor in a step. Write one, or take another agent"
        )


def _solution_env(task: Task, agent: Agent, host: Mapping[str, str]) -> Mapping[str, str]:
    if not agent.capabilities.plays_solution:
        return {}
    return templates.resolve_table(task.config.solution.env, host, where="[solution.env]")


def _verifier_env(
    step: Step, operator: Mapping[str, str], host: Mapping[str, str]
) -> Mapping[str, str]:
    where = "[verifier.env]" if step.implicit else f"[verifier.env] of step {step.name}"
    own = {name: value for name, value in step.verifier_env.items() if name not in operator}
    return {**templates.resolve_table(own, host, where=where), **operator}


def _asked(task: Task, agent: Agent) -> tuple[str, ...]:
    """Names of host variables that the task's tables refer to, in order, each once."""
    values = [*task.config.environment.env.values()]
    for step in task.steps:
        values += step.verifier_env.values()
    if agent.capabilities.plays_solution:
        values += task.config.solution.env.values()
    headers = [value for server in task.mcp_servers for value in server.headers.values()]
    found = templates.referenced_names(values)
    found += templates.referenced_names(headers, embedded=True)
    return tuple(dict.fromkeys(reference.name for reference in found))


def _secrets(*tables: Mapping[str, str]) -> Iterable[str]:
    for table in tables:
        for name, value in table.items():
            if MARK not in value and (_SENSITIVE.search(name) or len(value) >= _LONG):
                yield value
