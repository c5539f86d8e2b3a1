"""Google's Gemini API: requests, answers and their streams.

This wire names the model, and whether the answer shall be a stream, in the request's path. Both
are kept in the body under the names that the other wires use, so that nobody else need know.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from pytest_harbor.gateway import sse
from pytest_harbor.gateway.wires.base import (
    Conversation,
    Heard,
    Place,
    Reply,
    Said,
    TalksUsage,
    Tool,
    Usage,
    WireName,
    count,
    message_of,
    pieces,
    table_of,
    tables_in,
    text_of,
)

_PATH: Final = re.compile(r"models/([^:]+):(generateContent|streamGenerateContent)")
_METHODS: Final = {False: "generateContent", True: "streamGenerateContent"}
_STATUSES: Final[Mapping[int, str]] = {
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
_ALSO_OPENAI: Final = "/openai"
"""Below Google's own address its OpenAI-compatible one is found."""


class Gemini(TalksUsage):
    """``POST /v1beta/models/<model>:streamGenerateContent?alt=sse``, or ``:generateContent``."""

    name: WireName = "gemini"
    path = "models/<model>:generateContent"
    version = "v1beta"

    def asked(self, path: str) -> dict[str, Any] | None:
        """What a path says of a request, in the words of its body; None for another wire's."""
        found = _PATH.fullmatch(path)
        return {"model": found[1], "stream": found[2] == _METHODS[True]} if found else None

    def place(self, base_url: str, body: Mapping[str, Any]) -> Place:
        """Where a request goes at a server, and what is then left of its body."""
        streams = bool(body.get("stream"))
        path = f"models/{body.get('model', '')}:{_METHODS[streams]}{'?alt=sse' if streams else ''}"
        left = {name: value for name, value in body.items() if name not in ("model", "stream")}
        return Place(base_url.rstrip("/").removesuffix(_ALSO_OPENAI), path, left)

    def error(self, status: int, kind: str, message: str) -> dict[str, Any]:
        """The body of an error that the gateway itself gives."""
        named = _STATUSES.get(status, "INTERNAL" if status >= 500 else "INVALID_ARGUMENT")
        return {"error": {"code": status, "message": f"{message} ({kind})", "status": named}}

    def heard(self, body: Mapping[str, Any]) -> Heard:
        """Read an answer that came whole."""
        listener = GeminiListener()
        listener.take(body)
        heard = listener.heard()
        return Heard(heard.model, heard.usage, finished=True, error=heard.error)

    def listener(self) -> GeminiListener:
        """Something to follow a streamed answer with."""
        return GeminiListener()

    def conversation(self, body: Mapping[str, Any]) -> Conversation:
        """Read a request."""
        thinking = table_of(table_of(body.get("generationConfig")).get("thinkingConfig"))
        return Conversation(
            model=str(body.get("model", "")),
            system=_text(table_of(body.get("systemInstruction"))),
            said=tuple(_said(each) for each in tables_in(body.get("contents"))),
            tools=self.tools(body),
            thinks=bool(thinking.get("includeThoughts")),
        )

    def tools(self, body: Mapping[str, Any]) -> tuple[Tool, ...]:
        """The tools that a request offers."""
        return tuple(
            Tool(str(each.get("name", "")), schema=_schema(each))
            for tools in tables_in(body.get("tools"))
            for each in tables_in(tools.get("functionDeclarations"))
        )

    def whole(self, reply: Reply) -> dict[str, Any]:
        """Write an answer in one piece."""
        thought = [{"text": reply.thinking, "thought": True}] if reply.thinking else []
        text = [{"text": reply.text}] if reply.text or not reply.calls else []
        return _chunk(reply, [*thought, *text, *_calls(reply)], last=True)

    def events(self, reply: Reply, _body: Mapping[str, Any]) -> Iterator[bytes]:
        """Write an answer as a stream; it has no last word, its last part says why it ends."""
        for piece in pieces(reply.thinking):
            yield sse.encode(_chunk(reply, [{"text": piece, "thought": True}]))
        for piece in pieces(reply.text):
            yield sse.encode(_chunk(reply, [{"text": piece}]))
        yield sse.encode(_chunk(reply, _calls(reply) or [{"text": ""}], last=True))


class GeminiListener:
    """Follows a streamed answer, of which each part has the form of a whole one."""

    def __init__(self) -> None:
        self._model: str | None = None
        self._usage: Usage | None = None
        self._finished = False
        self._error: str | None = None

    def hear(self, event: bytes) -> None:
        """Take note of one event."""
        self.take(sse.json_of(event) or {})

    def take(self, chunk: Mapping[str, Any]) -> None:
        """Take note of a part; counts grow from one to the next."""
        if chunk.get("error"):
            self._error = message_of(chunk["error"])
        if chunk.get("modelVersion"):
            self._model = str(chunk["modelVersion"])
        self._usage = _usage(chunk.get("usageMetadata")) or self._usage
        candidates = tables_in(chunk.get("candidates"))
        if any(candidate.get("finishReason") for candidate in candidates):
            self._finished = True
        if blocked := table_of(chunk.get("promptFeedback")).get("blockReason"):
            self._finished, self._error = True, f"the prompt was blocked: {blocked}"

    def heard(self) -> Heard:
        """What is known by now."""
        return Heard(self._model, self._usage, self._finished, self._error)


def _usage(usage: Any) -> Usage | None:
    """Token counts; this wire's ``candidatesTokenCount`` leaves out the thoughts."""
    if not isinstance(usage, Mapping):
        return None
    thoughts = count(usage, "thoughtsTokenCount")
    return Usage(
        input=count(usage, "promptTokenCount") + count(usage, "toolUsePromptTokenCount"),
        output=count(usage, "candidatesTokenCount") + thoughts,
        cached=count(usage, "cachedContentTokenCount"),
        reasoning=thoughts,
    )


def _said(content: Mapping[str, Any]) -> Said:
    """A content; what comes with a function's response is no user speaking."""
    if content.get("role") == "model":
        return Said("model", _text(content))
    responses = [
        response
        for part in tables_in(content.get("parts"))
        if (response := table_of(part.get("functionResponse")))
    ]
    if responses:
        return Said("tool", "\n".join(map(_response, responses)))
    return Said("user", _text(content))


def _text(content: Mapping[str, Any]) -> str:
    parts = tables_in(content.get("parts"))
    return "\n".join(text_of(part.get("text")) for part in parts if not part.get("thought"))


def _response(function: Mapping[str, Any]) -> str:
    response = function.get("response")
    return text_of(response) or json.dumps(response, ensure_ascii=False)


def _schema(function: Mapping[str, Any]) -> Mapping[str, Any]:
    return table_of(function.get("parametersJsonSchema") or function.get("parameters"))


def _chunk(reply: Reply, parts: list[dict[str, Any]], *, last: bool = False) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
    head = {"modelVersion": reply.model, "responseId": reply.id}
    if not last:
        return {"candidates": [candidate], **head}
    candidate["finishReason"] = "STOP"
    return {"candidates": [candidate], "usageMetadata": _counts(reply.usage), **head}


def _counts(usage: Usage) -> dict[str, Any]:
    return {
        "promptTokenCount": usage.input,
        "candidatesTokenCount": usage.output - usage.reasoning,
        "cachedContentTokenCount": usage.cached,
        "thoughtsTokenCount": usage.reasoning,
        "totalTokenCount": usage.input + usage.output,
    }


def _calls(reply: Reply) -> list[dict[str, Any]]:
    """Function calls; the first carries the signature of the thoughts, as newer models do it."""
    calls = [
        {"functionCall": {"id": call.id, "name": call.tool.name, "args": dict(call.arguments)}}
        for call in reply.calls
    ]
    signature = base64.b64encode(f"signed-{reply.id}".encode()).decode()
    return [{**call, "thoughtSignature": signature} for call in calls[:1]] + calls[1:]
