"""The way back to a client, as ASGI messages: head, parts, end."""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from typing import Any

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Headers = Mapping[str, str] | Iterable[tuple[str, str]]
"""By name, or one by one where a name may come twice."""


class Outgoing:
    """One answer on its way. Left without :meth:`finish`, its connection breaks."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status: int | None = None
        self.first_byte: float | None = None
        """When the first part left, by the monotonic clock."""

    async def start(self, status: int, headers: Headers) -> None:
        """Send the head."""
        self.status = status
        pairs = headers.items() if isinstance(headers, Mapping) else headers
        raw = [(name.lower().encode(), value.encode("latin-1")) for name, value in pairs]
        await self._send({"type": "http.response.start", "status": status, "headers": raw})

    async def write(self, part: bytes) -> None:
        """Send a part of the body at once."""
        self.first_byte = self.first_byte or time.monotonic()
        await self._send({"type": "http.response.body", "body": part, "more_body": True})

    async def finish(self, part: bytes = b"") -> None:
        """Send the last part."""
        self.first_byte = self.first_byte or time.monotonic()
        await self._send({"type": "http.response.body", "body": part, "more_body": False})

    async def whole(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        """Send an answer in one piece."""
        await self.start(status, {**headers, "content-length": str(len(body))})
        await self.finish(body)

    async def json(self, status: int, data: Any) -> None:
        """Send JSON data."""
        await self.whole(status, {"content-type": "application/json"}, encode(data))


def encode(data: Any) -> bytes:
    """JSON data as a body."""
    return json.dumps(data, ensure_ascii=False).encode("utf-8", "replace")
