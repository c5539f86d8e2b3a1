"""Anthropic messages: requests, answers and their streams."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from pytest_harbor.gateway import sse
from pytest_harbor.gateway.wires.base import (
    Conversation,
    FixedPath,
    Heard,
    Reply,
    Said,
    TalksUsage,
    Tool,
    Usage,
    WireName,
    count,
    is_reminder,
    message_of,
    named,
    pieces,
    table_of,
    tables_in,
    text_of,
)

_FAMILIES: Final[Mapping[int, str]] = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


class Messages(FixedPath, TalksUsage):
    """``POST /v1/messages``."""

    name: WireName = "messages"
    path = "messages"

    def error(self, status: int, kind: str, message: str) -> dict[str, Any]:
        """The body of an error that the gateway itself gives; its type follows the status."""
        family = _FAMILIES.get(status, "api_error" if status >= 500 else "invalid_request_error")
        return {"type": "error", "error": {"type": family, "message": f"{message} ({kind})"}}

    def heard(self, body: Mapping[str, Any]) -> Heard:
        """Read an answer that came whole."""
        model = body.get("model")
        return Heard(
            model=model if isinstance(model, str) else None,
            usage=_usage(body.get("usage")),
            finished=True,
            error=message_of(body["error"]) if body.get("error") else None,
        )

    def listener(self) -> MessagesListener:
        """Something to follow a streamed answer with."""
        return MessagesListener()

    def conversation(self, body: Mapping[str, Any]) -> Conversation:
        """Read a request."""
        messages = tables_in(body.get("messages"))
        # a CLI also slips what it has to say about itself in among the messages
        system = (text_of(each.get("content")) for each in messages if _is_system(each))
        spoken = (_said(each) for each in messages if not _is_system(each))
        return Conversation(
            model=str(body.get("model", "")),
            system="\n".join([text_of(body.get("system")), *system]).strip("\n"),
            said=tuple(said for said in spoken if not is_reminder(said)),
            tools=self.tools(body),
            thinks=table_of(body.get("thinking")).get("type") in ("enabled", "adaptive"),
        )

    def tools(self, body: Mapping[str, Any]) -> tuple[Tool, ...]:
        """The tools that a request offers."""
        return tuple(
            Tool(str(each.get("name", "")), schema=table_of(each.get("input_schema")))
            for each in tables_in(body.get("tools"))
        )

    def whole(self, reply: Reply) -> dict[str, Any]:
        """Write an answer in one piece."""
        message = _message(reply)
        return {
            **message,
            "content": _blocks(reply),
            "stop_reason": _stop(reply),
            "usage": _counts(reply.usage, reply.usage.output),
        }

    def events(self, reply: Reply, _body: Mapping[str, Any]) -> Iterator[bytes]:
        """Write an answer as a stream."""
        yield named({"type": "message_start", "message": _message(reply)})
        for index, block in enumerate(_blocks(reply)):
            start, deltas = _opened(block)
            place = {"index": index}
            yield named({"type": "content_block_start", **place, "content_block": start})
            for delta in deltas:
                yield named({"type": "content_block_delta", **place, "delta": delta})
            yield named({"type": "content_block_stop", **place})
        stop = {"stop_reason": _stop(reply), "stop_sequence": None}
        usage = {"output_tokens": reply.usage.output}
        yield named({"type": "message_delta", "delta": stop, "usage": usage})
        yield named({"type": "message_stop"})


class MessagesListener:
    """Follows a streamed message: counts come at its start, and grow towards its end."""

    def __init__(self) -> None:
        self._model: str | None = None
        self._counts: dict[str, Any] = {}
        self._finished = False
        self._error: str | None = None

    def hear(self, event: bytes) -> None:
        """Take note of one event."""
        data = sse.json_of(event) or {}
        kind = data.get("type")
        if kind == "error":
            self._error = message_of(data)
        elif kind == "message_start":
            message = table_of(data.get("message"))
            self._model = str(message["model"]) if message.get("model") else None
            self._count(message.get("usage"))
        elif kind == "message_delta":
            self._count(data.get("usage"))
        elif kind == "message_stop":
            self._finished = True

    def _count(self, usage: Any) -> None:
        new = table_of(usage)
        self._counts |= {name: value for name, value in new.items() if value is not None}

    def heard(self) -> Heard:
        """What is known by now."""
        usage = _usage(self._counts) if self._counts else None
        return Heard(self._model, usage, self._finished, self._error)


def _usage(usage: Any) -> Usage | None:
    """Token counts; this wire's ``input_tokens`` leaves out what the cache had or took."""
    if not isinstance(usage, Mapping):
        return None
    cached = count(usage, "cache_read_input_tokens")
    written = count(usage, "cache_creation_input_tokens")
    details = usage.get("output_tokens_details")
    return Usage(
        input=count(usage, "input_tokens") + cached + written,
        output=count(usage, "output_tokens"),
        cached=cached,
        written=written,
        reasoning=count(details, "thinking_tokens", "reasoning_tokens"),
    )


def _is_system(message: Mapping[str, Any]) -> bool:
    return message.get("role") == "system"


def _said(message: Mapping[str, Any]) -> Said:
    """A message; what comes with tool results (reminders of a CLI) is no user speaking."""
    content = message.get("content")
    if message.get("role") == "assistant":
        return Said("model", text_of(content))
    results = [each for each in tables_in(content) if each.get("type") == "tool_result"]
    if results:
        return Said("tool", "\n".join(text_of(each.get("content")) for each in results))
    return Said("user", text_of(content))


def _message(reply: Reply) -> dict[str, Any]:
    return {
        "id": f"msg_{reply.id}",
        "type": "message",
        "role": "assistant",
        "model": reply.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": _counts(reply.usage, 1),
    }


def _counts(usage: Usage, output: int) -> dict[str, Any]:
    return {
        "input_tokens": usage.input - usage.cached - usage.written,
        "cache_read_input_tokens": usage.cached,
        "cache_creation_input_tokens": usage.written,
        "output_tokens": output,
    }


def _stop(reply: Reply) -> str:
    return "tool_use" if reply.calls else "end_turn"


def _blocks(reply: Reply) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    if reply.thinking:
        signature = f"signed-{reply.id}"
        blocks.append({"type": "thinking", "thinking": reply.thinking, "signature": signature})
    if reply.text or not reply.calls:
        blocks.append({"type": "text", "text": reply.text})
    for call in reply.calls:
        named_ = {"id": call.id, "name": call.tool.name, "input": dict(call.arguments)}
        blocks.append({"type": "tool_use", **named_})
    return blocks


def _opened(block: Mapping[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A block as it starts, empty, and what then fills it."""
    if block["type"] == "tool_use":
        arguments = json.dumps(block["input"])
        return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": arguments}]
    if block["type"] == "thinking":
        thoughts = [
            {"type": "thinking_delta", "thinking": part} for part in pieces(block["thinking"])
        ]
        signature = {"type": "signature_delta", "signature": block["signature"]}
        return {**block, "thinking": "", "signature": ""}, [*thoughts, signature]
    return {**block, "text": ""}, [
        {"type": "text_delta", "text": part} for part in pieces(block["text"])
    ]
