"""The relay: a secret address at which an agent finds an MCP server, with everything on the record.

Requests and answers pass as they are and as they come; of a stream, event by event. What is asked
and what answers it is read on the way (:mod:`~pytest_harbor.gateway.jsonrpc`) and written down
(:mod:`~pytest_harbor.gateway.relay_log`). Only four things are the relay's own: addresses of the
server that its answers hold, tool names under an alias, the error at a call's deadline, and the
error when the server is lost before it said anything.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any, Final

from pytest_harbor.gateway import jsonrpc, sse
from pytest_harbor.gateway.accounts import Account
from pytest_harbor.gateway.jsonrpc import Message
from pytest_harbor.gateway.outgoing import Outgoing
from pytest_harbor.gateway.relay_door import (
    Asked,
    LostError,
    Pairs,
    Pending,
    RelayDoor,
    cause_of,
)
from pytest_harbor.gateway.relay_log import McpEnded

if TYPE_CHECKING:
    import httpx2

RECORDED: Final = frozenset({"initialize", "server/discover", "tools/list", "tools/call"})
"""Methods that are written down, and that have a deadline."""
_SAID: Final = 300
"""Bytes of an answer that is none, for the record."""
_SESSION: Final = "mcp-session-id"
_ONE_HOP: Final = frozenset(
    {
        *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te"),
        *("trailer", "transfer-encoding", "upgrade", "proxy-connection"),
    }
)
"""Headers that belong to one connection."""
_NOT_ASKED: Final = _ONE_HOP | {"host", "content-length", "accept-encoding", "expect"}
_NOT_ANSWERED: Final = _ONE_HOP | {"date", "server"}


class Relaying:
    """One request on its way to the server, and the answer on its way back."""

    def __init__(self, door: RelayDoor, asked: Asked, out: Outgoing) -> None:
        self._door = door
        self._out = out
        self._asked, messages = _translated(asked, door.meant)
        self._pending = {
            jsonrpc.key_of(message): Pending(door, message)
            for message in messages
            if jsonrpc.is_request(message) and message["method"] in RECORDED
        }
        self._cancelled = [
            jsonrpc.key_of({"id": jsonrpc.params_of(message).get("requestId")})
            for message in messages
            if message.get("method") == "notifications/cancelled"
        ]
        self._is_batch = asked.body.lstrip()[:1] == b"["
        self._session = asked.header(_SESSION) or f"{asked.path}?{asked.query}"
        self._is_older = asked.header(_SESSION) is None
        """No session in a header: the older transport, or none yet."""
        self._can_resume = False
        self._deadline: asyncio.Timeout | None = None

    async def run(self) -> None:
        """Answer the agent; only what it or the episode's end breaks off raises."""
        for key, pending in self._pending.items():
            self._door.waiting[self._session, key] = pending
        for key in self._cancelled:
            if (waits := self._door.waiting.get((self._session, key))) is not None:
                waits.give_up("client_gone", "the agent cancelled the call")
        try:
            async with asyncio.timeout(self._door.seconds if self._pending else None) as deadline:
                self._deadline = deadline
                await self._relay()
        except TimeoutError:
            await self._say_late()
        except LostError as error:
            await self._say_lost(str(error))
        except asyncio.CancelledError:
            self._give_up(_broken_off(self._door.account))
            raise
        finally:
            self._give_up("failed", "the answer is none to this request")

    async def _relay(self) -> None:
        async with self._door.ask(self._asked) as response:
            for pending in self._pending.values():
                pending.status = response.status_code
            head = self._head(response)
            kind = response.headers.get("content-type", "").lower()
            if kind.startswith("text/event-stream"):
                await self._pass_stream(response, head)
            elif self._pending:
                await self._pass_whole(response, head)
            else:
                await self._pass_body(response, head)

    def _head(self, response: httpx2.Response) -> Pairs:
        return [
            (name, self._relocated(value) if name == "location" else value)
            for name, value in _pairs(response.headers.raw)
            if name not in _NOT_ANSWERED
        ]

    def _relocated(self, url: str) -> str:
        return self._door.relocated(url, self._asked.path)

    # -- three kinds of answer -------------------------------------------------------------------

    async def _pass_stream(self, response: httpx2.Response, head: Pairs) -> None:
        await self._out.start(response.status_code, [p for p in head if p[0] != "content-length"])
        listens = self._asked.method == "GET"
        if listens:
            self._door.streams[self._session] = self._out
        ended: McpEnded | None = None
        why = ""
        try:
            async with aclosing(_events(response)) as events:
                async for event in events:
                    await self._out.write(self._heard(event))
            ended, why = "failed", "the stream ended without an answer"
        except LostError as error:
            ended, why = "failed", str(error)
            raise
        finally:
            if listens:
                self._hang_up(ended or _broken_off(self._door.account), why)
        self._leave(why)
        await self._out.finish()

    async def _pass_whole(self, response: httpx2.Response, head: Pairs) -> None:
        """An answer to a call is of use only as a whole; what is lost in it is lost altogether."""
        parts = [part async for part in _parts(response)]
        body = self._heard_body(b"".join(parts))
        if response.status_code == 202 and self._is_older:  # the answer comes on its stream
            self._can_resume = True
        said = body[:_SAID].decode("utf-8", "replace")
        self._leave(f"HTTP {response.status_code} without an answer: {said}".rstrip(": "))
        length = ("content-length", str(len(body)))
        await self._out.start(
            response.status_code, [*(p for p in head if p[0] != "content-length"), length]
        )
        await self._out.finish(body)

    async def _pass_body(self, response: httpx2.Response, head: Pairs) -> None:
        await self._out.start(response.status_code, head)
        async for part in _parts(response):
            await self._out.write(part)
        await self._out.finish()

    # -- listening -----------------------------------------------------------------------------

    def _heard(self, event: bytes) -> bytes:
        """Take down what an event says; it goes on as it came, but for names and addresses."""
        self._can_resume = self._can_resume or sse.has_id(event)
        if self._asked.method == "GET" and sse.name_of(event) == "endpoint":
            return self._meet(event)
        if not self._pending and not self._door.waiting:
            return event
        messages = jsonrpc.messages_in(data := sse.data_of(event))
        if not self._take(messages):
            return event
        return sse.with_data(event, json.dumps(_like(data, messages)))

    def _heard_body(self, body: bytes) -> bytes:
        messages = jsonrpc.messages_in(body)
        if not self._take(messages):
            return body
        return json.dumps(_like(body.decode("utf-8", "replace"), messages)).encode()

    def _take(self, messages: Iterable[Message]) -> bool:
        """Enter answers; says whether a message was changed for an alias."""
        changed = False
        for message in messages:
            key = jsonrpc.key_of(message)
            pending = self._pending.get(key) or self._door.waiting.get((self._session, key))
            if pending is None or not jsonrpc.is_answer(message):
                continue
            with suppress(Exception):  # whatever cannot be read passes all the same
                pending.answer(message)
            self._forget(key, pending)
            if pending.method == "tools/list" and jsonrpc.rename_tools(message, self._door.shown):
                changed = True
        if self._deadline is not None and not self._open():
            self._deadline.reschedule(None)
        return changed

    def _meet(self, event: bytes) -> bytes:
        """The older transport says where to send requests: that is the session's name, too."""
        shown = self._relocated(sse.data_of(event))
        path, _, query = shown.removeprefix(f"/{self._door.secret}").partition("?")
        self._session = f"{path}?{query}"
        self._door.streams[self._session] = self._out
        return sse.with_data(event, shown)

    # -- ends ----------------------------------------------------------------------------------

    def _open(self) -> list[Pending]:
        return [pending for pending in self._pending.values() if not pending.done.is_set()]

    def _forget(self, key: str, pending: Pending) -> None:
        if self._door.waiting.get((self._session, key)) is pending:
            del self._door.waiting[self._session, key]

    def _give_up(self, ended: McpEnded, fault: str = "") -> None:
        for key, pending in self._pending.items():
            pending.give_up(ended, fault)
            self._forget(key, pending)

    def _leave(self, fault: str) -> None:
        """The answer is over. What it left open is lost, or may come on another stream."""
        if not self._can_resume:
            self._give_up("failed", fault)
            return
        account = self._door.account
        for key, pending in self._pending.items():
            if not pending.done.is_set():
                task = asyncio.create_task(
                    _await_elsewhere(self._door, self._session, key, pending)
                )
                account.tasks.add(task)
                task.add_done_callback(account.tasks.discard)
        self._pending = {}

    def _hang_up(self, ended: McpEnded, fault: str) -> None:
        """A stream of the server's own messages is over; of the older transport, the session."""
        if self._door.streams.get(self._session) is self._out:
            del self._door.streams[self._session]
        for (session, key), pending in tuple(self._door.waiting.items()):
            if self._is_older and session == self._session:
                pending.give_up(ended, fault)
                del self._door.waiting[session, key]

    async def _say_late(self) -> None:
        late = self._open()
        self._give_up("timeout", _late(self._door))
        await self._say_errors(late, 200, jsonrpc.LATE, _late(self._door))

    async def _say_lost(self, why: str) -> None:
        if self._out.status is not None:  # the connection breaks here too
            self._leave(why)
            return
        lost = self._open()
        self._give_up("failed", why)
        text = f"MCP server {self._door.server!r} cannot be reached ({why})"
        await self._say_errors(lost, 502, jsonrpc.LOST, text)

    async def _say_errors(self, open_: list[Pending], status: int, code: int, text: str) -> None:
        """Answer what is open with an error, in the form that the answer has by now."""
        errors = [jsonrpc.error(pending.id, code, text) for pending in open_]
        if self._out.status is not None:
            for each in errors:
                await self._out.write(sse.encode(each, "message"))
            await self._out.finish()
        elif errors:
            await self._out.json(status, errors if self._is_batch else errors[0])
        else:
            await self._out.whole(status, {"content-type": "text/plain"}, text.encode())


async def _await_elsewhere(door: RelayDoor, session: str, key: str, pending: Pending) -> None:
    """Watch the deadline of a call whose answer is to come on another stream."""
    try:
        async with asyncio.timeout(pending.left):
            await pending.done.wait()
    except TimeoutError:
        pending.give_up("timeout", _late(door))
        if (stream := door.streams.get(session)) is not None:
            told = jsonrpc.error(pending.id, jsonrpc.LATE, _late(door))
            await stream.write(sse.encode(told, "message"))
    except asyncio.CancelledError:
        pending.give_up("revoked")
        raise
    finally:
        if door.waiting.get((session, key)) is pending:
            del door.waiting[session, key]


def _late(door: RelayDoor) -> str:
    return f"MCP server {door.server!r} gave no answer within {door.seconds:g} s"


def _broken_off(account: Account) -> McpEnded:
    return "client_gone" if account.is_open else "revoked"


def _translated(asked: Asked, names: Mapping[str, str]) -> tuple[Asked, tuple[Message, ...]]:
    """The request with tools called by their own names, and its messages."""
    messages = jsonrpc.messages_in(asked.body) if asked.method == "POST" else ()
    renamed = [jsonrpc.rename_call(message, names) for message in messages]
    if any(renamed):
        body = json.dumps(_like(asked.body.decode("utf-8", "replace"), messages)).encode()
        asked = Asked(asked.method, asked.path, asked.query, asked.headers, body)
    return asked, messages


def _like(text: str, messages: tuple[Message, ...]) -> Any:
    """Messages in the form they came in: a batch, or one alone."""
    return list(messages) if text.lstrip()[:1] == "[" else messages[0]


async def _parts(response: httpx2.Response) -> AsyncGenerator[bytes, None]:
    import httpx2

    stream = response.stream
    assert isinstance(stream, httpx2.AsyncByteStream)
    try:
        async for part in stream:
            yield part
    except httpx2.HTTPError as error:
        raise LostError(f"the answer broke off: {cause_of(error)}") from error


async def _events(response: httpx2.Response) -> AsyncGenerator[bytes, None]:
    splitter = sse.Splitter()
    async with aclosing(_parts(response)) as parts:
        async for part in parts:
            for event in splitter.feed(part):
                yield event
    if rest := splitter.rest():
        yield rest


def incoming_headers(raw: Iterable[tuple[bytes, bytes]]) -> Pairs:
    """The headers of a request that a server may see."""
    return [(name, value) for name, value in _pairs(raw) if name not in _NOT_ASKED]


def _pairs(raw: Iterable[tuple[bytes, bytes]]) -> Pairs:
    return [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in raw]
