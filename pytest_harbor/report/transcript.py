"""An ATIF trajectory as a conversation to be read (harbor-format 10.5).

Reading is lenient: a report shows what there is of a file that is damaged, odd or hostile, and
never stumbles over it. Long texts keep their head and tail; a long conversation likewise.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from pytest_harbor.report.text import count, head_and_tail, log_text, money, number_of

FILE_LIMIT = 16_000_000
"""Larger files are not parsed; they are shown as text."""
TEXT_LIMIT = 8_000
TOTAL_LIMIT = 400_000

Message = dict[str, Any]
"""Plain data for the page's script: who, at, text, think, calls, results, note; or gap."""


@dataclass(frozen=True)
class Transcript:
    """A conversation, and what was counted in all of it."""

    messages: tuple[Message, ...]
    total: int
    """Messages in the file, without those copied from an earlier one."""
    copied: int
    calls: Counter[str]
    """Calls of each tool."""

    @property
    def title(self) -> str:
        """What is in it, in a few words."""
        number = sum(self.calls.values())
        return f"{number_of(self.total, 'message')}, {number_of(number, 'tool call')}"


def read_transcript(
    path: Path, *, to_user: Iterable[str] = (), redact: Callable[[str], str] = str
) -> Transcript | None:
    """Read a trajectory; None when it is none.

    ``to_user`` names tools that put a question to the simulated user: such a call and its answer
    are shown as talk.
    """
    try:
        if path.stat().st_size > FILE_LIMIT:
            return None
        document = json.loads(path.read_bytes().decode("utf-8-sig", "replace"))
        steps = document["steps"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    if not isinstance(steps, list):
        return None
    reader = _Reader(frozenset(to_user), redact)
    every = [step for step in steps if isinstance(step, dict)]
    own = [step for step in every if not step.get("is_copied_context")]
    calls = Counter(_tool(call) for step in own for call in _list(step.get("tool_calls")))
    start = next((at for step in own if (at := _moment(step.get("timestamp"))) is not None), None)
    messages = tuple(within(reader.messages(own, start), TOTAL_LIMIT))
    return Transcript(messages, len(own), len(every) - len(own), calls)


class _Reader:
    """Turns steps into messages."""

    def __init__(self, to_user: frozenset[str], redact: Callable[[str], str]) -> None:
        self._to_user = to_user
        self._redact = redact

    def messages(self, steps: Sequence[dict[str, Any]], start: datetime | None) -> list[Message]:
        return [self._message(step, start) for step in steps]

    def _message(self, step: dict[str, Any], start: datetime | None) -> Message:
        results = [each for each in _results(step) if isinstance(each, dict)]
        calls = [call for call in _list(step.get("tool_calls")) if isinstance(call, dict)]
        known = {str(call.get("tool_call_id")) for call in calls}
        message: Message = {
            "who": str(step.get("source", "agent")),
            "at": clock(start, _moment(step.get("timestamp"))),
            "text": self._text(step.get("message")),
            "think": self._text(step.get("reasoning_content")),
            "calls": [self._call(call, results) for call in calls],
            "results": [
                self._text(each.get("content"))
                for each in results
                if str(each.get("source_call_id")) not in known
            ],
            "note": _metrics(step.get("metrics")),
        }
        return {name: value for name, value in message.items() if value}

    def _call(self, call: dict[str, Any], results: Sequence[dict[str, Any]]) -> Message:
        name, key = _tool(call), str(call.get("tool_call_id"))
        arguments = call.get("arguments")
        pairs = arguments.items() if isinstance(arguments, dict) else [("", arguments)]
        return {
            "name": self._text(name),
            "talk": is_call_of(name, self._to_user),
            "args": [
                [self._text(label), self._text(value)] for label, value in pairs if value != ""
            ],
            "results": [
                self._text(each.get("content"))
                for each in results
                if str(each.get("source_call_id")) == key
            ],
        }

    def _text(self, value: Any) -> str:
        """Any content as text: parts one after the other, data as JSON."""
        return head_and_tail(log_text(self._redact(_flat(value))), TEXT_LIMIT)


def is_call_of(name: str, tools: Iterable[str]) -> bool:
    """Whether a call is one of these tools, also under the names that agents give MCP tools."""
    return any(name == tool or name.endswith((f"__{tool}", f".{tool}")) for tool in tools)


def _flat(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(part, dict) and "type" in part for part in value):
        return "\n".join(_part(part) for part in value)
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)


def _part(part: dict[str, Any]) -> str:
    if part.get("type") == "text":
        return _flat(part.get("text"))
    source = part.get("source")
    where = source if isinstance(source, dict) else {}
    return f"[{part.get('type')}: {where.get('media_type', '')} {where.get('path', '')}]"


def _tool(call: Any) -> str:
    return str(call.get("function_name", "?")) if isinstance(call, dict) else "?"


def _results(step: dict[str, Any]) -> list[Any]:
    observation = step.get("observation")
    return _list(observation.get("results")) if isinstance(observation, dict) else []


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _moment(value: Any) -> datetime | None:
    try:
        at = datetime.fromisoformat(str(value))
    except ValueError:
        return None
    return at if at.tzinfo is not None else at.astimezone()


def clock(start: datetime | None, at: datetime | None) -> str:
    """Minutes and seconds since the first message."""
    if start is None or at is None:
        return ""
    seconds = max(0, round((at - start).total_seconds()))
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"


def _metrics(metrics: Any) -> str:
    if not isinstance(metrics, dict):
        return ""
    parts = [
        f"{count(metrics[key])} {label}"
        for key, label in (
            ("prompt_tokens", "in"),
            ("cached_tokens", "cached"),
            ("completion_tokens", "out"),
        )
        if isinstance(metrics.get(key), int)
    ]
    cost = metrics.get("cost_usd")
    return ", ".join([*parts, money(cost)] if isinstance(cost, int | float) else parts)


def within(messages: Sequence[Message], limit: int) -> Iterator[Message]:
    """The beginning and the end of a conversation that is too long, with a gap between."""
    sizes = [len(json.dumps(each, ensure_ascii=False)) for each in messages]
    if sum(sizes) <= limit:
        yield from messages
        return
    first, last = _fitting(sizes, limit * 2 // 3), _fitting(sizes[::-1], limit // 3)
    yield from messages[:first]
    yield {"gap": f"{number_of(len(messages) - first - last, 'message')} not shown"}
    yield from messages[len(messages) - last :]


def _fitting(sizes: Sequence[int], limit: int) -> int:
    used = 0
    for number, size in enumerate(sizes):
        used += size
        if used > limit:
            return number
    return len(sizes)
