"""How often the simulated user was asked, step by step, and what that comes to over episodes.

Three may have counted: the user itself (its log), whoever ran the agent (``mcp_calls``), and the
agent's transcript. The user's own log comes first: it has every question, whoever put it. A step of
which nobody counted is left out, not zero (B90).
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_harbor.episode.result import EpisodeResult, StepResult
from pytest_harbor.report.facts import granted_calls, granted_tools
from pytest_harbor.report.talk import find_talk
from pytest_harbor.report.transcript import read_transcript


def user_calls(result: EpisodeResult, folder: Path) -> dict[int, int]:
    """How often the user was asked in each step that ran, by the step's index; where known."""
    talk = find_talk(result, folder)
    logged = talk.asked if talk is not None else {}
    found: dict[int, int] = {}
    for step in result.steps:
        number = logged.get(step.index)
        if number is None and step.ran is not None:
            number = _counted(step, folder)
        if number is not None:
            found[step.index] = number
    return found


def _counted(step: StepResult, folder: Path) -> int | None:
    tools = granted_tools(step.grants)
    calls = granted_calls(step, None)
    if not calls and tools and step.turn is not None and step.turn.trajectory is not None:
        calls = granted_calls(step, read_transcript(folder / step.turn.trajectory, to_user=tools))
    return sum(calls.values()) if calls else None


@dataclass(frozen=True)
class CallStats:
    """Calls of the user in one step, or in whole episodes."""

    episodes: int
    """How many are counted."""
    least: int
    median: float
    most: int
    silent: int
    """In how many the user was never asked."""


@dataclass(frozen=True)
class UserCalls:
    """Calls of the user over graded episodes."""

    by_step: Mapping[str, CallStats]
    """By the step's name, in the order of the tasks."""
    whole: CallStats | None
    """Over all steps of an episode; only of those where every step is counted."""


def call_stats(counted: Iterable[tuple[EpisodeResult, Mapping[int, int]]]) -> UserCalls | None:
    """Add up the calls of episodes; None when nobody counted any."""
    steps: dict[str, list[int]] = {}
    whole: list[int] = []
    for result, calls in counted:
        ran = [step for step in result.steps if step.ran is not None]
        for step in ran:
            if step.index in calls:
                steps.setdefault(step.name, []).append(calls[step.index])
        if ran and all(step.index in calls for step in ran):
            whole.append(sum(calls.values()))
    if not steps:
        return None
    by_step = {name: _stats(numbers) for name, numbers in steps.items()}
    return UserCalls(by_step, _stats(whole) if whole else None)


def _stats(numbers: Sequence[int]) -> CallStats:
    return CallStats(
        episodes=len(numbers),
        least=min(numbers),
        median=statistics.median(numbers),
        most=max(numbers),
        silent=numbers.count(0),
    )
