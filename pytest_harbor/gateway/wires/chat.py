"""OpenAI chat completions: requests, answers and their streams."""

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
    Tool,
    Usage,
    WireName,
    count,
    is_reminder,
    message_of,
    pieces,
    table_of,
    tables_in,
    text_of,
)

_ROLES: Final[Mapping[str, Role]] = {
    "user": "user",
    "assistant": "model",
    "tool": "tool",
    "function": "tool",
}


class Chat(FixedPath):
    """``POST /v1/chat/completions``."""

    name: WireName = "chat"
    path = "chat/completions"

    def error(self, status: int, kind: str, message: str) -> dict[str, Any]:
        """The body of an error that the gateway itself gives."""
        return openai_error(status, kind, message)

    def heard(self, body: Mapping[str, Any]) -> Heard:
        """Read an answer that came whole."""
        choices = tables_in(body.get("choices"))
        tokens = [_tokens(choice, body) for choice in choices]
        return Heard(
            model=_text(body.get("model")),
            usage=_usage(body),
            finished=True,
            error=message_of(body["error"]) if body.get("error") else None,
            tokens=tuple(each for each in tokens if each),
        )

    def listener(self) -> ChatListener:
        """Something to follow a streamed answer with."""
        return ChatListener()

    def ask_usage(self, body: Mapping[str, Any]) -> dict[str, Any] | None:
        """The request with token counts asked for, or None where they come anyway."""
        options = table_of(body.get("stream_options"))
        if not body.get("stream") or options.get("include_usage"):
            return None
        return {**body, "stream_options": {**options, "include_usage": True}}

    def hide_usage(self, event: bytes) -> bytes:
        """The event without the token counts that only the gateway asked for; may be empty."""
        chunk = sse.json_of(event)
        if chunk is None or "usage" not in chunk:
            return event
        if chunk.pop("usage") is not None and not chunk.get("choices"):
            return b""
        return sse.encode(chunk)

    def conversation(self, body: Mapping[str, Any]) -> Conversation:
        """Read a request."""
        messages = tables_in(body.get("messages"))
        return Conversation(
            model=str(body.get("model", "")),
            system="\n".join(
                text_of(each.get("content"))
                for each in messages
                if each.get("role") in ("system", "developer")
            ),
            said=tuple(said for said in map(_said, messages) if said and not is_reminder(said)),
            tools=self.tools(body),
        )

    def tools(self, body: Mapping[str, Any]) -> tuple[Tool, ...]:
        """The tools that a request offers."""
        return tuple(
            Tool(str(function.get("name", "")), schema=table_of(function.get("parameters")))
            for each in tables_in(body.get("tools"))
            if (function := table_of(each.get("function")))
        )

    def whole(self, reply: Reply) -> dict[str, Any]:
        """Write an answer in one piece."""
        message: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
        if reply.thinking:
            message["reasoning_content"] = reply.thinking
        if reply.calls:
            message["tool_calls"] = _calls(reply)
        choice = {"index": 0, "message": message, "finish_reason": _finish(reply), "logprobs": None}
        head = _head(reply, "chat.completion")
        return {**head, "choices": [choice], "usage": _counts(reply.usage)}

    def events(self, reply: Reply, body: Mapping[str, Any]) -> Iterator[bytes]:
        """Write an answer as a stream; ``body`` is the request that it answers."""
        head = _head(reply, "chat.completion.chunk")

        def chunk(delta: Mapping[str, Any], finish: str | None = None) -> bytes:
            choice = {"index": 0, "delta": delta, "finish_reason": finish}
            return sse.encode({**head, "choices": [choice]})

        yield chunk({"role": "assistant", "content": ""})
        for piece in pieces(reply.thinking):
            yield chunk({"reasoning_content": piece})
        for piece in pieces(reply.text):
            yield chunk({"content": piece})
        for index, call in enumerate(_calls(reply)):
            yield chunk({"tool_calls": [{"index": index, **call}]})
        yield chunk({}, _finish(reply))
        if table_of(body.get("stream_options")).get("include_usage"):
            yield sse.encode({**head, "choices": [], "usage": _counts(reply.usage)})
        yield sse.encode(sse.DONE)


def _said(message: Mapping[str, Any]) -> Said | None:
    role = _ROLES.get(str(message.get("role")))
    return Said(role, text_of(message.get("content"))) if role else None


class ChatListener:
    """Follows a streamed chat completion."""

    def __init__(self) -> None:
        self._model: str | None = None
        self._usage: Usage | None = None
        self._finished = False
        self._error: str | None = None
        self._tokens: dict[int, dict[str, Any]] = {}

    def hear(self, event: bytes) -> None:
        """Take note of one event."""
        chunk = sse.json_of(event)
        if chunk is None:
            self._finished = self._finished or sse.data_of(event) == sse.DONE
            return
        if chunk.get("error"):
            self._error = message_of(chunk["error"])
        self._model = _text(chunk.get("model")) or self._model
        self._usage = _usage(chunk) or self._usage
        for choice in tables_in(chunk.get("choices")):
            self._finished = self._finished or choice.get("finish_reason") is not None
            self._keep(choice, chunk)

    def _keep(self, choice: Mapping[str, Any], chunk: Mapping[str, Any]) -> None:
        kept = self._tokens.setdefault(count(choice, "index"), {})
        for name, values in _tokens(choice, chunk).items():
            if name == "prompt_token_ids":
                kept[name] = values
            else:
                kept.setdefault(name, []).extend(values)

    def heard(self) -> Heard:
        """What is known by now."""
        return Heard(
            model=self._model,
            usage=self._usage,
            finished=self._finished,
            error=self._error,
            tokens=tuple(kept for _, kept in sorted(self._tokens.items()) if kept),
        )


def openai_error(status: int, kind: str, message: str) -> dict[str, Any]:
    """The error body that both OpenAI wires use."""
    family = "server_error" if status >= 500 else "invalid_request_error"
    return {"error": {"message": message, "type": family, "param": None, "code": kind}}


def _usage(body: Mapping[str, Any]) -> Usage | None:
    """Token counts, wherever the servers of this wire put them."""
    usage = body.get("usage")
    if not isinstance(usage, Mapping):
        choices = tables_in(body.get("choices"))
        usage = choices[0].get("usage") if choices else None
    if not isinstance(usage, Mapping):
        return None
    prompt = table_of(usage.get("prompt_tokens_details"))
    return Usage(
        input=count(usage, "prompt_tokens"),
        output=count(usage, "completion_tokens"),
        cached=count({**usage, **prompt}, "cached_tokens", "prompt_cache_hit_tokens"),
        written=count(prompt, "cache_write_tokens", "cache_creation_tokens"),
        reasoning=count(usage.get("completion_tokens_details"), "reasoning_tokens"),
    )


def _tokens(choice: Mapping[str, Any], body: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Token ids (as vLLM returns them) and log probabilities of one choice."""
    found = {
        "prompt_token_ids": choice.get("prompt_token_ids") or body.get("prompt_token_ids"),
        "token_ids": choice.get("token_ids"),
        "logprobs": table_of(choice.get("logprobs")).get("content"),
    }
    return {name: value for name, value in found.items() if isinstance(value, list) and value}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _head(reply: Reply, kind: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{reply.id}",
        "object": kind,
        "created": reply.created,
        "model": reply.model,
    }


def _calls(reply: Reply) -> list[dict[str, Any]]:
    return [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.tool.name, "arguments": json.dumps(call.arguments)},
        }
        for call in reply.calls
    ]


def _finish(reply: Reply) -> str:
    return "tool_calls" if reply.calls else "stop"


def _counts(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cached},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    }
