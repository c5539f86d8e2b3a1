"""Processes and folders of a provider's container: what the engine tells elsewhere, asked inside.

Whoever replaced ``sh`` in there can lie to us; the result of an episode says so in a warning.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pytest_harbor.bridge.provided import ProvidedContainer
from pytest_harbor.errors import SandboxError
from pytest_harbor.sandbox.command import BIRTH
from pytest_harbor.sandbox.container import Container, Entry
from pytest_harbor.sandbox.processes import Process, Processes
from pytest_harbor.sandbox.scratch import Cleaned, Ground
from pytest_harbor.task.timeouts import Deadline

_ROUNDS: Final = 5
_LIST: Final = (
    BIRTH
    + r"""
echo $$
for folder in /proc/[0-9]*; do
  stat=
  { while IFS= read -r part || [ -n "$part" ]; do stat="$stat $part"; done; } \
    2>/dev/null <"$folder/stat"
  [ -n "$stat" ] || continue
  pid=${folder#/proc/}
  set -- ${stat##*) }
  case $1 in Z|X) continue ;; esac
  words=
  { while IFS= read -r word || [ -n "$word" ]; do words="$words $word"; done; } \
    2>/dev/null <"$folder/comm"
  echo "$pid $2 ${20}$words"
done
"""
)
"""One line each: pid, parent, birth, name; builtins alone, so that nothing of ours is in it."""


@dataclass(frozen=True)
class _Living:
    """Who lives inside, and the shell that told it."""

    teller: int
    found: Mapping[int, Process]


class ProvidedProcesses(Processes):
    """The processes of a provider's container. A member of the baseline is known by its birth."""

    def __init__(self, container: Container) -> None:
        super().__init__(container)
        self._known: frozenset[tuple[int, int]] = frozenset()

    def take_baseline(self) -> None:
        """Call everything that lives now the group's own."""
        living = self._look()
        ours = self._own(living)
        self._known = frozenset(
            (process.pid, process.age) for pid, process in living.found.items() if pid not in ours
        )

    def strangers(self) -> tuple[Process, ...]:
        """Who lives and is neither in the baseline nor at work for us."""
        living = self._look()
        ours = self._own(living)
        return tuple(
            process
            for pid, process in living.found.items()
            if pid not in ours and (pid, process.age) not in self._known
        )

    def is_quiet(self) -> bool:
        """Whether no stranger is seen."""
        return not self.strangers()

    def sweep(self, deadline: Deadline) -> tuple[str, ...]:
        """Kill every stranger that is seen, and return their names.

        Raises:
            SandboxError: some survive (outcome ``cleaning_failed``).
        """
        killed: dict[int, str] = {}
        for _ in range(_ROUNDS):
            found = self.strangers()
            if not found:
                return tuple(killed.values())
            killed |= {process.pid: process.command for process in found}
            pids = " ".join(str(process.pid) for process in found)
            program = f"{BIRTH} kill -9 {pids} 2>/dev/null; sleep 0.1"
            with self._container.start(program, [], deadline, user="0", workdir="/") as command:
                command.wait(1 << 16)
        names = ", ".join(process.command for process in found)
        raise SandboxError(f"these cannot be ended: {names}", outcome="cleaning_failed")

    def _look(self) -> _Living:
        limit = Deadline.after(60, "listing processes")
        with self._container.start(_LIST, [], limit, user="0", workdir="/") as command:
            lines = command.wait(1 << 22).output.decode("utf-8", "replace").splitlines()
        if not lines or not lines[0].strip().isdecimal():
            raise SandboxError(
                f"the processes of main cannot be listed by its own sh: {' '.join(lines)[:300]!r}",
                outcome="cleaning_failed",
            )
        rows = (line.split(None, 3) for line in lines[1:])
        found = {int(row[0]): _process(row) for row in rows if len(row) == 4}
        return _Living(int(lines[0]), found)

    def _own(self, living: _Living) -> frozenset[int]:
        """The shell that lists, and what the provider started to start it."""
        own = set()
        pid = living.teller
        while (process := living.found.get(pid)) is not None and pid not in own:
            if pid == 1 or (pid, process.age) in self._known:
                break
            own.add(pid)
            pid = process.parent
        return frozenset(own)


def processes_of(container: Container) -> Processes:
    """The processes of a container, whoever runs it."""
    if isinstance(container, ProvidedContainer):
        return ProvidedProcesses(container)
    return Processes(container)


def _process(row: list[str]) -> Process:
    pid, parent, born, command = row
    return Process(int(pid), int(parent), 0, int(born), 1, command, 0.0)


class ProvidedGround(Ground):
    """The folders of grading where a command cannot be asked and told in turns."""

    def _clean_inside(self, listing: Any, deadline: Deadline) -> Cleaned:
        """Look again as root, and remove what is new by a list in a file."""
        program = self._looking(listing)
        with self._container.start(program, [], deadline, user="0", workdir="/") as command:
            said = command.wait(64 << 20).output
        if not said.endswith(b"\0end\0"):
            raise SandboxError(
                "The scratch folders cannot be listed after grading: the container's shell or "
                "find does not do its work.",
                outcome="cleaning_failed",
            )
        found = self._sorted(listing, tuple(said.split(b"\0")))
        if found.removed:
            self._remove(found.removed, deadline)
        self._check_gone(found.removed)
        return found

    def _remove(self, paths: tuple[str, ...], deadline: Deadline) -> None:
        names = "\0".join(paths).encode("utf-8", "surrogateescape")
        place = "/tmp/.pytest-harbor-doomed"  # noqa: S108
        self._container.put([Entry(place, names, 0o600)])
        program = f"{BIRTH} xargs -0 rm -rf -- <{place} 2>&1; rm -f {place}"
        with self._container.start(program, [], deadline, user="0", workdir="/") as command:
            command.wait(1 << 16)
