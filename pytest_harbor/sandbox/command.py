"""A command of ours inside a container: how it begins, how it is waited for, how it went.

Every command is a small program for ``sh`` that first says who it is (its *birth line*: process
id, session and birth as the kernel has them), so that it and all that came after it can be ended.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from pytest_harbor.errors import SandboxError
from pytest_harbor.sandbox.bounded import HeadTail
from pytest_harbor.task.timeouts import Deadline

if TYPE_CHECKING:
    from pytest_harbor.sandbox.container import Container
    from pytest_harbor.sandbox.execution import Execution

_MARK: Final = b"pytest-harbor "

BIRTH: Final = "read -r _ph_birth </proc/self/stat; printf 'pytest-harbor %s\\n' \"$_ph_birth\"; "
"""The first words of every program; only builtins, so that they cost nothing. Variables have
names that no environment has: one that was exported would stay so, with our value."""

RUN: Final = BIRTH + 'exec "$@" 2>&1'
"""Run the arguments and let their output through."""

RUN_LOGGED: Final = (
    # The shell that waits keeps the connection, the command and its children have a file instead:
    # a child that outlives the command delays nobody. `exit` at the end keeps the shell from
    # giving its place to the command, and the connection with it.
    BIRTH
    + "_ph_in=$1 _ph_log=$2 _ph_before=$3 _ph_after=$4; shift 4; "
    + '{ true <"$_ph_in" && true >"$_ph_log"; } 2>&1 || '
    + '{ echo "pytest-harbor: no files"; exit 1; }; '
    + 'eval "$_ph_before"; "$@" <"$_ph_in" >"$_ph_log" 2>&1; _ph_code=$?; eval "$_ph_after"; '
    + "exit $_ph_code"
)
"""Run the arguments from the fifth on; before them stdin, log and the two fragments around."""

NO_FILES: Final = b"pytest-harbor: no files\n"
"""What :data:`RUN_LOGGED` says after the shell's own words when it cannot open stdin or log."""

_QUIET: Final = 2.0
"""Seconds of silence after which we ask whether a command has ended while something else holds
its connection (a child with its stdout, or a hostile process that took it from ``/proc``)."""

_KILLED: Final = 137
"""Exit code of what was killed: alone, or together with the whole container."""


@dataclass(frozen=True)
class Ran:
    """How a command went."""

    exit_code: int | None
    """None when it was still running at its deadline."""
    output: bytes
    """What it printed, or beginning and end around a mark."""
    output_size: int
    timed_out: bool
    seconds: float
    started_at: datetime
    finished_at: datetime
    limit: str = ""
    """Which deadline ended it, and after how long (B20); empty when none did."""


@dataclass(frozen=True)
class Birth:
    """When a command began: by the kernel that runs it, and by our own clock, a little earlier."""

    ticks: int
    clock: float


class Command:
    """A started program whose birth line has been read."""

    def __init__(
        self, container: Container, execution: Execution, deadline: Deadline, clock: float
    ) -> None:
        self._container = container
        self._execution = execution
        self._deadline = deadline
        self._clock = clock
        self._started_at = datetime.now(UTC) - timedelta(seconds=time.monotonic() - clock)
        self._rest = b""
        self.session: int | None = None
        self.birth: int | None = None
        self._read_birth()

    def _read_birth(self) -> None:
        """Read the first line; without it, the engine could not start the program."""
        said = b""
        while b"\n" not in said:
            piece = self.read()
            if piece is None:
                return
            said += piece
            if not piece:
                break
        line, _, self._rest = said.partition(b"\n")
        fields = line.rpartition(b") ")[2].split()
        if not line.startswith(_MARK) or len(fields) < 20:
            self._container.check_alive("starting a command", patience=0.5)
            raise SandboxError(
                f"The engine cannot start a command in service {self._container.service}: "
                f"{said.decode('utf-8', 'replace').strip()[:1000] or 'it gave no reason'}",
                outcome="setup_failed",
            )
        # proc_pid_stat(5): fields 6 and 22, counted from field 3, which follows the name
        self.session, self.birth = int(fields[3]), int(fields[19])
        first = self._container.first_birth
        if first is None or self.birth < first.ticks:
            self._container.first_birth = Birth(self.birth, self._clock)

    def read(self) -> bytes | None:
        """The next piece of output; ``b""`` at its end, None when the deadline passes."""
        if self._rest:
            rest, self._rest = self._rest, b""
            return rest
        while not self._deadline.expired:
            left = self._deadline.remaining()
            piece = self._execution.read(_QUIET if left is None else min(left, _QUIET))
            if piece is not None:
                return piece
            if self._execution.exit_code() is not None:
                return b""
        return None

    def send(self, data: bytes) -> None:
        """Give it input; it was started with ``stdin``."""
        self._execution.send(data, self._deadline.remaining())

    def wait(self, limit: int) -> Ran:
        """Wait for its end or the deadline, keeping ``limit`` bytes of its output.

        Raises:
            SandboxError: the container died meanwhile.
        """
        kept = HeadTail(limit)
        piece = self.read()
        while piece:
            kept.feed(piece)
            piece = self.read()
        code = self._exit_code() if piece == b"" else None
        if code == _KILLED:
            self._container.probe("while a command ran")
        return Ran(
            exit_code=code,
            output=kept.value(),
            output_size=kept.size,
            timed_out=code is None,
            seconds=time.monotonic() - self._clock,
            started_at=self._started_at,
            finished_at=datetime.now(UTC),
            limit=self._deadline.describe() if code is None else "",
        )

    def _exit_code(self) -> int | None:
        """The exit code, which the engine knows a moment after the end of the output."""
        pause = 0.001
        while (code := self._execution.exit_code()) is None and not self._deadline.expired:
            time.sleep(min(pause, self._deadline.remaining() or pause))
            pause = min(pause * 2, 0.25)
        return code
