"""What a model has been told and has answered, as chat messages, kept within its context."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pytest_harbor.agents.hands import shortened

Message = dict[str, Any]

_CHARACTERS_PER_TOKEN: Final = 4
_RECENT: Final = 6
"""Messages at the end that are never touched."""
_SHORT: Final = 400
"""Characters that are left of an older tool output."""
_AIM: Final = 0.7
"""To what part of the context it is brought down, so that it is not done for every call."""


class Dialogue:
    """The messages of a session; it may last for several turns."""

    def __init__(self, system: str, context: int) -> None:
        self.messages: list[Message] = [{"role": "system", "content": system}]
        self._context = context

    def tell(self, instruction: str) -> None:
        """A person's words."""
        self.messages.append({"role": "user", "content": instruction})

    def hear(self, message: Mapping[str, Any]) -> None:
        """An answer of the model; its thoughts are not sent back."""
        kept = {name: message.get(name) for name in ("content", "tool_calls") if message.get(name)}
        self.messages.append({"role": "assistant", "content": None, **kept})

    def show(self, call_id: str, text: str) -> None:
        """What came of a tool call."""
        self.messages.append({"role": "tool", "tool_call_id": call_id, "content": text})

    def fit(self, tools: Sequence[Mapping[str, Any]], *, harder: bool = False) -> str:
        """Make room for an answer, where there is little; says what was done, or nothing.

        Older tool outputs are shortened first; then the oldest calls go, each with what came of
        it. ``harder``: the server has refused the messages as too many, whatever we think.
        """
        size = _tokens(tools)
        limit = self._context
        if harder:
            limit = min(limit, int(_AIM * (size + _tokens(self.messages))))
        elif size + _tokens(self.messages) <= limit:
            return ""
        aim = int(_AIM * limit) if not harder else limit
        cut = self._shorten(aim - size)
        dropped = self._drop(aim - size)
        if not cut and not dropped:
            return ""
        return f"context: {cut} older tool outputs shortened, {dropped} older calls left out"

    def _shorten(self, aim: int) -> int:
        count = 0
        for message in self.messages[:-_RECENT]:
            if _tokens(self.messages) <= aim:
                break
            if message["role"] == "tool" and len(message["content"]) > 2 * _SHORT:
                message["content"] = shortened(message["content"], _SHORT)
                count += 1
        return count

    def _drop(self, aim: int) -> int:
        """Leave out answers of the model, oldest first, with all that their calls brought."""
        count, at = 0, 0
        while _tokens(self.messages) > aim and at < len(self.messages) - _RECENT:
            if self.messages[at]["role"] != "assistant":
                at += 1
                continue
            end = at + 1
            while end < len(self.messages) and self.messages[end]["role"] == "tool":
                end += 1
            if end > len(self.messages) - _RECENT:
                break
            del self.messages[at:end]
            count += 1
        return count


def _tokens(data: Any) -> int:
    """A guess; exact counts are the server's to know, and it says when it is too much."""
    return len(json.dumps(data, ensure_ascii=False)) // _CHARACTERS_PER_TOKEN
