"""An agent of Harbor's in our group: ``harbor:<name>``, or ``harbor:module:Class``.

Each turn is a fresh agent of Harbor's, as each turn is a fresh session. What it installs is
installed once, when the episode sets it up.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pytest_harbor.agents.base import (
    ALL_TRANSPORTS,
    Agent,
    Capabilities,
    Grant,
    ModelDoor,
    Turn,
    TurnResult,
)
from pytest_harbor.bridge.door import PREFIX, require_harbor
from pytest_harbor.bridge.provided_ground import processes_of
from pytest_harbor.bridge.scene import Scene
from pytest_harbor.errors import AgentError, RecipeError
from pytest_harbor.sandbox.container import Container
from pytest_harbor.task.timeouts import Deadline

if TYPE_CHECKING:
    from pytest_harbor.settings import AgentTable, Recipe

_KEY: Final = "PYTEST_HARBOR_MODEL_KEY"
"""The variable that Harbor is told to take a model's key from, lest it looks for one elsewhere."""
_SECRET: Final = re.compile(r"KEY|SECRET|TOKEN|PASSW|CREDENTIAL|AUTH", re.IGNORECASE)
_TRAJECTORY: Final = "trajectory.json"
_SWEEP_SECONDS: Final = 30.0


def find_harbor_agent(recipe: Recipe) -> Agent:
    """The agent of Harbor's that the recipe names.

    Raises:
        RecipeError: Harbor is not there, or knows no such agent.
    """
    choice, source = recipe.agent, recipe.source("agent.name")
    require_harbor(source)
    from harbor.agents.factory import AgentFactory
    from harbor.models.trial.config import AgentConfig

    name = choice.name.removeprefix(PREFIX)
    try:
        found = AgentFactory.get_agent_class_from_config(AgentConfig(name=name))
    except (ImportError, TypeError, ValueError) as error:
        known = ", ".join(AgentFactory.registered_names())
        raise RecipeError(
            f"{source}: Harbor has no agent {name!r} ({error}); it knows {known}, and module:Class"
        ) from error
    return HarborAgent(choice, found)


class HarborAgent(Agent):
    """One of Harbor's agents, in the clothes of ours."""

    def __init__(self, choice: AgentTable, kind: Any) -> None:
        from harbor.agents.installed.base import BaseInstalledAgent

        self.name = choice.name
        self.version = choice.version or ""
        self.model = choice.model
        self._kind = kind
        self._options = dict(choice.options)
        self._env = {name: value for name, value in choice.env.items() if isinstance(value, str)}
        self._is_installed = issubclass(kind, BaseInstalledAgent)
        self._plays_solution = kind.name() == "oracle"
        asks = kind.MODEL_CONNECTION is not None and kind.capabilities.base_url
        self.capabilities = Capabilities(
            is_utility=kind.name() in ("oracle", "nop"),
            mcp_transports=ALL_TRANSPORTS if kind.capabilities.mcp_servers else frozenset(),
            needs_model=asks,
            needs_network=asks and self._is_installed,
            plays_solution=self._plays_solution,
        )

    def setup(self, container: Container, *, user: str | int | None, deadline: Deadline) -> None:
        """Let it install itself; what that leaves running would live on in every turn, and ends.

        Raises:
            AgentError: it cannot be installed here.
        """
        if self._plays_solution:
            return
        processes = processes_of(container)
        processes.take_baseline()
        with Scene(container, user, deadline) as scene:
            agent = self._make(scene, self._env, {})
            fault = scene.play(agent.setup, environment=scene.environment)
            self.version = agent.version() or self.version
        if fault is not None:
            how = deadline.describe() if isinstance(fault, TimeoutError) else _told(fault)
            raise AgentError(f"{self.name} cannot be set up: {how}")
        processes.sweep(Deadline.after(_SWEEP_SECONDS, "ending what an agent's setup left"))

    def run_turn(self, turn: Turn) -> TurnResult:
        """Let a fresh agent of Harbor's take the turn, and read what it tells of it."""
        from harbor.models.agent.context import AgentContext

        context = AgentContext()
        with Scene(turn.container, turn.user, turn.deadline) as scene:
            agent = self._make(scene, *self._inputs(turn, scene))
            given = {
                name: text for name, text in agent.extra_env.items() if text or name in turn.env
            }
            with scene.environment.scoped_exec_env({**given, **turn.solution_env}):

                async def act() -> None:
                    await agent.setup(scene.environment)
                    await agent.run(turn.instruction, scene.environment, context)

                fault = scene.play(act)
            scene.exchange_logs(agent, context)
            ended = _ended(fault, turn, scene.exit_code())
            return _result(ended, scene.logs, context, agent.version())

    def _make(self, scene: Scene, env: Mapping[str, str], more: Mapping[str, Any]) -> Any:
        """Make an agent of Harbor's.

        Raises:
            AgentError: it refuses its model, its options or its servers.
        """
        given: dict[str, Any] = {"extra_env": _hiding(env), **self._options, **more}
        if self._is_installed and self.version:
            given.setdefault("version", self.version)
        if self.capabilities.needs_model:
            given |= {"model_api_key_name": _KEY}
            given["extra_env"][_KEY] = "gateway"
        try:
            agent = self._kind(
                logs_dir=scene.logs, model_name=given.pop("model_name", self.model), **given
            )
        except Exception as error:  # whatever it is, Harbor's agent cannot be made of this recipe
            raise AgentError(f"{self.name} cannot be made: {_told(error)}") from error
        agent.session_id = scene.environment.session_id
        return agent

    def _inputs(self, turn: Turn, scene: Scene) -> tuple[dict[str, str], dict[str, Any]]:
        """What a turn adds: variables, and what Harbor's agents are made with."""
        env = dict(turn.env)
        more: dict[str, Any] = {"mcp_servers": list(_servers(turn.grants, env))}
        if self._is_installed:
            more["skip_install"] = True
        if turn.model is not None:
            more |= _model(turn.model, self.model)
        if self._plays_solution:
            more |= {"task_dir": scene.task(turn), "trial_paths": scene.environment.trial_paths}
        return env, more


def _hiding(env: Mapping[str, str]) -> dict[str, str]:
    """Variables for an agent that would look for credentials in the environment of this process.

    What it is given comes first, and an empty text is found there in place of the operator's own.
    """
    secret = (name for name in os.environ if _SECRET.search(name))
    return {**dict.fromkeys(secret, ""), **env}


def _servers(grants: Iterable[Grant], env: dict[str, str]) -> Iterable[Any]:
    """Grants as Harbor has them; its headers hold no secret, so that goes into ``env``."""
    from harbor.models.task.config import MCPServerConfig

    for number, grant in enumerate(grants):
        headers = {}
        for place, (name, value) in enumerate(grant.headers.items()):
            variable = f"PYTEST_HARBOR_MCP_HEADER_{number}_{place}"
            env[variable] = value
            headers[name] = f"${{{variable}}}"
        yield MCPServerConfig(
            name=grant.name,
            transport=grant.transport,
            url=grant.url,
            command=grant.command,
            args=list(grant.args),
            headers=headers,
        )


def _model(door: ModelDoor, asked: str | None) -> dict[str, Any]:
    """Where the model is, in Harbor's words; a maker tells it which of its APIs to speak."""
    name = asked or door.name
    return {
        "base_url": f"{door.url}/v1",
        "model_name": name if "/" in name else f"openai/{name}",
    }


def _ended(fault: Exception | None, turn: Turn, exit_code: int | None) -> TurnResult:
    if isinstance(fault, TimeoutError) and turn.deadline.expired:
        return TurnResult("timeout", message=f"agent timed out: {turn.deadline.describe()}")
    if fault is not None:
        return TurnResult("error", message=_told(fault))
    if exit_code:
        return TurnResult("error", exit_code, f"the agent exited with {exit_code}")
    return TurnResult("exited", 0)


def _told(fault: Exception) -> str:
    return f"{type(fault).__name__}: {fault}".strip()


def _result(ended: TurnResult, logs: Path, context: Any, version: str | None) -> TurnResult:
    told = context.model_dump(mode="json", include={"metadata", "model_usage"}, exclude_none=True)
    texts = sorted(path.name for path in logs.glob("*.txt") if path.name != "exit-code.txt")
    return replace(
        ended,
        log=texts[0] if texts else None,
        trajectory=_TRAJECTORY if (logs / _TRAJECTORY).is_file() else None,
        input_tokens=context.n_input_tokens,
        output_tokens=context.n_output_tokens,
        cached_tokens=context.n_cache_tokens,
        cost_usd=context.cost_usd,
        extra={**told, "version": version} if version else told,
    )
