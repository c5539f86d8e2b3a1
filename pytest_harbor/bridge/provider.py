"""A group of one container at one of Harbor's sandbox providers: ``harbor:<provider>``.

What a provider cannot do is refused by name before anything is started.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from pytest_harbor.agents.base import Agent, Grant
from pytest_harbor.bridge.door import PREFIX, require_harbor
from pytest_harbor.bridge.provided import Line, ProvidedContainer
from pytest_harbor.bridge.provided_ground import ProvidedGround, ProvidedProcesses
from pytest_harbor.errors import ImageError, RecipeError, SandboxError, TaskError
from pytest_harbor.sandbox.container import Container
from pytest_harbor.sandbox.engine import Engine
from pytest_harbor.sandbox.group import Group, GroupSpec
from pytest_harbor.sandbox.labels import Owner
from pytest_harbor.sandbox.processes import Processes
from pytest_harbor.sandbox.readiness import ServiceState
from pytest_harbor.sandbox.scratch import Ground
from pytest_harbor.settings import Recipe
from pytest_harbor.task.model import Task
from pytest_harbor.task.timeouts import Deadline

_INSIDE: Final = (
    "main is seen from inside only: that nobody of the agent's was left when it was graded is what "
    "main's own sh said"
)


def refuse_unprovided(
    task: Task, recipe: Recipe, agent: Agent, grants: tuple[Grant, ...], servers: tuple[str, ...]
) -> None:
    """Say what no provider can do.

    Raises:
        RecipeError: Harbor is not there, or the recipe or agent asks for what is not to be had.
        TaskError: the task does.
    """
    source, name = recipe.source("sandbox.name"), recipe.sandbox.name
    if not name.startswith(PREFIX):
        raise RecipeError(
            f"{source}: there is no sandbox {name!r}; known: docker, {PREFIX}<provider>"
        )
    require_harbor(source)
    if task.compose_file is not None:
        raise TaskError(
            f"{task.compose_file}: the sandbox {name} ({source}) runs one container, no Compose "
            "group: no sidecar, no simulated user. Take the sandbox docker"
        )
    if wanted := list(_not_provided(recipe, agent, grants, servers)):
        raise RecipeError(
            f"{source}: the sandbox {name} cannot do this: {'; '.join(wanted)}. Leave it out, or "
            "take the sandbox docker"
        )


def _not_provided(
    recipe: Recipe, agent: Agent, grants: tuple[Grant, ...], servers: tuple[str, ...]
) -> Iterator[str]:
    if recipe.compose_overlays:
        yield f"compose_overlays ({recipe.source('compose_overlays')})"
    if recipe.keep:
        yield f"keep ({recipe.source('keep')})"
    if agent.capabilities.needs_network:
        yield f"the agent {agent.name}: from there main does not reach the model gateway here"
    for server in servers:
        yield f"the model server {server} in a variable: main does not reach the gateway here"
    for grant in grants:
        if grant.url is not None:
            yield f"the MCP server {grant.name}: nothing here can try it or pass on its calls"


class ProvidedGroup(Group):
    """One container of a provider's in the clothes of a group."""

    def __init__(
        self, engine: Engine, spec: GroupSpec, owner: Owner, name: str, options: Mapping[str, Any]
    ) -> None:
        super().__init__(engine, spec, owner)
        self._provider = name.removeprefix(PREFIX)
        self._options = dict(options)
        self._environment: Any = None
        self._line: Line | None = None
        self._folder = Path()

    def start(self, deadline: Deadline) -> None:
        """Have the provider start the container.

        Raises:
            RecipeError: there is no such provider, or it refuses its options.
            SandboxError: it did not start.
        """
        if self.spec.tools:
            raise RecipeError(
                f"the sandbox {PREFIX}{self._provider} cannot mount what the agent brings: "
                + ", ".join(self.spec.tools.values())
            )
        self._folder = Path(tempfile.mkdtemp(prefix="pytest-harbor-"))
        line = self._line = Line()
        try:
            self._environment = self._made()
            line.wait(self._environment.start(force_build=self.spec.force_build), deadline)
        except BaseException as fault:
            self.close(Deadline.after(60, "removal of what did not start"))
            if isinstance(fault, SandboxError) and "build" in str(fault).lower():
                raise ImageError(str(fault)) from fault
            raise
        self.services = ("main",)
        self.warnings += (_INSIDE,)
        self._handles["main"] = ProvidedContainer(
            self._environment, line, self.project, self.spec.workdir
        )

    def _made(self) -> Any:
        from harbor.environments.factory import EnvironmentFactory
        from harbor.models.environment_type import EnvironmentType
        from harbor.models.task.config import EnvironmentConfig
        from harbor.models.trial.paths import TrialPaths

        spec, name = self.spec, self._provider
        paths = TrialPaths(self._folder)
        paths.mkdir()
        environment = spec.environment_dir or self._folder / "environment"
        environment.mkdir(exist_ok=True)
        try:
            kind = (
                EnvironmentFactory.get_environment_class(import_path=name)
                if ":" in name
                else EnvironmentFactory.get_environment_class(EnvironmentType(name))
            )
            kind.preflight(kwargs=self._options or None)
            return kind(
                environment_dir=environment,
                environment_name=spec.name,
                session_id=self.project,
                trial_paths=paths,
                task_env_config=EnvironmentConfig(
                    docker_image=spec.docker_image,
                    workdir=spec.workdir,
                    cpus=spec.cpus,
                    memory_mb=spec.memory_mb,
                ),
                persistent_env=dict(spec.main_env),
                **self._options,
            )
        except (Exception, SystemExit) as fault:  # a provider without credentials leaves by an exit
            known = ", ".join(kind.value for kind in EnvironmentType)
            raise RecipeError(
                f"Harbor's provider {name!r} cannot be used: {fault}. Harbor knows {known}, and "
                "module:Class"
            ) from fault

    def close(self, deadline: Deadline) -> tuple[str, ...]:
        """Have the provider delete the container; returns what went wrong, never raises."""
        environment, self._environment = self._environment, None
        line, self._line = self._line, None
        self._handles.clear()
        if line is None:
            return ()
        trouble: tuple[str, ...] = ()
        if environment is not None:
            try:
                line.wait(environment.stop(delete=True), deadline)
            except Exception as fault:  # teardown never changes a grade
                trouble = (f"{self.project} could not be removed at {self._provider}: {fault}",)
        line.close()
        shutil.rmtree(self._folder, ignore_errors=True)
        return trouble

    def container(self, service: str = "main") -> Container:
        """The one container.

        Raises:
            SandboxError: it does not run, or another one is asked for.
        """
        if service not in self._handles:
            raise SandboxError(f"{self.project} has no container of a service {service!r}")
        return self._handles[service]

    def processes(self) -> Processes:
        """Who lives in the container, by its own word."""
        return ProvidedProcesses(self.container())

    def ground(self) -> Ground:
        """The folders of grading."""
        return ProvidedGround(self.container())

    def state(self, service: str) -> ServiceState:
        """No provider tells it."""
        raise SandboxError(f"{self._provider} does not tell the state of {service}")

    def logs(self, service: str, tail: int = 0) -> bytes:  # noqa: ARG002
        """No provider keeps any."""
        return b""

    def address(self, service: str) -> str | None:  # noqa: ARG002
        """This host has no way to it but the provider's."""
        return None
