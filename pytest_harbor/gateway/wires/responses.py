"""OpenAI Responses: requests, answers and their streams."""

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
    Role,
    Said,
    TalksUsage,
    Tool,
    ToolCall,
    Usage,
    WireName,
    count,
    message_of,
    named,
    pieces,
    table_of,
    tables_in,
    text_of,
)
from pytest_harbor.gateway.wires.chat import openai_error

_SEARCH: Final = "tool_search"
_LAST: Final = {"response.completed", "response.incomplete", "response.failed"}
_MESSAGES: Final[Mapping[str, Role]] = {"user": "user", "assistant": "model"}


class Responses(FixedPath, TalksUsage):
    """``POST /v1/responses``."""

    name: WireName = "responses"
    path = "responses"

    def error(self, status: int, kind: str, message: str) -> dict[str, Any]:
        """The body of an error that the gateway itself gives."""
        return openai_error(status, kind, message)

    def heard(self, body: Mapping[str, Any]) -> Heard:
        """Read an answer that came whole."""
        model = body.get("model")
        return Heard(
            model=model if isinstance(model, str) else None,
            usage=_usage(body.get("usage")),
            finished=True,
            error=message_of(body["error"]) if body.get("error") else None,
            tokens=tuple(_tokens(body)),
        )

    def listener(self) -> ResponsesListener:
        """Something to follow a streamed answer with."""
        return ResponsesListener(self)

    def conversation(self, body: Mapping[str, Any]) -> Conversation:
        """Read a request."""
        given = body.get("input")
        items = tables_in(given)
        said = [Said("user", given)] if isinstance(given, str) else []
        system = (text_of(item.get("content")) for item in items if _is_system(item))
        return Conversation(
            model=str(body.get("model", "")),
            system="\n".join([text_of(body.get("instructions")), *system]).strip("\n"),
            said=(*said, *filter(None, map(_said, items))),
            tools=self.tools(body),
        )

    def tools(self, body: Mapping[str, Any]) -> tuple[Tool, ...]:
        """The tools that a request offers, those included that the conversation brought."""
        brought = _tools_in(tables_in(body.get("input")))
        return tuple(_tools([*tables_in(body.get("tools")), *brought]))

    def whole(self, reply: Reply) -> dict[str, Any]:
        """Write an answer in one piece."""
        return _response(reply, "completed", _items(reply))

    def events(self, reply: Reply, _body: Mapping[str, Any]) -> Iterator[bytes]:
        """Write an answer as a stream."""
        for number, data in enumerate(_stream(reply, _items(reply))):
            yield named({**data, "sequence_number": number})


class ResponsesListener:
    """Follows a streamed response: its last event holds all of it."""

    def __init__(self, wire: Responses) -> None:
        self._wire = wire
        self._heard = Heard()

    def hear(self, event: bytes) -> None:
        """Take note of one event."""
        data = sse.json_of(event) or {}
        kind = data.get("type")
        response = table_of(data.get("response"))
        if kind == "error" or (kind is None and data.get("error")):
            self._heard = Heard(self._heard.model, error=message_of(data))
        elif kind in _LAST:
            self._heard = self._wire.heard(response)
        elif isinstance(response.get("model"), str):
            self._heard = Heard(response["model"])

    def heard(self) -> Heard:
        """What is known by now."""
        return self._heard


def _usage(usage: Any) -> Usage | None:
    if not isinstance(usage, Mapping):
        return None
    given = usage.get("input_tokens_details")
    return Usage(
        input=count(usage, "input_tokens"),
        output=count(usage, "output_tokens"),
        cached=count(given, "cached_tokens"),
        written=count(given, "cache_write_tokens", "cache_creation_tokens"),
        reasoning=count(usage.get("output_tokens_details"), "reasoning_tokens"),
    )


def _tokens(body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Log probabilities of each text, and token ids where a server adds them."""
    names = ("prompt_token_ids", "token_ids", "logprobs")
    parts = [
        part
        for item in tables_in(body.get("output"))
        for part in (item, *tables_in(item.get("content")))
    ]
    for part in (body, *parts):
        found = {name: part[name] for name in names if isinstance(part.get(name), list)}
        if any(found.values()):
            yield found


def _is_system(item: Mapping[str, Any]) -> bool:
    return item.get("role") in ("system", "developer")


def _said(item: Mapping[str, Any]) -> Said | None:
    kind = str(item.get("type", "message"))
    if kind == "message":
        role = _MESSAGES.get(str(item.get("role")))
        return Said(role, text_of(item.get("content"))) if role else None
    if kind.endswith("_output"):
        return Said("tool", text_of(item.get("output")))
    if kind.endswith("_call") or kind == "reasoning":
        return Said("model", "")
    return None


def _tools_in(items: list[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Tools that are offered in the conversation itself: by a search, or instead of ``tools``."""
    for item in items:
        if item.get("type") in ("additional_tools", f"{_SEARCH}_output"):
            yield from tables_in(item.get("tools"))


def _tools(offered: list[Mapping[str, Any]], namespace: str | None = None) -> Iterator[Tool]:
    for each in offered:
        name, kind = str(each.get("name") or ""), each.get("type")
        if kind == "namespace":
            yield from _tools(tables_in(each.get("tools")), name)
        else:
            yield Tool(
                name or str(kind),
                namespace,
                table_of(each.get("parameters")),
                custom=kind == "custom",
                searches=kind == _SEARCH,
            )


def _items(reply: Reply) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if reply.thinking:
        summary = [{"type": "summary_text", "text": reply.thinking}]
        items.append({"type": "reasoning", "id": f"rs_{reply.id}", "summary": summary})
    if reply.text or not reply.calls:
        items.append(_message(reply, "completed", reply.text))
    return [*items, *(_call(call) for call in reply.calls)]


def _message(reply: Reply, status: str, text: str | None) -> dict[str, Any]:
    content = [] if text is None else [_part(text)]
    return {
        "type": "message",
        "id": f"msg_{reply.id}",
        "role": "assistant",
        "status": status,
        "content": content,
    }


def _part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": []}


def _call(call: ToolCall) -> dict[str, Any]:
    item: dict[str, Any] = {"call_id": call.id, "status": "completed"}
    if call.tool.searches:
        item |= {"type": f"{_SEARCH}_call", "id": f"tsc_{call.id}", "execution": "client"}
        return {**item, "arguments": dict(call.arguments)}
    item["name"] = call.tool.name
    if call.tool.custom:
        text = str(call.arguments.get("input", ""))
        item |= {"type": "custom_tool_call", "id": f"ctc_{call.id}", "input": text}
    else:
        arguments = json.dumps(call.arguments)
        item |= {"type": "function_call", "id": f"fc_{call.id}", "arguments": arguments}
    if call.tool.namespace:
        item["namespace"] = call.tool.namespace
    return item


def _response(reply: Reply, status: str, items: list[dict[str, Any]]) -> dict[str, Any]:
    usage = reply.usage
    counts = {
        "input_tokens": usage.input,
        "input_tokens_details": {"cached_tokens": usage.cached},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.input + usage.output,
    }
    return {
        "id": f"resp_{reply.id}",
        "object": "response",
        "created_at": reply.created,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "model": reply.model,
        "output": items,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": counts if status == "completed" else None,
    }


def _stream(reply: Reply, items: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    yield {"type": "response.created", "response": _response(reply, "in_progress", [])}
    for index, item in enumerate(items):
        place = {"item_id": item["id"], "output_index": index}
        if item["type"] == "message":
            started: dict[str, Any] = _message(reply, "in_progress", None)
            parts = _text_events(place, reply.text)
        elif item["type"] == "function_call":
            started = {**item, "status": "in_progress", "arguments": ""}
            parts = _argument_events(place, item["arguments"])
        else:
            started, parts = item, iter(())
        yield {"type": "response.output_item.added", "output_index": index, "item": started}
        yield from parts
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": "response.completed", "response": _response(reply, "completed", items)}


def _text_events(place: Mapping[str, Any], text: str) -> Iterator[dict[str, Any]]:
    place = {**place, "content_index": 0}
    yield {"type": "response.content_part.added", **place, "part": _part("")}
    for piece in pieces(text):
        yield {"type": "response.output_text.delta", **place, "delta": piece}
    yield {"type": "response.output_text.done", **place, "text": text}
    yield {"type": "response.content_part.done", **place, "part": _part(text)}


def _argument_events(place: Mapping[str, Any], arguments: str) -> Iterator[dict[str, Any]]:
    kind = "response.function_call_arguments"
    yield {"type": f"{kind}.delta", **place, "delta": arguments}
    yield {"type": f"{kind}.done", **place, "arguments": arguments}
