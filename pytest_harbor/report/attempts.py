"""pass@k and pass^k: what several attempts at each task say about an agent.

pass@k is the chance that at least one of k attempts passes, pass^k the chance that all of them do.
A task with n graded attempts of which c passed gives the unbiased estimates
``1 - C(n-c, k) / C(n, k)`` and ``C(c, k) / C(n, k)``; their mean over tasks is reported.

An attempt passes by its own pass rule, so fractional rewards count like others. An attempt without
a grade is no attempt: it lowers its task's n, and a task with fewer than k graded attempts is left
out at that k, and counted as left out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pytest_harbor.episode.result import EpisodeResult
from pytest_harbor.report.episodes import is_valid
from pytest_harbor.report.summary import wilson


def pass_at(n: int, c: int, k: int) -> float:
    """The chance that one of k attempts, drawn from n of which c passed, is one that passed."""
    return (math.comb(n, k) - math.comb(n - c, k)) / math.comb(n, k)


def pass_hat(n: int, c: int, k: int) -> float:
    """The chance that k attempts, drawn from n of which c passed, all are ones that passed."""
    return math.comb(c, k) / math.comb(n, k)


@dataclass(frozen=True)
class Series:
    """The attempts at one task under the same parameters."""

    task: str
    task_path: str
    episodes: int
    graded: int
    passed: int


@dataclass(frozen=True)
class Share:
    """A mean over tasks, with the interval in which other tasks of their kind may put it."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class AtK:
    """Both numbers for one k."""

    k: int
    tasks: int
    """How many tasks have k graded attempts; the means are over these."""
    left_out: int
    """How many have fewer."""
    pass_at: Share
    pass_hat: Share


@dataclass(frozen=True)
class Attempts:
    """All that was tried, and what it says for each k."""

    series: tuple[Series, ...]
    by_k: tuple[AtK, ...]
    """From 1 to the largest number of graded attempts that a task has."""

    @property
    def several(self) -> bool:
        """Whether any task was tried more than once."""
        return any(each.episodes > 1 for each in self.series)

    @property
    def graded(self) -> int:
        """How many attempts have a grade."""
        return sum(each.graded for each in self.series)

    @property
    def episodes(self) -> int:
        """How many attempts there were."""
        return sum(each.episodes for each in self.series)

    def told(self) -> list[AtK]:
        """The rows for people: powers of two, and the largest k."""
        return [row for row in self.by_k if row.k & (row.k - 1) == 0 or row is self.by_k[-1]]


def attempts(results: Iterable[EpisodeResult]) -> Attempts:
    """Put attempts at the same task together; the results are one agent's and one model's."""
    found: dict[tuple[str, str], list[EpisodeResult]] = {}
    for each in sorted(results, key=lambda each: each.key):
        found.setdefault((each.task_path, _without_attempt(each)), []).append(each)
    series = tuple(_series(key, members) for (_, key), members in found.items())
    most = max((each.graded for each in series), default=0)
    return Attempts(series, tuple(_at(k, series) for k in range(1, most + 1)))


def _without_attempt(result: EpisodeResult) -> str:
    """The key without the attempt's part: ``task[oracle-attempt2]`` is ``task[oracle]``."""
    before, bracket, inside = result.key.rpartition("[")
    if not bracket or not inside.endswith("]"):
        return result.key
    number = re.escape(f"attempt{result.attempt}")
    rest = re.sub(rf"(^|-){number}(?=-|$)", "", inside[:-1], count=1).removeprefix("-")
    return f"{before}[{rest}]" if rest else before


def _series(key: str, members: Sequence[EpisodeResult]) -> Series:
    valid = [each for each in members if is_valid(each)]
    return Series(
        task=key.rpartition("::")[2] or members[0].task,
        task_path=members[0].task_path,
        episodes=len(members),
        graded=len(valid),
        passed=sum(each.verdict == "passed" for each in valid),
    )


def _at(k: int, series: Sequence[Series]) -> AtK:
    enough = [each for each in series if each.graded >= k]
    return AtK(
        k=k,
        tasks=len(enough),
        left_out=len(series) - len(enough),
        pass_at=_share([pass_at(each.graded, each.passed, k) for each in enough]),
        pass_hat=_share([pass_hat(each.graded, each.passed, k) for each in enough]),
    )


def _share(values: Sequence[float]) -> Share:
    """The mean with Wilson's interval, in which each task is one draw.

    Attempts at one task are alike, so tasks are what is drawn, not attempts. A task's estimate
    lies between 0 and 1, hence varies around the mean at most as much as a plain yes or no with
    that mean: the interval is on the safe side. At k = 1 with one attempt each it is the one of
    the resolve rate.
    """
    whole = math.fsum(values)
    low, high = wilson(whole, len(values)) or (0.0, 1.0)
    return Share(whole / len(values), low, high)
