"""A session with an MCP server that lasts for many calls, for agents that work on this host.

``mcp`` is async: it runs in a thread of its own while the session is open, and is asked from here.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pytest_harbor.agents.base import Grant
from pytest_harbor.errors import UserError
from pytest_harbor.task.timeouts import Deadline
from pytest_harbor.user.mcp import Address, cause_of, connected

if TYPE_CHECKING:
    from anyio.from_thread import BlockingPortal

_LEAVE_SECONDS: Final = 5.0


@dataclass(frozen=True)
class McpTool:
    """A tool that a server offers."""

    name: str
    description: str
    schema: Mapping[str, Any]
    """JSON schema of its arguments."""


@dataclass(frozen=True)
class McpReply:
    """What a tool answered, as text."""

    text: str
    is_error: bool


class McpSession:
    """An open session."""

    def __init__(self, grant: Grant, portal: BlockingPortal, client: Any) -> None:
        self.name = grant.name
        self._portal = portal
        self._client = client

    def tools(self, deadline: Deadline) -> tuple[McpTool, ...]:
        """What the server offers, all pages of it.

        Raises:
            UserError: it does not say.
            TimeoutError: the deadline has passed.
        """

        async def ask() -> tuple[McpTool, ...]:
            found: list[McpTool] = []
            cursor: str | None = None
            while True:
                page = await self._client.list_tools(cursor=cursor)
                found += [McpTool(t.name, t.description or "", t.input_schema) for t in page.tools]
                cursor = page.next_cursor
                if not cursor:
                    return tuple(found)

        result: tuple[McpTool, ...] = self._bounded(ask, deadline)
        return result

    def call(self, tool: str, arguments: Mapping[str, Any], deadline: Deadline) -> McpReply:
        """Call a tool.

        Raises:
            UserError: the server is lost, or refuses the call.
            TimeoutError: the deadline has passed.
        """

        async def ask() -> McpReply:
            result = await self._client.call_tool(tool, dict(arguments))
            return McpReply(_text_of(result), bool(result.is_error))

        reply: McpReply = self._bounded(ask, deadline)
        return reply

    def _bounded(self, ask: Callable[[], Any], deadline: Deadline) -> Any:
        import anyio

        async def bounded() -> Any:
            with anyio.fail_after(deadline.remaining()):
                return await ask()

        try:
            return self._portal.call(bounded)
        except TimeoutError:
            raise
        except Exception as error:
            raise UserError(f"the MCP server {self.name} failed: {cause_of(error)}") from error


@contextmanager
def open_session(grant: Grant, deadline: Deadline) -> Iterator[McpSession]:
    """Open a session with a granted server at its URL, which must be one that this host reaches.

    Raises:
        UserError: nothing there speaks MCP.
        TimeoutError: the deadline has passed.
    """
    from anyio.from_thread import start_blocking_portal

    with start_blocking_portal() as portal:
        connecting = portal.wrap_async_context_manager(_bounded(grant, deadline))
        try:
            client = connecting.__enter__()
        except TimeoutError:
            raise
        except Exception as error:
            raise UserError(
                f"the MCP server {grant.name} cannot be used from this host: {cause_of(error)}"
            ) from error
        try:
            yield McpSession(grant, portal, client)
        finally:
            with suppress(Exception):  # a server that is lost was told of by the call
                connecting.__exit__(None, None, None)


@asynccontextmanager
async def _bounded(grant: Grant, deadline: Deadline) -> AsyncIterator[Any]:
    """A client that is there by the deadline, and takes its leave in a few seconds.

    Only in between is it without a limit of its own: calls have theirs.
    """
    import anyio

    left = deadline.remaining()
    with anyio.CancelScope() as scope:
        scope.deadline = math.inf if left is None else anyio.current_time() + left
        async with connected(grant, Address(grant.url or "", grant.headers), deadline) as client:
            scope.deadline = math.inf
            try:
                yield client
            finally:
                scope.deadline = anyio.current_time() + _LEAVE_SECONDS
    if scope.cancelled_caught:
        raise TimeoutError


def _text_of(result: Any) -> str:
    """The text blocks, of others their kind; without any the structured content."""
    parts = [b.text if b.type == "text" else f"[{b.type}]" for b in result.content]
    return "\n".join(parts) if parts else str(result.structured_content or "")
