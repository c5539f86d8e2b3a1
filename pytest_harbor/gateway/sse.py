"""Server-sent events as bytes: cut a stream into whole events, read one, write one.

An event keeps the exact bytes it came in, so that what is passed on is what was received.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

DONE: Final = "[DONE]"
"""The last data of a chat stream; it is no JSON."""

_END: Final = re.compile(rb"\r?\n\r?\n|\r\r(?!\n)")
_LONGEST_END: Final = 4
_LINE_END: Final = re.compile(r"\r\n|\n|\r")
"""Not str.splitlines, which also cuts at U+2028: JSON may hold that as it is."""


class Splitter:
    """Cuts what arrives into events; one that is not whole yet waits for its rest."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, chunk: bytes) -> list[bytes]:
        """Take what arrived; return the events that it completed, each with its blank line."""
        seen = max(0, len(self._rest) - _LONGEST_END + 1)  # a large event is not searched again
        self._rest += chunk
        events, start = [], 0
        for end in _END.finditer(self._rest, seen):
            events.append(bytes(self._rest[start : end.end()]))
            start = end.end()
        del self._rest[:start]
        return events

    def rest(self) -> bytes:
        """What was left without a blank line when the stream ended."""
        rest, self._rest = bytes(self._rest), bytearray()
        return rest


def data_of(event: bytes) -> str:
    """The data of an event, its lines joined; empty for a comment."""
    return "\n".join(_fields(event, "data"))


def name_of(event: bytes) -> str:
    """The name of an event."""
    return next(_fields(event, "event"), "message")


def has_id(event: bytes) -> bool:
    """Whether a client that lost the stream can ask for what came after this event."""
    return any(_fields(event, "id"))


def with_data(event: bytes, data: str) -> bytes:
    """The event with other data, of one line; what else it says stays."""
    lines = _LINE_END.split(event.decode("utf-8", "replace").rstrip("\r\n"))
    kept = [line for line in lines if not line.startswith("data:")]
    return "\n".join([*kept, f"data: {data}", "", ""]).encode()


def _fields(event: bytes, name: str) -> Iterator[str]:
    for line in _LINE_END.split(event.decode("utf-8", "replace")):
        if line.startswith(f"{name}:"):
            yield line.removeprefix(f"{name}:").removeprefix(" ")


def json_of(event: bytes) -> dict[str, Any] | None:
    """The data of an event where it is a JSON object, else None."""
    try:
        value = json.loads(data_of(event))
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def encode(data: Any, name: str | None = None) -> bytes:
    """An event; data that is no text becomes JSON."""
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    return (f"event: {name}\n" if name else "").encode() + f"data: {text}\n\n".encode()
