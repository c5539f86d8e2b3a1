"""MCP's messages as far as the relay reads them: what asks, what answers, what an answer says.

Nothing here fails: a body that is no JSON-RPC has no messages, and passes the relay unread.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

Message = dict[str, Any]

LATE: Final = -32001
"""The error code of a call whose time was up."""
LOST: Final = -32000
"""The error code of a call whose server cannot be reached any more."""


def messages_in(body: bytes | str) -> tuple[Message, ...]:
    """The messages of a body: one, or those of a batch."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return ()
    values = value if isinstance(value, list) else [value]
    return tuple(each for each in values if isinstance(each, dict))


def is_request(message: Message) -> bool:
    """Whether it asks for an answer."""
    return isinstance(message.get("method"), str) and message.get("id") is not None


def is_answer(message: Message) -> bool:
    """Whether it answers something."""
    return "result" in message or "error" in message


def key_of(message: Message) -> str:
    """The id as a key; 1 and "1" are two."""
    return json.dumps(message.get("id"))


def params_of(message: Message) -> Mapping[str, Any]:
    """The parameters, empty where there are none."""
    params = message.get("params")
    return params if isinstance(params, dict) else {}


def error(message_id: Any, code: int, text: str) -> Message:
    """An answer that is an error."""
    return {"jsonrpc": "2.0", "id": message_id, "error": {"code": code, "message": text}}


def is_failure(answer: Message) -> bool:
    """Whether an answer says that it did not work: as an error, or as a tool's result."""
    return "error" in answer or _result(answer).get("isError") is True


def text_of(method: str, answer: Message) -> str:
    """What a reader wants to know of an answer, as text."""
    if "error" in answer:
        told = answer["error"]
        return str(told.get("message", "")) if isinstance(told, dict) else str(told)
    result = _result(answer)
    if method == "tools/list":
        return ", ".join(_tool_names(result))
    if method == "tools/call":
        return _content(result)
    found = result.get("serverInfo")
    server: Mapping[str, Any] = found if isinstance(found, dict) else {}
    return " ".join(str(server[key]) for key in ("name", "version") if server.get(key))


def _result(answer: Message) -> Mapping[str, Any]:
    result = answer.get("result")
    return result if isinstance(result, dict) else {}


def _tool_names(result: Mapping[str, Any]) -> Iterator[str]:
    tools = result.get("tools")
    for tool in tools if isinstance(tools, list) else ():
        if isinstance(tool, dict):
            yield str(tool.get("name", ""))


def _content(result: Mapping[str, Any]) -> str:
    """The text blocks; of other blocks the kind; without any block the structured content."""
    blocks = result.get("content")
    parts = []
    for block in blocks if isinstance(blocks, list) else ():
        kind = block.get("type") if isinstance(block, dict) else None
        parts.append(str(block.get("text", "")) if kind == "text" else f"[{kind}]")
    if not parts and "structuredContent" in result:
        return json.dumps(result["structuredContent"], ensure_ascii=False)
    return "\n".join(parts)


def rename_tools(answer: Message, names: Mapping[str, str]) -> bool:
    """Offer tools under other names; says whether any was renamed."""
    tools, renamed = _result(answer).get("tools"), False
    for tool in tools if isinstance(tools, list) else ():
        name = tool.get("name") if isinstance(tool, dict) else None
        if isinstance(name, str) and name in names:
            tool["name"], renamed = names[name], True
    return renamed


def rename_call(request: Message, names: Mapping[str, str]) -> bool:
    """Call a tool by its other name; says whether it was renamed."""
    params = request.get("params")
    if request.get("method") != "tools/call" or not isinstance(params, dict):
        return False
    name = params.get("name")
    if not isinstance(name, str) or name not in names:
        return False
    params["name"] = names[name]
    return True
