"""The ``replay`` provider: answers from a recording, with no network and no key.

A request is answered by the first recorded exchange that is like it and was not given yet. So
calls that a party makes side by side may come in any order, and equal calls get their answers in
the order of the recording.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pytest_harbor.gateway import canonical
from pytest_harbor.gateway.providers import Answer, ProviderError, Request, StreamError, Trace
from pytest_harbor.gateway.recording import Recorded, read_recording
from pytest_harbor.redaction import Redactor

_LOOK_AHEAD: Final = 4
"""Recorded exchanges that a stray request is compared with, to show the most similar one."""


@dataclass(frozen=True)
class _Ready:
    """A recorded exchange with what its request is recognised by."""

    exchange: Recorded
    request: Mapping[str, Any]
    digest: str


class Replayed:
    """Gives one party's recorded answers again."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._left = [_ready(each) for each in read_recording(file)]
        self._given: dict[str, int] = {}
        self._asked = 0
        # What the recording does not hold because it is key-shaped cannot be compared either.
        self._redactor = Redactor()

    @property
    def left(self) -> int:
        """Recorded exchanges that nobody has asked for yet."""
        return len(self._left)

    @asynccontextmanager
    async def answer(self, request: Request, _trace: Trace) -> AsyncIterator[Answer]:
        """Give the recorded answer."""
        exchange = self._find(request)
        if exchange.status is None:
            await asyncio.Event().wait()  # then as now: until the client leaves
        events = None if exchange.events is None else _again(exchange)
        yield Answer(exchange.status or 0, exchange.headers, exchange.body, events)

    async def close(self) -> None:
        """Nothing is held."""

    def _find(self, request: Request) -> Recorded:
        self._asked += 1
        asked = canonical.canonical(self._redactor.data(request.body))
        wanted = canonical.digest({"wire": request.wire.name, **asked})
        for ready in self._left:
            if ready.digest == wanted:
                self._left.remove(ready)
                self._given[wanted] = ready.exchange.number
                return ready.exchange
        raise ProviderError(400, "replay_mismatch", self._explain(request, asked, wanted))

    def _explain(self, request: Request, asked: Mapping[str, Any], wanted: str) -> str:
        head = f"request {self._asked} of {request.party} is not in the recording {self._file.name}"
        if wanted in self._given:
            return f"{head} once more: it was exchange {self._given[wanted]}, given already"
        alike = [each for each in self._left if each.exchange.wire == request.wire.name]
        if not alike:
            return f"{head}: all that was recorded on this wire is given"
        nearest = min(
            alike[:_LOOK_AHEAD],
            key=lambda each: len(list(canonical.differences(each.request, asked))),
        )
        differences = canonical.explain(nearest.request, asked)
        return f"{head}; from exchange {nearest.exchange.number} it differs in:\n{differences}"


def _ready(exchange: Recorded) -> _Ready:
    request = canonical.canonical(exchange.request)
    return _Ready(exchange, request, canonical.digest({"wire": exchange.wire, **request}))


async def _again(exchange: Recorded) -> AsyncIterator[bytes]:
    for event in exchange.events or ():
        yield event.encode()
    if not exchange.whole:
        raise StreamError("the recorded answer breaks off here")
