"""A real MCP server on a port of its own, and the real client to talk to it."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import anyio
import httpx2
import uvicorn
from mcp import Client
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.streamable_http import EventStore

T = TypeVar("T")


class McpServer:
    """A server with a tool for each thing that can happen to a call."""

    def __init__(
        self,
        *,
        json_replies: bool = False,
        older: bool = False,
        store: EventStore | None = None,
        host: str = "127.0.0.1",
    ) -> None:
        self.seen: list[tuple[str, str, dict[str, str]]] = []
        """Method, path and headers of each request."""
        self.entered = threading.Event()
        """A tool that waits is waiting."""
        self.go_on = threading.Event()
        """Lets those go on that wait."""
        self.cancelled = threading.Event()
        server = self._tools()
        if older:
            self._app: Any = server.sse_app(host=host)
        else:
            self._app = server.streamable_http_app(
                json_response=json_replies, event_store=store, retry_interval=50, host=host
            )
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.origin = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self.url = f"{self.origin}/{'sse' if older else 'mcp'}"
        config = uvicorn.Config(
            self._watched, interface="asgi3", log_config=None, timeout_graceful_shutdown=0
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],))
        self._thread.start()

    def stop(self) -> None:
        """Die, in the middle of whatever is under way."""
        self.go_on.set()
        self._server.should_exit = self._server.force_exit = True
        self._thread.join(10)
        self._socket.close()

    def break_off(self) -> None:
        """Cut all connections, as a container does that is killed."""
        for protocol in tuple(self._server.server_state.connections):
            protocol.loop.call_soon_threadsafe(protocol.transport.abort)  # type: ignore[union-attr]

    async def _watched(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            headers: dict[str, str] = {}
            for name, value in scope["headers"]:  # a header that comes twice is seen
                before = headers.get(name.decode())
                headers[name.decode()] = ", ".join(filter(None, [before, value.decode()]))
            self.seen.append((scope["method"], scope["path"], headers))
        await self._app(scope, receive, send)

    def _tools(self) -> MCPServer:
        server = MCPServer("small", version="1.2")

        @server.tool(structured_output=False)
        def ask_user(question: str) -> str:
            return f"about {question}: yes"

        @server.tool(structured_output=False)
        def fail(why: str) -> str:
            raise ValueError(why)

        @server.tool(structured_output=False)
        def large(size: int) -> str:
            return "x" * size

        @server.tool(structured_output=False)
        async def slow(context: Context, told: int) -> str:
            for number in range(told):
                await context.report_progress(number + 1, told, f"part {number + 1}")
            self.entered.set()
            try:
                while not self.go_on.is_set():
                    await asyncio.sleep(0.005)
            except asyncio.CancelledError:
                self.cancelled.set()
                raise
            return "at last"

        @server.tool(structured_output=False)
        async def announce(context: Context) -> str:
            await context.session.send_tool_list_changed()
            return "announced"

        @server.tool(structured_output=False)
        async def elsewhere(context: Context, seconds: float = 0.05) -> str:
            """Answers on another stream: the one of the call is closed before."""
            await context.close_sse_stream()
            await asyncio.sleep(seconds)
            return "from elsewhere"

        return server


@asynccontextmanager
async def connected(
    url: str, *, older: bool = False, headers: Mapping[str, str] | None = None, **more: Any
) -> AsyncIterator[Client]:
    """The real client, in a session."""
    if older:
        async with Client(sse_client(url), mode="legacy", **more) as client:
            yield client
        return
    async with httpx2.AsyncClient(
        timeout=20, trust_env=False, verify=False, headers=dict(headers or {})
    ) as http:
        connection: Any = streamable_http_client(url, http_client=http, max_sse_event_size=None)
        async with Client(connection, mode=more.pop("mode", "legacy"), **more) as client:
            yield client


def run(talk: Callable[[], Awaitable[T]]) -> T:
    """Let a conversation run to its end, but not for ever."""

    async def bounded() -> T:
        with anyio.fail_after(20):
            return await talk()

    return anyio.run(bounded)


def text(result: Any) -> str:
    """The text of a tool's result."""
    return "".join(block.text for block in result.content)


def until(condition: Callable[[], object], seconds: float = 5) -> None:
    """Wait for what another thread does."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.005)
