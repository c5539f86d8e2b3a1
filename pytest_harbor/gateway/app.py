"""The application behind all sockets: from an address to a party's door, from a path to a wire.

A prefix that is not known gets one and the same 404, so that trying addresses teaches nothing.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import replace
from typing import Any, Final

from pytest_harbor.gateway.accounts import Account, Door
from pytest_harbor.gateway.exchange import Exchange
from pytest_harbor.gateway.outgoing import Outgoing, Send
from pytest_harbor.gateway.providers import Request
from pytest_harbor.gateway.relay import Relaying, incoming_headers
from pytest_harbor.gateway.relay_door import Asked, RelayDoor
from pytest_harbor.gateway.upstream import FORWARDED
from pytest_harbor.gateway.wires.base import Wire
from pytest_harbor.gateway.wires.every import WIRES, wire_at

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Scope = Mapping[str, Any]

LARGEST_REQUEST: Final = 64 * 1024 * 1024
"""Bytes of a request's body; images in a long conversation need some."""


_VERSIONS: Final = frozenset(wire.version for wire in WIRES.values())


class RefusedError(Exception):
    """A request that no model server gets to see."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class GoneError(Exception):
    """The client hung up before it had asked."""


class Application:
    """An ASGI application over tables of doors and relays that others fill and empty."""

    def __init__(
        self, doors: Mapping[str, Door], relays: Mapping[str, RelayDoor] | None = None
    ) -> None:
        self._doors = doors
        self._relays = relays if relays is not None else {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            return
        out = Outgoing(send)
        secret, path = split_path(scope["path"])
        door = self._doors.get(secret)
        if (relay := self._relays.get(secret)) is not None:
            await _serve_relay(relay, scope, receive, out)
        elif door is None:
            await _say_unknown(out)
        elif path == "models" or (path.startswith("models/") and ":" not in path):
            await out.json(200, model_list(door))
        else:
            await self._serve_call(door, path, scope, receive, out)

    async def _serve_call(
        self, door: Door, path: str, scope: Scope, receive: Receive, out: Outgoing
    ) -> None:
        wire, asked = wire_at(path)
        try:
            request = await _read_request(door, wire, path, scope, receive)
            request = replace(request, body={**request.body, **asked})
        except RefusedError as error:
            shape = wire or WIRES["chat"]
            await out.json(error.status, shape.error(error.status, "bad_request", str(error)))
        except GoneError:
            return
        else:
            await _while_connected(Exchange(door, request, out), door.account, receive)
            if out.status is None:
                await _say_unknown(out)


async def _serve_relay(door: RelayDoor, scope: Scope, receive: Receive, out: Outgoing) -> None:
    """Relay a request; no path but the server's own exists."""
    raw = scope["raw_path"].decode("latin-1")
    path = raw.removeprefix(f"/{door.secret}") or "/"
    if door.knows(path):
        try:
            asked = Asked(
                method=scope["method"],
                path=path,
                query=scope["query_string"].decode("latin-1"),
                headers=incoming_headers(scope["headers"]),
                body=await _read_body(receive),
            )
        except RefusedError as error:
            await out.whole(error.status, {"content-type": "text/plain"}, str(error).encode())
            return
        except GoneError:
            return
        await _while_connected(Relaying(door, asked, out), door.account, receive)
    if out.status is None:
        await _say_unknown(out)


async def _say_unknown(out: Outgoing) -> None:
    await out.whole(404, {"content-type": "text/plain"}, b"Not Found")


async def _while_connected(
    exchange: Exchange | Relaying, account: Account, receive: Receive
) -> None:
    """Run the exchange, and break it off when the client hangs up or the episode ends."""
    if not account.is_open:  # it ended while the request came in
        return
    task = asyncio.create_task(exchange.run())
    gone = asyncio.create_task(_hang_up(receive))
    account.tasks.add(task)
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        account.tasks.discard(task)
        gone.cancel()
        task.cancel()
        await asyncio.gather(task, gone, return_exceptions=True)


async def _hang_up(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _read_request(
    door: Door, wire: Wire | None, path: str, scope: Scope, receive: Receive
) -> Request:
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    if wire is None:
        raise RefusedError(404, f"there is no /v1/{path} here; there are {_paths()}")
    if headers.get("upgrade", "").lower() == "websocket":
        raise RefusedError(426, "there is no WebSocket here; send the request by POST")
    if scope["method"] != "POST":
        raise RefusedError(405, f"/{wire.version}/{path} takes POST")
    if headers.get("content-encoding", "identity") != "identity":
        raise RefusedError(415, "a compressed request is not understood; send it plain")
    try:
        body = json.loads(await _read_body(receive))
    except ValueError:
        raise RefusedError(400, "the request is not JSON") from None
    if not isinstance(body, dict):
        raise RefusedError(400, "the request is not a JSON object")
    return Request(
        wire=wire,
        body=body,
        headers={name: value for name, value in headers.items() if name in FORWARDED},
        query=scope["query_string"].decode("latin-1"),
        episode=door.account.episode,
        party=door.party,
    )


async def _read_body(receive: Receive) -> bytes:
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise GoneError
        body += message.get("body", b"")
        if len(body) > LARGEST_REQUEST:
            raise RefusedError(413, f"the request is larger than {LARGEST_REQUEST} bytes")
        if not message.get("more_body"):
            return bytes(body)


def split_path(path: str) -> tuple[str, str]:
    """The secret prefix, and what follows it without versions: clients add none, one or two."""
    secret, *segments = [each for each in path.split("/") if each] or [""]
    while segments and segments[0] in _VERSIONS:
        del segments[0]
    return secret, "/".join(segments)


def model_list(door: Door) -> dict[str, Any]:
    """The one model of a door, in a shape that OpenAI's and Anthropic's clients both take."""
    name = door.server.model or door.server.name
    model = {
        "id": name,
        "object": "model",
        "type": "model",
        "display_name": name,
        "owned_by": "pytest-harbor",
        "created": 0,
        "created_at": "1970-01-01T00:00:00Z",
    }
    ends = {"has_more": False, "first_id": name, "last_id": name}
    return {"object": "list", "data": [model], **ends}


def _paths() -> str:
    return ", ".join([*(f"/{wire.version}/{wire.path}" for wire in WIRES.values()), "/v1/models"])
