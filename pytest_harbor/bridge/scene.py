"""Where an agent of Harbor's acts once: a container of ours, and a folder here for its logs.

Harbor mounts the log folder or copies it to and fro; here it is copied, to the agent's own eyes
before it tells what it used, and back so that what it wrote on this host is kept as well.
"""

from __future__ import annotations

import filecmp
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from pytest_harbor.agents.base import LOGS, Turn
from pytest_harbor.bridge.door import wait_for
from pytest_harbor.errors import AgentError
from pytest_harbor.sandbox.container import Container
from pytest_harbor.task.timeouts import Deadline

if TYPE_CHECKING:
    from pytest_harbor.bridge.environment import ContainerEnvironment

_LOGS_LIMIT: Final = 512 << 20
"""Bytes of logs that an agent is shown; of what is larger the run folder has no more either."""


class Scene:
    """Where an agent of Harbor's acts once: a container, and a folder here for its logs."""

    def __init__(self, container: Container, user: str | int | None, deadline: Deadline) -> None:
        self._container = container
        self._user = user
        self._deadline = deadline

    def __enter__(self) -> Self:
        from pytest_harbor.bridge.environment import ContainerEnvironment

        self._folder = Path(tempfile.mkdtemp(prefix="pytest-harbor-"))
        self.environment: ContainerEnvironment = ContainerEnvironment(
            self._container, self._user, self._folder, self._deadline
        )
        self.logs: Path = self.environment.trial_paths.agent_dir
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def play(self, act: Any, **inputs: Any) -> Exception | None:
        """Let it act until it is done or the time is up; returns what went wrong.

        Raises:
            SandboxError: the container died.
        """
        fault: Exception | None = None
        try:
            wait_for(lambda: act(**inputs), self._deadline)
        except Exception as error:  # a turn that went wrong is a result, whatever the reason
            fault = error
        if self.environment.fault is not None:
            raise self.environment.fault
        return fault

    def exit_code(self) -> int | None:
        """What Harbor's oracle notes where the solution failed."""
        with suppress(OSError, ValueError):
            return int((self.logs / "exit-code.txt").read_text())
        return None

    def exchange_logs(self, agent: Any, context: Any) -> None:
        """Show the agent what it logged inside, and lay beside it what it wrote here."""
        inside = self._folder / "inside"
        self._container.get_tree(LOGS, inside, limit_bytes=_LOGS_LIMIT)
        shutil.copytree(inside, self.logs, symlinks=True, dirs_exist_ok=True)
        if context.is_empty():
            with suppress(Exception):  # it reads logs of any shape; those are kept, come what may
                agent.populate_context_post_run(context)
        new = self._folder / "new"
        for path in self.logs.rglob("*"):
            there = inside / path.relative_to(self.logs)
            if path.is_file() and not (there.is_file() and filecmp.cmp(path, there, False)):
                place = new / path.relative_to(self.logs)
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, place)
        if new.is_dir():
            owner = self._container.user(self._user)
            self.environment.put_tree(new, LOGS, owner.uid, owner.gid)

    def task(self, turn: Turn) -> Path:
        """A task of one step for Harbor's oracle, which reads the solution from its task.

        Raises:
            AgentError: the step has no solution.
        """
        if turn.solution is None:
            raise AgentError(f"the task has no solution for step {turn.step}")
        task = self._folder / "task"
        (task / "environment").mkdir(parents=True)
        (task / "tests").mkdir()
        (task / "tests" / "test.sh").touch()
        (task / "task.toml").touch()
        (task / "instruction.md").write_text(turn.instruction)
        shutil.copytree(turn.solution, task / "solution")
        return task
