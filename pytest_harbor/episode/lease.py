"""The lease on a Compose group: started, perhaps renewed, and closed by whoever schedules.

An episode only works in the group; the lease decides when it exists.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Self

from pytest_harbor.episode.budgets import start_budget
from pytest_harbor.episode.doors import Doors
from pytest_harbor.episode.plan import Plan
from pytest_harbor.errors import HarborError, RecipeError, SandboxError
from pytest_harbor.sandbox.engine import Engine
from pytest_harbor.sandbox.group import Group, GroupSpec
from pytest_harbor.sandbox.labels import KEEP, Owner
from pytest_harbor.task.timeouts import Deadline

_CLOSE_SECONDS = 60.0
_PREPARE_SECONDS = 900.0
"""An agent may be hundreds of MB to fetch, and others may be fetching at the same time."""


class Lease:
    """A group that can be started, renewed and closed. Use as a context manager, or close it."""

    def __init__(
        self, plan: Plan, engine: Engine, owner: Owner, key: str, doors: Doors | None = None
    ) -> None:
        self.plan = plan
        self.doors = doors
        """The doors of the episode's model servers; None where it refers to none."""
        self._engine = engine
        self._owner = owner
        self._key = key
        self._turns = 0
        self._group: Group | None = None
        self._is_ready = False

    def start(self) -> Group:
        """Start the group; the same group when it runs already.

        Raises:
            RecipeError: a model server cannot be used.
            AgentError: the agent could not be installed.
            ImageError: an image could not be built or pulled.
            SandboxError: the group did not become ready in its budget.
        """
        if not self._is_ready:
            budget = start_budget(self.plan.task, self.plan.recipe)
            tools = self._prepare_agent()
            self._open_doors()
            self._group = self._new_group(self._spec(tools))
            try:
                self._group.start(Deadline.after(budget, "start of the group"))
            except BaseException:
                self._close_doors()
                raise
            self._is_ready = True
        return self.group

    def _new_group(self, spec: GroupSpec) -> Group:
        sandbox = self.plan.recipe.sandbox
        if sandbox.name == "docker":
            return Group(self._engine, spec, self._owner)
        from pytest_harbor.bridge.provider import ProvidedGroup

        return ProvidedGroup(self._engine, spec, self._owner, sandbox.name, sandbox.options)

    def _prepare_agent(self) -> Mapping[str, str]:
        """Have the agent installed, once for all episodes; not on the group's time."""
        limit = Deadline.after(_PREPARE_SECONDS, f"installing {self.plan.agent.name}")
        return self.plan.agent.prepare(self._engine, limit)

    def _open_doors(self) -> None:
        if self.doors is not None:
            self.doors.open()
        elif names := self.plan.model_servers:
            raise RecipeError(
                f"the recipe refers to the model servers {', '.join(names)}, but the lease has "
                "no doors to them: make it with pytest_harbor.episode.doors.Doors"
            )

    def _close_doors(self) -> None:
        if self.doors is not None:
            self.doors.close()

    @property
    def secrets(self) -> frozenset[str]:
        """What came up with the group and no file may hold."""
        return self.doors.secrets if self.doors is not None else frozenset()

    @property
    def is_started(self) -> bool:
        """Whether there is a group to work in."""
        return self._is_ready

    @property
    def group(self) -> Group:
        """The running group.

        Raises:
            SandboxError: it was never started, or is closed.
        """
        if self._group is None or not self._is_ready:
            raise SandboxError("the group is not running: start the lease first")
        return self._group

    def renew(self) -> Group:
        """Close the group and start a fresh one, for another try at the same episode."""
        self.close()
        self._turns += 1
        return self.start()

    def close(self) -> tuple[str, ...]:
        """Remove the group and all that belongs to it; returns what went wrong, never raises."""
        try:
            self._close_doors()
        except HarborError as error:
            return (str(error), *self._remove())
        return self._remove()

    def _remove(self) -> tuple[str, ...]:
        group, self._group, self._is_ready = self._group, None, False
        if group is None:
            return ()
        if self.plan.recipe.keep:
            return (f"{group.project} is kept as asked; remove it with: {group.keep()}",)
        return group.close(Deadline.after(_CLOSE_SECONDS, "removal of the group"))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _spec(self, tools: Mapping[str, str]) -> GroupSpec:
        plan, environment = self.plan, self.plan.task.config.environment
        return GroupSpec(
            name=plan.task.name,
            key=f"{self._key}#{self._turns}",
            environment_dir=plan.task.environment_dir,
            dockerfile=plan.task.dockerfile is not None,
            compose_file=plan.task.compose_file,
            docker_image=environment.docker_image,
            overlays=plan.overlays,
            main_env=plan.main_env,
            variables=plan.variables,
            tools=tools,
            workdir=environment.workdir,
            cpus=environment.cpus,
            memory_mb=environment.memory_mb,
            force_build=plan.recipe.builds.force,
            door=self.doors,
            labels={KEEP: "yes"} if plan.recipe.keep else {},
        )
