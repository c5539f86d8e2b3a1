"""One MCP server that an episode's agent may reach: where it is, and which calls are open.

How a request passes is :mod:`~pytest_harbor.gateway.relay`'s matter.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final
from urllib.parse import urljoin, urlsplit

from pytest_harbor.gateway import jsonrpc
from pytest_harbor.gateway.accounts import Account
from pytest_harbor.gateway.jsonrpc import Message
from pytest_harbor.gateway.outgoing import Outgoing
from pytest_harbor.gateway.relay_log import McpCall, McpEnded

if TYPE_CHECKING:
    import httpx2

CALL_SECONDS: Final = 3600.0
"""How long a call may take, unless told otherwise."""
_CONNECT_SECONDS: Final = 10.0

Pairs = list[tuple[str, str]]
"""Headers: names in lower case, some perhaps twice."""


class LostError(Exception):
    """The server cannot be reached, or went away."""


@dataclass(frozen=True)
class RelayAccess:
    """What an agent gets to know: where its MCP server is."""

    base_url: str
    secret: str = field(repr=False)
    path: str

    @property
    def url(self) -> str:
        """The address, with the path that the server's own has."""
        return f"{self.base_url}/{self.secret}{self.path}"

    def at(self, base_url: str) -> RelayAccess:
        """The same by another address that the gateway listens at."""
        return RelayAccess(base_url, self.secret, self.path)


@dataclass(frozen=True)
class Asked:
    """A request of an agent, read to its end."""

    method: str
    path: str
    """What follows the secret, as it came."""
    query: str
    headers: Pairs
    body: bytes

    def header(self, name: str) -> str | None:
        """A header's value."""
        return next((value for key, value in self.headers if key == name), None)


class RelayDoor:
    """The way to one MCP server for one episode. Everything but :meth:`aim` is the loop's."""

    def __init__(
        self,
        secret: str,
        account: Account,
        server: str,
        url: str,
        *,
        headers: Mapping[str, str],
        aliases: Mapping[str, str],
        seconds: float,
    ) -> None:
        parts = urlsplit(url)
        self.secret: Final = secret
        self.account: Final = account
        self.server: Final = server
        self.path: Final = parts.path + (f"?{parts.query}" if parts.query else "")
        self.seconds: Final = seconds
        self.shown: Final = dict(aliases)
        self.meant: Final = {alias: name for name, alias in aliases.items()}
        self.waiting: dict[tuple[str, str], Pending] = {}
        """Calls whose answer may come on another stream, by session and id."""
        self.streams: dict[str, Outgoing] = {}
        """Open streams for what a server says unasked, by session."""
        self._headers = {"host": parts.netloc.rpartition("@")[2]} | {
            name.lower(): value for name, value in headers.items()
        }
        self._origin = _origin(url)
        self._origins = {self._origin, f"{parts.scheme}://{self._headers['host']}"}
        self._known = {parts.path or "/", parts.path.rstrip("/") or "/"}
        """Paths that may be asked for; a server's other pages are nobody's business."""
        self._transport: httpx2.AsyncHTTPTransport | None = None

    def aim(self, url: str) -> None:
        """Say where the server really is; path, query and the Host header stay."""
        self._origin = _origin(url)
        self._origins.add(self._origin)

    def knows(self, path: str) -> bool:
        """Whether a path may be asked for."""
        return path in self._known

    def relocated(self, url: str, path: str) -> str:
        """An address that the server gave at a path, as one here; a stranger's stays as it is."""
        whole = urljoin(self._origin + path, url)
        if _origin(whole) not in self._origins:
            return url
        parts = urlsplit(whole)
        self._known.add(parts.path)
        query = f"?{parts.query}" if parts.query else ""
        return f"/{self.secret}{parts.path}{query}"

    @asynccontextmanager
    async def ask(self, asked: Asked) -> AsyncIterator[httpx2.Response]:
        """Pass a request on; a connection for each, so that none dies of another's end.

        Raises:
            LostError: the server does not answer.
        """
        import httpx2

        if self._transport is None:
            limits = httpx2.Limits(max_connections=None, max_keepalive_connections=0)
            verify = self._origin.startswith("https:")
            self._transport = httpx2.AsyncHTTPTransport(
                verify=verify, trust_env=False, limits=limits
            )
        mine = self._headers
        headers = [(name, value) for name, value in asked.headers if name not in mine]
        request = httpx2.Request(
            asked.method,
            self._origin + asked.path + (f"?{asked.query}" if asked.query else ""),
            headers=[*headers, *mine.items(), ("accept-encoding", "identity")],
            content=asked.body if asked.body or asked.method == "POST" else None,
            extensions={"timeout": {"connect": _CONNECT_SECONDS}},
        )
        try:
            response = await self._transport.handle_async_request(request)
        except httpx2.HTTPError as error:
            raise LostError(cause_of(error)) from error
        try:
            yield response
        finally:
            with suppress(Exception):
                await response.aclose()


class Pending:
    """A request that waits for its answer; closed once, then it is on the record."""

    def __init__(self, door: RelayDoor, message: Message) -> None:
        self._door = door
        self._step = door.account.step
        self._began = time.monotonic()
        self._at = datetime.now(UTC).isoformat(timespec="milliseconds")
        self._params = jsonrpc.params_of(message)
        self.id: Final = message["id"]
        self.method: Final[str] = message["method"]
        self.status: int | None = None
        self.done: Final = asyncio.Event()

    @property
    def left(self) -> float:
        """Seconds until its deadline."""
        return max(0.0, self._began + self._door.seconds - time.monotonic())

    def answer(self, answer: Message) -> None:
        """Its answer came."""
        text = jsonrpc.text_of(self.method, answer)
        self._close("answered", is_error=jsonrpc.is_failure(answer), text=text)

    def give_up(self, ended: McpEnded, fault: str = "") -> None:
        """No answer will come, or nobody waits for it any more."""
        self._close(ended, fault=fault)

    def _close(
        self, ended: McpEnded, *, is_error: bool = False, text: str = "", fault: str = ""
    ) -> None:
        if self.done.is_set():
            return
        self.done.set()
        account = self._door.account
        log, is_tool = account.relay_log, self.method == "tools/call"
        arguments = self._params.get("arguments") if is_tool else self._params
        call = McpCall(
            episode=account.episode,
            try_number=account.try_number,
            step=self._step,
            server=self._door.server,
            method=self.method,
            tool=str(self._params.get("name", "")) if is_tool else None,
            arguments=log.cut_data(arguments if isinstance(arguments, dict) else {}),
            started_at=self._at,
            seconds=round(time.monotonic() - self._began, 4),
            status=self.status,
            ended=ended,
            is_error=is_error,
            reply=log.cut(text),
            reply_size=len(text),
            fault=log.cut(fault),
        )
        with suppress(OSError):  # a full disk is no reason to leave an agent without its answer
            log.add(call)


def cause_of(error: Exception) -> str:
    """An error of the HTTP client in a few words."""
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
