"""Which process owns which group, written down before the group exists (B05, B06).

Each run has a folder of registrations, and one watch (:mod:`~pytest_harbor.sandbox.watch`) that
outlives its processes and sees to it that nothing registered stays behind.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest_harbor
from pytest_harbor.sandbox import watch
from pytest_harbor.sandbox.labels import Owner
from pytest_harbor.sandbox.names import slug
from pytest_harbor.sandbox.state import State, try_lock, write_json
from pytest_harbor.task.timeouts import Deadline

_PATIENCE: Final = 15.0
"""Seconds for the registry's lock; it is held for milliseconds."""


class Registry:
    """The registrations of one owner."""

    def __init__(self, state: State, owner: Owner, environment: Mapping[str, str]) -> None:
        self._state = state
        self._owner = owner
        self._environment = environment
        self._run = ("runs", slug(owner.run_id, longest=60, empty="run"))
        self._name = f"{owner.pid}-{slug(owner.birth)}"

    def register(self, project: str) -> None:
        """Write a project down, and make sure that the run's watch is awake."""
        with gate(self._state):
            owners = self._state.folder(*self._run, "owners")
            projects = self._state.folder(*self._run, "projects")
            write_json(projects / project, {"owner": self._name})
            is_new = not (owners / self._name).exists()
            if is_new:
                # in one piece: to the watch, an owner whose birth does not fit is a dead one
                unfinished = owners / f".{self._name}"
                unfinished.write_text(self._owner.birth.rpartition(":")[2])
                unfinished.replace(owners / self._name)
            self._watch(ring=is_new)

    def forget(self, project: str) -> None:
        """Strike a project out: nothing of it is left, or it shall stay."""
        with contextlib.suppress(OSError):
            (self._state.root.joinpath(*self._run, "projects") / project).unlink()

    def _watch(self, *, ring: bool) -> None:
        """Start the watch unless it runs; a run without one is only swept by the next run."""
        folder = self._state.root.joinpath(*self._run)
        bell = folder / "bell"
        with (folder / "watch.lock").open("wb") as lock:
            if try_lock(lock.fileno()):
                bell.unlink(missing_ok=True)
                os.mkfifo(bell, 0o600)
                with contextlib.suppress(OSError, NotImplementedError):
                    _reap(self._start(folder, lock.fileno()))
            elif ring:
                with contextlib.suppress(OSError):
                    descriptor = os.open(bell, os.O_WRONLY | os.O_NONBLOCK)
                    os.write(descriptor, b"!")
                    os.close(descriptor)

    def _start(self, folder: Path, lock: int) -> int:
        """Start the watch in a session of its own; it inherits the lock, and thus holds it.

        posix_spawn and not Popen: it must outlive us without a word about that.
        """
        home = str(Path(pytest_harbor.__file__).parents[1])
        environment = {**self._environment, "PYTHONPATH": home}
        command = [sys.executable, "-S", "-E", "-B", str(watch.__file__)]
        private = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        return os.posix_spawn(
            sys.executable,
            [*command, str(self._state.root), str(folder)],
            environment,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, str(folder / "janitor.log"), private, 0o600),
                (os.POSIX_SPAWN_DUP2, 1, 2),
                (os.POSIX_SPAWN_DUP2, lock, 3),
            ],
            setsid=True,
        )


def gate(state: State) -> contextlib.AbstractContextManager[None]:
    """Hold this while registrations, or the folders that they lie in, come or go."""
    return state.lock("registry", Deadline.after(_PATIENCE, "registry"), poll=0.002)


def _reap(pid: int) -> None:
    """Wait for the starter, which forks and ends at once."""
    for _ in range(2000):
        with contextlib.suppress(ChildProcessError):
            if os.waitpid(pid, os.WNOHANG)[0] == 0:
                time.sleep(0.005)
                continue
        return
