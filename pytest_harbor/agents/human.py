"""The agent ``human``: a person at the terminal, who enters main and says when the turn is over.

For authors of tasks. It talks to the terminal itself, past whatever captures this process' output.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import shlex
import sys
from collections.abc import Iterator, Mapping
from typing import Final

from pytest_harbor.agents.base import Agent, Capabilities, Turn, TurnResult
from pytest_harbor.errors import AgentError
from pytest_harbor.task.timeouts import Deadline

TERMINAL: Final = "/dev/tty"
_DONE: Final = ("", "done")
_HINT: Final = "Type done, or only Enter, when you have finished.\n"


class HumanAgent(Agent):
    """Waits for a person at a terminal."""

    name = "human"
    version = "1"
    capabilities = Capabilities(is_utility=True)

    def __init__(self, device: str = TERMINAL) -> None:
        self._device = device

    def run_turn(self, turn: Turn) -> TurnResult:
        """Show what there is to do and where, and wait until the person is done."""
        with open_terminal(self._device) as terminal:
            terminal.write(greeting(turn))
            try:
                while (line := terminal.line(turn.deadline)) is not None:
                    if line.strip().lower() in _DONE:
                        terminal.write("Thank you. Grading follows.\n")
                        return TurnResult("exited")
                    terminal.write(_HINT)
            except OSError as error:
                return TurnResult("error", message=f"the terminal is gone: {error.strerror}")
            said = f"agent timed out: {turn.deadline.describe()}"
            terminal.write(f"Time is up ({turn.deadline.describe()}).\n")
            return TurnResult("timeout", message=said)


class Terminal:
    """Two ends of a conversation with a person."""

    def __init__(self, reading: int, writing: int) -> None:
        self._reading, self._writing = reading, writing
        self._rest = b""

    def write(self, text: str) -> None:
        """Show something."""
        data = text.encode("utf-8", "replace")
        while data:
            data = data[os.write(self._writing, data) :]

    def line(self, deadline: Deadline) -> str | None:
        """What the person typed; empty also when the input is at its end, None out of time.

        Raises:
            OSError: the terminal went away.
        """
        while b"\n" not in self._rest:
            ready, _, _ = select.select([self._reading], [], [], deadline.remaining())
            if not ready:
                return None
            data = os.read(self._reading, 4096)
            if not data:
                return ""
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        return line.decode("utf-8", "replace")


@contextlib.contextmanager
def open_terminal(device: str = TERMINAL) -> Iterator[Terminal]:
    """The terminal that this process was started from, for one turn at a time; else its stdin.

    Raises:
        AgentError: there is neither, or another turn has it.
    """
    try:
        handle = os.open(device, os.O_RDWR | os.O_NOCTTY)
    except OSError:
        yield _standard_streams()
        return
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise AgentError(
                "the agent 'human' has the terminal in another turn; run one task at a time"
            ) from None
        yield Terminal(handle, handle)
    finally:
        os.close(handle)


def _standard_streams() -> Terminal:
    """Stdin and stdout, if they are what they were when the process began."""
    stdin, stdout = sys.__stdin__, sys.__stdout__
    if stdin is None or stdout is None or sys.stdin is not stdin:
        raise AgentError(
            "the agent 'human' needs a terminal: there is none, and stdin is taken by pytest; "
            "run pytest in a terminal, or with -s"
        )
    return Terminal(stdin.fileno(), stdout.fileno())


def refusal(environment: Mapping[str, str]) -> str:
    """Why a person cannot be asked in this process; empty if one can."""
    if "PYTEST_XDIST_WORKER" in environment:
        return "the agent 'human' needs the terminal for itself: run pytest without -n"
    return ""


def greeting(turn: Turn) -> str:
    """What the person is told."""
    parts = [f"\n\n=== Step {turn.step}: it is your turn ===\n\n{turn.instruction.strip()}\n"]
    parts.append(f"\nEnter main with\n\n    {entering(turn)}\n")
    if turn.grants:
        parts.append("\nMCP servers, as main finds them:\n")
        parts += [f"    {g.name}  {g.transport}  {g.url or g.command}\n" for g in turn.grants]
    left = turn.deadline.remaining()
    if left is not None:
        parts.append(f"\nYou have {left:.0f} s.")
    return "".join([*parts, "\n", _HINT])


def entering(turn: Turn) -> str:
    """The command that brings a person into main as the agent's user.

    Of the turn's variables it sets only the addresses of MCP servers: others may be secret.
    """
    main = turn.container
    addresses = {grant.url for grant in turn.grants if grant.url}
    words = ["docker", "exec", "-it", "-w", main.workdir]
    if turn.user is not None:
        words += ["-u", str(turn.user)]
    for name, value in turn.env.items():
        if value in addresses:
            words += ["-e", f"{name}={value}"]
    return shlex.join([*words, main.id[:12], "bash" if main.stat("/bin/bash") else "sh"])
