"""What the gateway asks of a provider, whichever kind it is: one answer to one request."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from pytest_harbor.gateway.wires.base import Wire


@dataclass(frozen=True)
class Request:
    """A call as a client sent it, without its secret address and its key."""

    wire: Wire
    body: Mapping[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict)
    """Only those that mean something to a model server, in lower case."""
    query: str = ""
    episode: str = ""
    party: str = ""
    with_usage: Mapping[str, Any] | None = None
    """The body with token counts asked for, where the client's does not."""

    @property
    def streams(self) -> bool:
        """Whether the client wants the answer as it comes."""
        return bool(self.body.get("stream"))

    @property
    def outgoing(self) -> Mapping[str, Any]:
        """What a model server is asked."""
        return self.body if self.with_usage is None else self.with_usage


@dataclass(frozen=True)
class Answer:
    """What a provider answered: all of it, or the events of a stream as they come."""

    status: int
    headers: Mapping[str, str]
    body: bytes = b""
    events: AsyncIterator[bytes] | None = None
    """Each item is one whole server-sent event with its blank line."""


@dataclass
class Trace:
    """What happened to a call on its way, for the ledger; the provider writes it as it goes."""

    queued: float = 0.0
    """Seconds spent waiting for the server's concurrency limit."""
    retries: list[str] = field(default_factory=list)
    """Why each further try was made."""


class ProviderError(Exception):
    """A provider has no answer to pass on; the client gets one in the shape of its wire."""

    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind


class StreamError(Exception):
    """A stream ended in the middle; the client must see its connection break too."""


class Provider(Protocol):
    """Something that answers. It lives in the gateway's thread."""

    def answer(self, request: Request, trace: Trace) -> AbstractAsyncContextManager[Answer]:
        """Answer a request; leaving the context ends the answer, finished or not.

        Raises:
            ProviderError: there is no answer.
            StreamError: (while its events are read) the answer broke off.
        """

    async def close(self) -> None:
        """Give back what is held."""


class Tape(Protocol):
    """Takes down one exchange."""

    def answered(self, answer: Answer) -> None:
        """An answer began; that of a whole body is all of it."""

    def event(self, event: bytes) -> None:
        """An event of a stream came."""

    def close(self, *, whole: bool) -> None:
        """The exchange is over; not ``whole`` when it was broken off."""


class Recorder(Protocol):
    """Takes down what a party asks and what it is answered."""

    def tape(self, request: Request) -> Tape:
        """Begin to take down an exchange."""
