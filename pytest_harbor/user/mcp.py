"""The one synchronous door to MCP: a handshake with a server, seen from the host or from main.

``mcp`` is async and costs half a second to import, so it is imported here, when a task really
grants a server, and run to its end within one call.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from pytest_harbor.agents.base import Grant
from pytest_harbor.errors import UserError
from pytest_harbor.sandbox.container import Container
from pytest_harbor.sandbox.from_inside import (
    NoClientError,
    UnreachableError,
    request_from_inside,
)
from pytest_harbor.task.timeouts import Deadline

if TYPE_CHECKING:
    import httpx2

_DAY: Final = 86_400.0

_SSE_HINT = (
    '. It was asked by the old transport "sse", which is meant where task.toml says nothing; most '
    'servers want transport = "streamable-http" there'
)


@dataclass(frozen=True)
class Handshake:
    """What a server said when it was greeted."""

    server: str
    tools: tuple[str, ...]


@dataclass(frozen=True)
class Address:
    """Where to knock: a URL, and the container to knock from (None: this host)."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    inside: Container | None = None


def shake_hands(grant: Grant, address: Address, deadline: Deadline) -> Handshake:
    """Initialize a session, list the tools, end the session.

    Raises:
        UserError: nobody answered in time, or what answered does not speak MCP.
    """
    import anyio

    async def bounded() -> Handshake:
        with anyio.fail_after(deadline.remaining()):
            return await _greet(grant, address, deadline)

    try:
        return anyio.run(bounded)
    except TimeoutError:
        raise UserError(f"no answer from {address.url} in time ({deadline.what})") from None
    except UserError:
        raise
    except Exception as error:
        hint = _SSE_HINT if grant.transport == "sse" else ""
        raise UserError(
            f"{address.url} does not answer as an MCP server: {cause_of(error)}{hint}"
        ) from error


async def _greet(grant: Grant, address: Address, deadline: Deadline) -> Handshake:
    async with connected(grant, address, deadline) as client:
        return await _introduce(client)


@asynccontextmanager
async def connected(grant: Grant, address: Address, deadline: Deadline) -> AsyncIterator[Any]:
    """A client of ``mcp`` that has greeted the server."""
    import httpx2
    from mcp import Client
    from mcp.client.sse import sse_client
    from mcp.client.streamable_http import streamable_http_client

    if grant.transport == "sse":
        connection: Any = sse_client(
            address.url,
            headers=dict(address.headers),
            sse_read_timeout=deadline.remaining() or _DAY,
            httpx_client_factory=_untrusting,
        )
        async with Client(connection, mode="legacy") as client:
            yield client
        return
    transport = None if address.inside is None else _inside(address.inside, deadline)
    async with httpx2.AsyncClient(
        transport=transport,
        headers=dict(address.headers),
        timeout=deadline.remaining(),
        trust_env=False,
    ) as http:
        connection = streamable_http_client(address.url, http_client=http, max_sse_event_size=None)
        async with Client(connection, mode="legacy") as client:
            yield client


async def _introduce(client: Any) -> Handshake:
    tools: list[str] = []
    cursor: str | None = None
    while True:
        page = await client.list_tools(cursor=cursor)
        tools += [tool.name for tool in page.tools]
        cursor = page.next_cursor
        if not cursor:
            break
    info = client.server_info
    return Handshake(f"{info.name} {info.version}".strip() if info else "", tuple(tools))


def _untrusting(
    headers: dict[str, str] | None = None,
    timeout: httpx2.Timeout | None = None,
    auth: httpx2.Auth | None = None,
) -> httpx2.AsyncClient:
    """A client that takes no proxy from the environment: servers are on this machine."""
    import httpx2

    return httpx2.AsyncClient(
        headers=headers, timeout=timeout, auth=auth, follow_redirects=True, trust_env=False
    )


def _inside(container: Container, deadline: Deadline) -> httpx2.AsyncBaseTransport:
    """An HTTP transport whose every request is made by a process inside the container."""
    import anyio
    import h11
    import httpx2

    class FromInside(httpx2.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            if request.method == "GET":  # the optional stream of server messages: not needed here
                return httpx2.Response(405, request=request)
            await request.aread()
            raw = await anyio.to_thread.run_sync(_ask, container, request, deadline)
            return _parse(raw, request)

    def _ask(container: Container, request: httpx2.Request, deadline: Deadline) -> bytes:
        host, port = request.url.host, request.url.port or 80
        try:
            return request_from_inside(container, host, port, _raw(request), deadline)
        except NoClientError as error:
            raise UserError(str(error)) from None
        except UnreachableError as error:
            said = f": {error}" if str(error) else ""
            raise UserError(f"{request.url} cannot be reached from inside main{said}") from None

    def _parse(raw: bytes, request: httpx2.Request) -> httpx2.Response:
        connection = h11.Connection(h11.CLIENT)
        connection.send(h11.Request(method="POST", target="/", headers=[("host", "main")]))
        connection.send(h11.EndOfMessage())
        connection.receive_data(raw)
        connection.receive_data(b"")
        status, headers, body = 502, [], b""
        while not isinstance(event := connection.next_event(), h11.EndOfMessage):
            if isinstance(event, h11.Response):
                status, headers = event.status_code, list(event.headers.raw_items())
            elif isinstance(event, h11.Data):
                body += bytes(event.data)
            elif isinstance(event, h11.ConnectionClosed) or event is h11.NEED_DATA:
                break
        plain = [(k, v) for k, v in headers if k.lower() != b"transfer-encoding"]
        return httpx2.Response(status, headers=plain, content=body, request=request)

    return FromInside()


def _raw(request: httpx2.Request) -> str:
    skipped = {"connection", "accept-encoding"}
    lines = [f"{request.method} {request.url.raw_path.decode()} HTTP/1.1", "Connection: close"]
    lines += [f"{k}: {v}" for k, v in request.headers.items() if k.lower() not in skipped]
    return "\r\n".join(lines) + "\r\n\r\n" + request.content.decode("utf-8")


def cause_of(error: BaseException) -> str:
    """The innermost reason of what a task group wrapped."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    return str(error) or type(error).__name__
