"""Server-sent events as bytes: cut a stream into whole events, read one, write one.

An event keeps the exact bytes it came in, so that what is passed on is what was received.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

DONE: Final = "[DONE]"
"""The last data of a chat stream; it is no JSON."""

_END: Final = re.compile(rb"\r?\n\r?\n|\r\r(?!\n)")
_LINE_END: Final = re.compile(r"\r\n|\n|\r")
"""Not str.splitlines, which also cuts at U+2028: JSON may hold that as it is."""


class Splitter:
    """Cuts what arrives into events; one that is not whole yet waits for its rest."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, chunk: bytes) -> list[bytes]:
        """Take what arrived; return the events that it completed, each with its blank line."""
        self._rest += chunk
        events, start = [], 0
        for end in _END.finditer(self._rest):
            events.append(self._rest[start : end.end()])
            start = end.end()
        self._rest = self._rest[start:]
        return events

    def rest(self) -> bytes:
        """What was left without a blank line when the stream ended."""
        rest, self._rest = self._rest, b""
        return rest


def data_of(event: bytes) -> str:
    """The data of an event, its lines joined; empty for a comment."""
    lines = _LINE_END.split(event.decode("utf-8", "replace"))
    data = (line.removeprefix("data:") for line in lines if line.startswith("data:"))
    return "\n".join(line.removeprefix(" ") for line in data)


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
