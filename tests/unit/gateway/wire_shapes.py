"""Answers of real model servers in small: each wire, whole and streamed."""

from __future__ import annotations

import json
from typing import Any

CHAT_USAGE = {
    "prompt_tokens": 1000,
    "completion_tokens": 100,
    "total_tokens": 1100,
    "prompt_tokens_details": {"cached_tokens": 400},
    "completion_tokens_details": {"reasoning_tokens": 30},
}
RESPONSES_USAGE = {
    "input_tokens": 1000,
    "input_tokens_details": {"cached_tokens": 400},
    "output_tokens": 100,
    "output_tokens_details": {"reasoning_tokens": 30},
    "total_tokens": 1100,
}
COST = (600 * 2.0 + 400 * 0.5 + 100 * 10.0) / 1e6
"""Of the usage above at the prices of the fixture ``terms``."""

CHAT = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "model": "real-1",
    "choices": [
        {"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}
    ],
    "usage": CHAT_USAGE,
}
RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "model": "real-1",
    "status": "completed",
    "output": [{"type": "message", "content": [{"type": "output_text", "text": "Hi"}]}],
    "usage": RESPONSES_USAGE,
}
MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "real-1",
    "content": [{"type": "text", "text": "Hi"}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 600, "cache_read_input_tokens": 400, "output_tokens": 100},
}


def event(data: Any, name: str | None = None) -> bytes:
    text = data if isinstance(data, str) else json.dumps(data)
    return (f"event: {name}\n" if name else "").encode() + f"data: {text}\n\n".encode()


def chunk(content: str = "", finish: str | None = None, **more: Any) -> bytes:
    choice = {"index": 0, "delta": {"content": content}, "finish_reason": finish}
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "real-1"}
    return event({**head, "choices": [choice], **more})


DONE = event("[DONE]")
USAGE_CHUNK = event({"model": "real-1", "choices": [], "usage": CHAT_USAGE})
CHAT_STREAM = [chunk("H"), chunk("i"), chunk("", "stop"), USAGE_CHUNK, DONE]
RESPONSES_STREAM = [
    event({"type": "response.created", "response": {"model": "real-1"}}, "response.created"),
    event({"type": "response.output_text.delta", "delta": "Hi"}, "response.output_text.delta"),
    event({"type": "response.completed", "response": RESPONSE}, "response.completed"),
]
MESSAGES_STREAM = [
    event(
        {
            "type": "message_start",
            "message": {
                "model": "real-1",
                "usage": {
                    "input_tokens": 600,
                    "cache_read_input_tokens": 400,
                    "output_tokens": 1,
                },
            },
        },
        "message_start",
    ),
    event({"type": "content_block_delta", "index": 0, "delta": {"text": "Hi"}}),
    event({"type": "message_delta", "delta": {}, "usage": {"output_tokens": 100}}),
    event({"type": "message_stop"}, "message_stop"),
]
