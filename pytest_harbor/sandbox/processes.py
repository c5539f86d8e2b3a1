"""Which processes a container may hold, and the end of all others.

Whoever works in a container is root in it as often as not, so nothing inside is believed: the
engine says from outside who lives. The cheapest question comes first; a command inside is used
only when somebody has to be killed, and a helper with tools of its own when that was in vain.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, Final

from pytest_harbor.errors import SandboxError
from pytest_harbor.sandbox import reap
from pytest_harbor.sandbox.command import BIRTH
from pytest_harbor.sandbox.container import Container
from pytest_harbor.task.timeouts import Deadline

# without -e: the engine adds the process ids, and ps then reads no others
_COLUMNS: Final = "-o pid,ppid,uid,etimes,nlwp,stat,args"

OURS: Final = "pytest-harbor."
"""How the labels begin by which the janitor knows what to clear away."""

_START_SECONDS: Final = 2.0
"""How long the engine's init may take to start the one command that it is there for."""

_PROBE_PAUSES: Final = (0.05,) * 20
"""Seconds between looks while a healthcheck gets the time to end by itself."""

_BEFORE_EXEC: Final = "runc init"

_SLACK: Final = 2.0
"""Seconds by which two ages of a process may disagree, as ps counts whole ones."""


@dataclass(frozen=True)
class Process:
    """A process as the engine's host sees it: its pid there, not the one inside."""

    pid: int
    parent: int
    uid: int
    age: int
    """Seconds."""
    threads: int
    command: str
    asked: float
    """When we asked, by our clock; the age is as of then or, on a busy host, seconds later."""


@dataclass(frozen=True)
class _Baseline:
    """Who lived when the group was ready."""

    taken: float
    """When the answer had come."""
    processes: Mapping[int, Process]
    lone_tasks: int | None
    """A number of tasks that proves that nobody else lives, if there is one."""


class Processes:
    """The processes of one container: its baseline, and who is a stranger to it.

    The baseline is the group's own: main's first process with its init, and servers that the task
    or the agent's setup have started. What they start later is a stranger like any other, and is
    swept; only what they start again after a sweep is theirs.
    """

    def __init__(self, container: Container) -> None:
        self._container = container
        self._base: _Baseline | None = None

    def take_baseline(self) -> None:
        """Call everything that lives now the group's own.

        Raises:
            SandboxError: the container is dead.
        """
        taken = time.monotonic()
        living = self._living()
        while self._is_starting(living) and time.monotonic() - taken < _START_SECONDS:
            time.sleep(0.02)
            living = self._living()
        self._container.first_birth = None
        self._base = _Baseline(taken, living, self._lone(living))

    def strangers(self) -> tuple[Process, ...]:
        """Who lives and is not in the baseline, as the engine sees it in this moment."""
        return self._strangers(self._living())

    def sweep(self, deadline: Deadline) -> tuple[str, ...]:
        """Kill every stranger, make sure of it from outside, and return their command lines.

        Raises:
            SandboxError: some survive (outcome ``cleaning_failed``), or the container is dead.
        """
        if self.is_quiet():
            return ()
        # the engine's own helpers of a command that has just ended may be in the count as well
        found = self._without_probes(self.strangers())
        if not found and self.is_quiet():
            return ()
        found = found or self._look_closely()
        killed: dict[int, Process] = {}
        for kill in (self._kill_inside, self._kill_from_helper, self._kill_from_helper):
            if not found:
                break
            killed.update((process.pid, process) for process in found)
            is_certain = kill(deadline)
            found, spared = self._settle()
            killed = {pid: process for pid, process in killed.items() if pid not in spared}
            if is_certain:
                self._adopt(found)
                found = ()
            if deadline.expired:
                break
        if found:
            names = "; ".join(process.command for process in found[:10])
            raise SandboxError(
                f"{len(found)} processes in service {self._container.service} cannot be killed "
                f"({deadline.describe()}): {names}. Nothing is graded next to them.",
                outcome="cleaning_failed",
            )
        return tuple(process.command for process in killed.values())

    # -- looking ---------------------------------------------------------------------------

    def _baseline(self) -> _Baseline:
        if self._base is None:
            raise RuntimeError("take_baseline() comes first")
        return self._base

    def _living(self) -> dict[int, Process]:
        """All processes by host pid; zombies, which can do nothing any more, are not among them."""
        asked = time.monotonic()
        with self._container.translated("listing processes"):
            answer = self._container.engine.api.top(self._container.id, _COLUMNS)
        living = {}
        for pid, parent, uid, age, threads, state, command in answer["Processes"] or ():
            if not state.startswith(("Z", "X")):
                living[int(pid)] = Process(
                    int(pid), int(parent), int(uid), int(age), int(threads), command, asked
                )
        return living

    def _tasks(self) -> int | None:
        """How many tasks (threads, zombies too) the kernel counts; None where it does not."""
        with self._container.translated("counting processes"):
            stats: dict[str, Any] = self._container.engine.api.stats(
                self._container.id, stream=False, one_shot=True
            )
        count = (stats.get("pids_stats") or {}).get("current")
        if not count:
            self._container.check_alive("counting processes")
        return count or None

    def _lone(self, living: Mapping[int, Process]) -> int | None:
        """The count that proves emptiness, where the baseline cannot lose a member and live on.

        That is: the first process alone, or the engine's init, which ends with its only child.
        """
        first = int(self._container.facts["State"]["Pid"])
        has_init = bool(self._container.facts["HostConfig"].get("Init"))
        others = [process for pid, process in living.items() if pid != first]
        if first not in living or _threads(living) != len(living) or len(others) > 1:
            return None
        if others and not (has_init and others[0].parent == first):
            return None
        return len(living) if self._tasks() == len(living) else None

    def is_quiet(self) -> bool:
        """Whether a single look proves that no stranger lives: no pause, no command inside."""
        base = self._baseline()
        tasks = self._tasks()
        if tasks is None:
            return False
        if base.lone_tasks is not None:
            return tasks == base.lone_tasks
        # A process that hops from fork to fork can slip through a listing; the kernel's count of
        # tasks has no such gap, and the two agree only when the listing was complete.
        living = self._living()
        return not self._strangers(living) and _threads(living) == tasks == self._tasks()

    def _settle(self) -> tuple[tuple[Process, ...], Collection[int]]:
        """Wait a moment for the killed to be gone; returns survivors, and all that live."""
        for pause in (0.01, 0.02, 0.04, 0.08, 0.16, 0.32):
            if self.is_quiet():
                return (), ()
            if not self._survivors(self._living()):
                break
            time.sleep(pause)
        with self._held_still():
            living = self._living()
        return self._survivors(living), living

    def _look_closely(self) -> tuple[Process, ...]:
        """Strangers in a container that is held still, so that none slips through the listing."""
        with self._held_still():
            return self._strangers(self._living())

    def _without_probes(self, found: tuple[Process, ...]) -> tuple[Process, ...]:
        """Let main's own healthcheck end by itself, where nothing else is there to be killed.

        Whoever only looks like one gains no more than this moment.
        """
        for pause in _PROBE_PAUSES:
            if not found or not all(self._is_probe(one, found) for one in found):
                break
            time.sleep(pause)
            found = self.strangers()
        return found

    def _is_probe(self, process: Process, found: tuple[Process, ...]) -> bool:
        """Whether a process is the healthcheck that the engine starts in main, or a child of it."""
        check = (self._container.facts["Config"].get("Healthcheck") or {}).get("Test") or ()
        shell = ["/bin/sh", "-c"] if check[:1] == ["CMD-SHELL"] else []
        # the engine's helper becomes the command that it was started for
        words = (" ".join([*shell, *check[1:]]), _BEFORE_EXEC)
        by_pid = {one.pid: one for one in found}
        while process.parent in by_pid and process.parent != process.pid:
            process = by_pid[process.parent]
        return bool(check) and process.command in words

    def _adopt(self, found: tuple[Process, ...]) -> None:
        """Count more processes to the baseline.

        They began after it and before any command of ours, by the kernel's word: a server that
        the group was still starting.
        """
        base = self._baseline()
        passed = int(time.monotonic() - base.taken)
        more = {one.pid: replace(one, age=one.age - passed) for one in found}
        self._base = _Baseline(base.taken, {**base.processes, **more}, None)

    def _is_starting(self, living: Mapping[int, Process]) -> bool:
        """Whether the engine's init has not even started its child."""
        return bool(self._container.facts["HostConfig"].get("Init")) and len(living) == 1

    def _strangers(self, living: Mapping[int, Process]) -> tuple[Process, ...]:
        return tuple(process for process in living.values() if not self._is_ours(process))

    def _is_ours(self, process: Process) -> bool:
        """Whether a process is the one of the baseline, and not a later one with its number."""
        base, now = self._baseline(), time.monotonic()
        known = base.processes.get(process.pid)
        if known is not None:
            # at least so much time lies between the two: an answer that took long makes nobody
            # a stranger
            return process.age + _SLACK >= known.age + process.asked - base.taken
        # what the group started by itself after the baseline, before any command of ours ran
        first = self._container.first_birth
        return first is not None and process.age - _SLACK > now - first.clock

    def _survivors(self, living: Mapping[int, Process]) -> tuple[Process, ...]:
        """Strangers after a kill, without what the group's own processes have started since."""
        first = int(self._container.facts["State"]["Pid"])

        def is_theirs(process: Process) -> bool:
            seen = set()
            while (parent := living.get(process.parent)) is not None and parent.pid not in seen:
                seen.add(parent.pid)
                if self._is_ours(parent):
                    # orphans of strangers end up with the first process, so it vouches for nobody
                    return parent.pid != first
                process = parent
            return False

        return tuple(one for one in self._strangers(living) if not is_theirs(one))

    # -- ending ----------------------------------------------------------------------------

    @contextmanager
    def _held_still(self) -> Iterator[None]:
        """Hold everything still, so that what is listed is all there is."""
        api, name = self._container.engine.api, self._container.id
        try:
            with self._container.translated("pausing"):
                api.pause(name)
        except SandboxError as fault:
            if fault.outcome == "sandbox_died":
                raise
            # the freezer of cgroups v1 loses the race against a good fork bomb
            with self._no_births():
                yield
            return
        try:
            yield
        finally:
            with self._container.translated("resuming"):
                api.unpause(name)

    @contextmanager
    def _no_births(self) -> Iterator[None]:
        """Let no process or thread begin: the kernel refuses it, without a race."""
        limit = self._container.facts["HostConfig"].get("PidsLimit") or -1
        self._limit_tasks(1)
        try:
            yield
        finally:
            self._limit_tasks(limit)

    def _limit_tasks(self, limit: int) -> None:
        api = self._container.engine.api
        url = f"{api.base_url}/v{api.api_version}/containers/{self._container.id}/update"
        with self._container.translated("limiting its processes"):
            api.post(url, json={"PidsLimit": limit}, timeout=api.timeout).raise_for_status()

    def _kill_inside(self, deadline: Deadline) -> bool:
        """Kill with the container's own shell, which costs one command; its word is nothing."""
        if (first := self._container.first_birth) is None:
            return False
        limit = Deadline.after(2, "killing inside").sooner(deadline)
        argv = [str(first.ticks), ""]
        # a shell that was tampered with is no reason to stop: there is the helper
        with (
            suppress(SandboxError),
            self._container.start(BIRTH + reap.KILL, argv, limit, user="0", workdir="/") as command,
        ):
            command.wait(1 << 16)
        self._container.check_alive("killing processes")
        return False

    def _kill_from_helper(self, deadline: Deadline) -> bool:
        """Kill from a container of its own, with a fresh copy of the image's shell.

        It shares main's process ids and nothing else: its file system is the image's, and its
        limits are its own, so that it can work while nothing is born in main. Returns whether it
        saw with its own eyes that nobody is left who is younger than our first command.
        """
        if (first := self._container.first_birth) is None:
            return False
        limit = Deadline.after(20).sooner(deadline)
        facts, api = self._container.facts, self._container.engine.api
        labels = facts["Config"]["Labels"] or {}
        with self._container.translated("killing from a helper container"):
            helper: str = api.create_container(
                facts["Image"],
                entrypoint=["/bin/sh", "-c", reap.KILL, "sh", str(first.ticks), ""],
                command=[],
                user="0",
                working_dir="/",
                labels={name: text for name, text in labels.items() if name.startswith(OURS)},
                host_config=api.create_host_config(
                    pid_mode=f"container:{self._container.id}",
                    network_mode="none",
                    cap_drop=["ALL"],
                    cap_add=["KILL"],
                ),
            )["Id"]
            try:
                with self._no_births():
                    api.start(helper)
                    answer = api.wait(helper, timeout=int(limit.remaining() or 0) + 1)
            finally:
                api.remove_container(helper, force=True, v=True)
        return answer["StatusCode"] == 0


def _threads(living: Mapping[int, Process]) -> int:
    return sum(process.threads for process in living.values())
