"""One call, from the client's request to the line in the ledger."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from secrets import token_hex
from typing import Any, Final, cast

from pytest_harbor.gateway import prices
from pytest_harbor.gateway.accounts import Door
from pytest_harbor.gateway.faults import KINDS, Kind, kind_of
from pytest_harbor.gateway.ledger import Call, Ended
from pytest_harbor.gateway.outgoing import Outgoing, encode
from pytest_harbor.gateway.providers import (
    Answer,
    ProviderError,
    Request,
    StreamError,
    Tape,
    Trace,
)
from pytest_harbor.gateway.wires.base import Heard, message_of

BUDGET_STATUS: Final = 402
"""Payment required: no client tries it again."""
_LONGEST_MESSAGE: Final = 500


class Exchange:
    """Gets the answer to one request, passes it on as it comes, and takes it down."""

    def __init__(self, door: Door, request: Request, out: Outgoing) -> None:
        self._door = door
        self._request = request
        self._out = out
        self._began = time.monotonic()
        self._at = datetime.now(UTC).isoformat(timespec="milliseconds")
        self._step = door.account.step
        self._trace = Trace()
        self._heard = Heard()
        self._ended: Ended | None = None
        self._fault: Kind | None = None
        self._message = ""
        self._tape: Tape | None = None
        self._entered = False

    async def run(self) -> None:
        """Answer the client, whatever happens; only a broken-off call raises."""
        try:
            await self._converse()
        except ProviderError as error:
            await self._say_error(error.status, _kind(error.kind), str(error))
        except StreamError as error:
            self._fail("cut", str(error))
        except asyncio.CancelledError:
            gone: Ended = "client_gone" if self._door.account.is_open else "revoked"
            self._ended = self._ended or gone
            raise
        except Exception as error:
            await self._say_error(500, "internal", f"the gateway failed: {type(error).__name__}")
        finally:
            self._enter()

    async def _converse(self) -> None:
        request, account = self._request, self._door.account
        account.offer(self._door.party, request.wire.tools(request.body))
        spent = account.spent()
        if spent is not None:
            account.refused += 1
            await self._say_error(BUDGET_STATUS, "budget_spent", f"{spent}; no further calls")
            return
        if self._door.recorder is not None:
            self._tape = self._door.recorder.tape(request)
        hide = False
        if self._door.server.inject_usage and (asked := request.wire.ask_usage(request.body)):
            request, hide = replace(request, with_usage=asked), True
        async with self._door.provider.answer(request, self._trace) as answer:
            if self._tape is not None:
                self._tape.answered(answer)
            if answer.events is None:
                await self._pass_whole(answer)
            else:
                await self._pass_stream(answer, answer.events, hide=hide)

    async def _pass_whole(self, answer: Answer) -> None:
        body = _json(answer.body)
        self._heard = self._request.wire.heard(body)
        fault = kind_of(answer.status, answer.body)
        if fault is not None:
            self._fail(fault, message_of(body) if body else answer.body.decode("utf-8", "replace"))
        elif self._heard.error:
            self._fail("server", self._heard.error)
        self._enter(answer.status)
        await self._out.whole(answer.status, answer.headers, answer.body)

    async def _pass_stream(
        self, answer: Answer, events: AsyncIterator[bytes], *, hide: bool
    ) -> None:
        wire, listener = self._request.wire, self._request.wire.listener()
        await self._out.start(answer.status, answer.headers)
        try:
            async for event in events:
                listener.hear(event)
                if self._tape is not None:
                    self._tape.event(event)
                if shown := wire.hide_usage(event) if hide else event:
                    await self._out.write(shown)
        except StreamError:
            if not listener.heard().finished:  # else it broke after all was said
                raise
        finally:
            self._heard = listener.heard()
        if self._heard.error:
            self._fail(kind_of(500, self._heard.error.encode()) or "server", self._heard.error)
        elif not self._heard.finished:
            self._fail("cut", "the stream ended without its last event")
        self._enter()
        await self._out.finish()

    async def _say_error(self, status: int, kind: Kind, message: str) -> None:
        """Give an error of the gateway's own, in the wire's shape, if nothing was given yet."""
        self._fail(kind, message)
        if self._out.status is not None:
            return
        body = encode(self._request.wire.error(status, kind, message))
        answer = Answer(status, {"content-type": "application/json"}, body)
        if self._tape is not None:
            self._tape.answered(answer)
        self._enter(status)
        await self._out.whole(status, answer.headers, body)

    def _fail(self, kind: Kind, message: str) -> None:
        message = self._door.account.ledger.redact(message)  # before it is cut
        self._ended, self._fault, self._message = "failed", kind, message[:_LONGEST_MESSAGE]

    def _enter(self, status: int | None = None) -> None:
        """Write the ledger's line, once: before the client has the end of its answer."""
        if self._entered:
            return
        self._entered = True
        if self._ended is None:
            self._ended = "done"
        if self._tape is not None:
            broken = self._ended in ("client_gone", "revoked") or self._fault == "cut"
            self._tape.close(whole=not broken)
        kept = self._heard.tokens if self._door.server.keep_tokens else ()
        self._door.account.enter(self._call(self._ended, status), kept)

    def _call(self, ended: Ended, status: int | None) -> Call:
        door, heard, first = self._door, self._heard, self._out.first_byte
        asked = self._request.body.get("model")
        return Call(
            id=token_hex(8),
            episode=door.account.episode,
            party=door.party,
            try_number=door.account.try_number,
            step=self._step,
            server=door.server.name,
            provider=door.kind,
            wire=self._request.wire.name,
            started_at=self._at,
            seconds=round(time.monotonic() - self._began, 4),
            first_byte_seconds=None if first is None else round(first - self._began, 4),
            queued_seconds=round(self._trace.queued, 4),
            streamed=self._request.streams,
            status=status or self._out.status,
            ended=ended,
            fault=self._fault,
            message=self._message,
            retries=tuple(self._trace.retries),
            asked_model=asked if isinstance(asked, str) else None,
            served_model=heard.model,
            usage=heard.usage,
            cost_usd=self._cost(asked),
        )

    def _cost(self, asked: Any) -> float | None:
        usage, server = self._heard.usage, self._door.server
        if usage is None:
            return None
        if server.is_free:
            return 0.0
        known = self._door.account.terms.prices
        price = prices.find_price(known, self._heard.model, server.model, str(asked))
        return None if price is None else prices.cost(usage, price)


def _json(body: bytes) -> Mapping[str, Any]:
    try:
        value = json.loads(body)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _kind(kind: str) -> Kind:
    return cast("Kind", kind) if kind in KINDS else "server"
