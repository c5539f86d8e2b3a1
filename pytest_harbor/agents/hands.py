"""What an agent of this host does in a turn: shell commands in main, calls of granted MCP tools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Final

from pytest_harbor.agents.base import Turn
from pytest_harbor.errors import UserError
from pytest_harbor.task.timeouts import Deadline
from pytest_harbor.user.session import McpSession, McpTool, open_session

_LONGEST: Final = 1 << 20
"""Bytes of a command's output that are kept at all."""


class LateError(Exception):
    """The turn's time is up; what ran for it has been ended."""


@dataclass(frozen=True)
class Done:
    """What came of a command or a call."""

    text: str
    exit_code: int | None = None
    """Of a command; None where it was killed at its own time limit, and for calls."""
    failed: bool = False
    """Whether it came to nothing: it was killed, or the tool answered with an error."""


class Hands:
    """Acts for one turn."""

    def __init__(self, turn: Turn, sessions: Mapping[str, McpSession]) -> None:
        self._turn = turn
        self._sessions = sessions
        self.tools: Mapping[str, tuple[McpTool, ...]] = {
            name: session.tools(turn.deadline) for name, session in sessions.items()
        }
        """What the granted servers offer, by their names."""

    def run(self, command: str, seconds: float, workdir: str | None = None) -> Done:
        """Run a shell command as the turn's user; after ``seconds`` it is killed.

        Raises:
            LateError: the turn's deadline came first.
        """
        turn = self._turn
        limit = turn.deadline.sooner(Deadline.after(seconds, "the command's time limit"))
        if turn.deadline.expired:
            raise LateError
        try:
            ran = turn.container.run(
                command,
                user=turn.user,
                workdir=workdir,
                env=turn.env,
                deadline=limit,
                limit=_LONGEST,
            )
        except ValueError as error:  # longer than a program's argument can be
            return Done(f"error: {error}", failed=True)
        if turn.deadline.expired:
            raise LateError
        text = ran.output.decode("utf-8", "replace")
        if ran.timed_out:
            return Done(f"{text}\n[killed after {seconds:g} s]", None, failed=True)
        return Done(text, ran.exit_code)

    def call(self, server: str, tool: str, arguments: Mapping[str, Any]) -> Done:
        """Call a tool of a granted server.

        Raises:
            LateError: the turn's deadline came first.
        """
        try:
            reply = self._sessions[server].call(tool, arguments, self._turn.deadline)
        except TimeoutError:
            raise LateError from None
        except UserError as error:
            if self._turn.deadline.expired:
                raise LateError from None
            return Done(f"error: {error}", failed=True)
        return Done(reply.text, failed=reply.is_error)


@contextmanager
def hands(turn: Turn) -> Iterator[Hands]:
    """Sessions with all granted servers, and main at hand, for as long as the turn lasts.

    Raises:
        UserError: a granted server cannot be used from this host.
        LateError: the turn's deadline has passed.
    """
    with ExitStack() as stack:
        try:
            sessions = {
                grant.name: stack.enter_context(open_session(grant, turn.deadline))
                for grant in turn.grants
                if grant.url is not None  # what main itself starts is not reached from here
            }
            ready = Hands(turn, sessions)
        except TimeoutError:
            raise LateError from None
        yield ready


def shortened(text: str, limit: int) -> str:
    """A text without its middle, if it has more than ``limit`` characters."""
    if len(text) <= limit:
        return text
    head = limit - limit // 2
    left_out = len(text) - limit
    return f"{text[:head]}\n[... {left_out} characters left out here ...]\n{text[-(limit // 2) :]}"
