"""The ``http`` provider: passes a call on to a real model server, with the operator's key.

Only here is a key held. It leaves in a request header towards the server, and whatever comes back
is searched for it, because some servers quote the key they did not like.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlsplit, urlunsplit

from pytest_harbor.gateway import faults
from pytest_harbor.gateway.limits import Limit
from pytest_harbor.gateway.model_server import ModelServer
from pytest_harbor.gateway.providers import Answer, ProviderError, Request, StreamError, Trace
from pytest_harbor.gateway.sse import Splitter
from pytest_harbor.gateway.wires.base import WireName
from pytest_harbor.redaction import MASK

if TYPE_CHECKING:
    import httpx2

_CONNECT_SECONDS: Final = 10.0
_ANTHROPIC_VERSION: Final = "2023-06-01"
_KEY_HEADERS: Final[Mapping[WireName, str]] = {
    "messages": "x-api-key",
    "gemini": "x-goog-api-key",
}
"""The header that takes the key, where that is not Authorization."""
_VERSION_SEGMENT: Final = re.compile(r"v\d+[a-z0-9]*")
_PASSED_ON: Final = re.compile(
    r"content-type|retry-after|retry-after-ms|x-should-retry|(x-)?request-id|openai-processing-ms"
    r"|(x|anthropic)-ratelimit-[a-z0-9-]+"
)
"""Headers that a client may see. Others name the operator's account, or belong to one hop."""
FORWARDED: Final = frozenset({"anthropic-version", "anthropic-beta", "openai-beta"})
"""Headers that a server may see; never a client's key."""


class Upstream:
    """A model server behind HTTP: OpenAI-compatible, Anthropic's, or Google's."""

    def __init__(self, server: ModelServer, key: str | None, limit: Limit) -> None:
        self._server = server
        self._key = key
        self._limit = limit
        self._hidden = _Hidden(filter(None, (key, *server.secrets)))
        self._client: httpx2.AsyncClient | None = None

    @asynccontextmanager
    async def answer(self, request: Request, trace: Trace) -> AsyncIterator[Answer]:
        """Pass the request on; try again as long as nothing of an answer was given out."""
        async with self._limit.hold(trace):
            tried = await self._try_until_answered(request, trace)
            try:
                yield self._clean(tried)
            finally:
                with suppress(Exception):
                    await tried.response.aclose()

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.aclose()

    async def _try_until_answered(self, request: Request, trace: Trace) -> _Tried:
        attempt = 0
        while True:
            tried = await self._try(request)
            pause = self._pause(attempt, tried)
            if pause is not None:
                trace.retries.append(_reason(tried))
                attempt += 1
                await asyncio.sleep(pause)
            elif isinstance(tried, _Tried):
                return tried
            else:
                raise self._fault(tried)

    def _pause(self, attempt: int, tried: _Tried | Exception) -> float | None:
        """Seconds until a further try; None when there shall be none."""
        if attempt >= self._server.retries:
            return None
        if isinstance(tried, Exception):
            return None if _is_slow(tried) else faults.pause_before(attempt)
        headers = tried.response.headers
        again = faults.worth_retry(tried.response.status_code, headers, tried.body)
        return faults.pause_before(attempt, headers) if again else None

    async def _try(self, request: Request) -> _Tried | Exception:
        """One request; a stream counts as answered with its first event, or with its end."""
        import httpx2

        client = self._open_client()
        try:
            response = await client.send(self._outgoing(client, request), stream=True)
        except httpx2.HTTPError as error:
            return error
        try:
            if response.status_code >= 400 or not _is_stream(response):
                return _Tried(response, await response.aread(), None)
            events = _events(response)
            first = await anext(events, b"")
        except httpx2.HTTPError as error:
            await response.aclose()
            return error
        except BaseException:
            await response.aclose()
            raise
        return _Tried(response, b"", _with_first(first, events))

    def _open_client(self) -> httpx2.AsyncClient:
        """The connections to the server, made in the gateway's thread at the first call."""
        if self._client is None:
            import httpx2

            self._client = httpx2.AsyncClient(
                timeout=httpx2.Timeout(self._server.timeout, connect=_CONNECT_SECONDS, pool=None),
                # Without TLS the certificates of the world need not be read (80 ms).
                verify=(self._server.base_url or "").startswith("https:"),
                limits=httpx2.Limits(max_connections=None, max_keepalive_connections=20),
                # A proxy of the operator's environment has no way back to this machine.
                mounts={"all://127.0.0.1": None, "all://localhost": None, "all://[::1]": None},
            )
        return self._client

    def _outgoing(self, client: httpx2.AsyncClient, request: Request) -> httpx2.Request:
        server, wire = self._server, request.wire
        body = merge(request.outgoing, {"model": server.model} if server.model else {})
        place = wire.place(server.base_url or "", merge(body, server.extra_body))
        headers = {name: value for name, value in request.headers.items() if name in FORWARDED}
        if wire.name == "messages":
            headers.setdefault("anthropic-version", _ANTHROPIC_VERSION)
        headers |= {
            "accept": "text/event-stream" if request.streams else "application/json",
            "accept-encoding": "identity",
            "content-type": "application/json",
            "user-agent": "pytest-harbor",
            **self._credentials(wire.name),
            **{name.lower(): value for name, value in server.headers.items()},
        }
        return client.build_request(
            "POST",
            address(place.base_url, place.path, wire.version) + _query(request.query),
            content=json.dumps(place.body, ensure_ascii=False).encode("utf-8", "surrogatepass"),
            headers=headers,
        )

    def _credentials(self, wire: WireName) -> dict[str, str]:
        if self._key is None:
            return {}
        auth = self._server.auth
        header = _KEY_HEADERS.get(wire, "bearer") if auth == "auto" else auth
        if header == "bearer":
            return {"authorization": f"Bearer {self._key}"}
        return {header: self._key}

    def _clean(self, tried: _Tried) -> Answer:
        hide = self._hidden.bytes
        headers = {
            name: hide(value.encode()).decode()
            for name, value in tried.response.headers.items()
            if _PASSED_ON.fullmatch(name.lower())
        }
        events = None if tried.events is None else (hide(event) async for event in tried.events)
        return Answer(tried.response.status_code, headers, hide(tried.body), events)

    def _fault(self, error: Exception) -> ProviderError:
        """What a client is told; the server's address is the operator's matter and stays out."""
        name = self._server.name
        if _is_slow(error):
            waited = f"model server {name!r} sent nothing for {self._server.timeout:g} s"
            return ProviderError(504, "timeout", waited)
        why = f"{type(error).__name__}"
        return ProviderError(502, "unreachable", f"model server {name!r} cannot be reached: {why}")


class _Tried(NamedTuple):
    """One try that got an answer: its whole body, or its events."""

    response: httpx2.Response
    body: bytes
    events: AsyncIterator[bytes] | None


class _Hidden:
    """Replaces the operator's secrets in what goes to a client, and nothing else."""

    def __init__(self, secrets: Iterable[str]) -> None:
        spelled = {form for each in secrets for form in (each, json.dumps(each)[1:-1])}
        self._values = tuple(each.encode() for each in sorted(spelled, key=len, reverse=True))

    def bytes(self, body: bytes) -> bytes:
        """The bytes without secrets."""
        for value in self._values:
            if value in body:
                body = body.replace(value, MASK.encode())
        return body


def address(base_url: str, path: str, version: str = "v1") -> str:
    """Where a wire's requests go; a version is added to a base whose path names none."""
    parts = urlsplit(base_url.rstrip("/"))
    segments = parts.path.split("/")
    added = "" if any(_VERSION_SEGMENT.fullmatch(each) for each in segments) else f"/{version}"
    return urlunsplit(parts._replace(path=f"{parts.path}{added}/{path}"))


def merge(body: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Lay tables over each other, key by key; a null takes the key away."""
    merged = dict(body)
    for key, value in over.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, Mapping) and isinstance(merged.get(key), Mapping):
            merged[key] = merge(merged[key], value)
        else:
            merged[key] = value
    return merged


def _query(query: str) -> str:
    return "?beta=true" if "beta=true" in query.split("&") else ""


def _is_stream(response: httpx2.Response) -> bool:
    return response.headers.get("content-type", "").startswith("text/event-stream")


def _is_slow(error: Exception) -> bool:
    """A server that took the request and is still at it: asking again would be billed again."""
    import httpx2

    return isinstance(error, httpx2.ReadTimeout)


def _reason(tried: _Tried | Exception) -> str:
    if isinstance(tried, _Tried):
        return str(tried.response.status_code)
    return type(tried).__name__


async def _events(response: httpx2.Response) -> AsyncIterator[bytes]:
    splitter = Splitter()
    async for chunk in response.aiter_bytes():
        for event in splitter.feed(chunk):
            yield event
    if rest := splitter.rest():
        yield rest


async def _with_first(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The whole stream again; a connection that is lost in it can no longer be tried anew."""
    import httpx2

    if first:
        yield first
    try:
        async for event in rest:
            yield event
    except httpx2.HTTPError as error:
        raise StreamError(f"the stream broke off ({type(error).__name__})") from error
