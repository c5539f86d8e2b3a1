"""What an agent and the simulated user said, from the log that the user's sidecar keeps.

The log (``ask-user.jsonl``, swe-interact 1.5) covers the whole episode; each exchange belongs to
the step in which it took place. It tells how often the user was asked also of agents that leave
no transcript.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pytest_harbor.episode.result import EpisodeResult, StepResult
from pytest_harbor.report.text import head_and_tail, log_text
from pytest_harbor.report.transcript import (
    FILE_LIMIT,
    TEXT_LIMIT,
    TOTAL_LIMIT,
    Message,
    clock,
    within,
)

LOG = "ask-user.jsonl"


@dataclass(frozen=True)
class Exchange:
    """A question to the user and its answer."""

    at: datetime | None
    question: str
    answer: str


@dataclass(frozen=True)
class Talk:
    """All that was said in an episode."""

    path: Path
    by_step: Mapping[int, Sequence[Exchange]]
    """The exchanges of each step that the log can know of, by the step's index."""
    timed: bool = True
    """Whether every exchange says when it took place."""

    @property
    def asked(self) -> dict[int, int]:
        """How often the user was asked in each step; of none, when some questions have no time."""
        return {index: len(said) for index, said in self.by_step.items()} if self.timed else {}


def find_talk(
    result: EpisodeResult, folder: Path, redact: Callable[[str], str] = str
) -> Talk | None:
    """The talk of an episode, from the log that the last verifier exported; None without one.

    Steps after that verifier are not in it: nobody knows what was said in them.
    """
    for number, step in reversed([*enumerate(result.steps, 1)]):
        if step.grade is not None and step.grade.log is not None:
            found = sorted((folder / step.grade.log).parent.glob(f"*/{LOG}"))
            if found:
                said = read_talk(found[0], redact)
                timed = all(each.at is not None for each in said)
                return Talk(found[0], by_step(said, result.steps[:number]), timed)
    return None


def read_talk(path: Path, redact: Callable[[str], str] = str) -> list[Exchange]:
    """The exchanges of a user's log; lines that are none are passed over."""
    try:
        if path.stat().st_size > FILE_LIMIT:
            return []
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    read = (_exchange(line, redact) for line in lines)
    return [each for each in read if each is not None]


def by_step(
    exchanges: Iterable[Exchange], steps: Sequence[StepResult]
) -> dict[int, list[Exchange]]:
    """The exchanges of each step that ran, by its index; those outside of all steps are left."""
    ran = [(step.index, step.ran) for step in steps if step.ran is not None]
    found: dict[int, list[Exchange]] = {index: [] for index, _ in ran}
    for each in exchanges:
        for index, interval in ran:
            if each.at is not None and interval.started_at <= each.at <= interval.finished_at:
                found[index].append(each)
                break
    return found


def as_messages(exchanges: Sequence[Exchange]) -> tuple[Message, ...]:
    """Exchanges as the page shows a conversation."""
    start = exchanges[0].at if exchanges else None
    messages: list[Message] = [
        {
            "who": "agent",
            "at": clock(start, each.at),
            "calls": [
                {
                    "name": "",
                    "talk": True,
                    "args": [["question", each.question]],
                    "results": [each.answer],
                }
            ],
        }
        for each in exchanges
    ]
    return tuple(within(messages, TOTAL_LIMIT))


def _exchange(line: str, redact: Callable[[str], str]) -> Exchange | None:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(entry, dict) or "question" not in entry:
        return None
    text = (
        head_and_tail(log_text(redact(str(entry.get(name) or ""))), TEXT_LIMIT)
        for name in ("question", _first(entry, ("answer", "reply", "response")))
    )
    return Exchange(_moment(entry.get(_first(entry, ("time", "timestamp", "ts")))), *text)


def _first(entry: Mapping[str, Any], names: Sequence[str]) -> str:
    return next((name for name in names if name in entry), names[0])


def _moment(value: Any) -> datetime | None:
    """A moment from seconds since the epoch or ISO 8601."""
    try:
        if isinstance(value, int | float):
            return datetime.fromtimestamp(value, UTC)
        at = datetime.fromisoformat(str(value))
    except (ValueError, OverflowError, OSError):
        return None
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)
