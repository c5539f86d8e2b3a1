"""Adding episodes up: totals with their denominators, and the final table.

Two means are given and named, because leaving errors out and counting them as zero are different
claims (harbor-format 11.4: Harbor leaves them out).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from pytest_harbor.episode.outcome import Outcome
from pytest_harbor.episode.result import EpisodeResult, Verdict
from pytest_harbor.report.episodes import is_valid, verdict_of
from pytest_harbor.report.parties import PartySums, party_sums
from pytest_harbor.report.text import clean, duration, fit, money, reward, width


@dataclass(frozen=True)
class Totals:
    """What a number of episodes come to."""

    episodes: int = 0
    tasks: int = 0
    resolved: int = 0
    """Episodes that passed."""
    valid: int = 0
    """Episodes whose reward says something about the agent."""
    excluded: dict[Outcome, int] = field(default_factory=dict)
    """The others, by outcome."""
    outcomes: dict[Outcome, int] = field(default_factory=dict)
    mean_over_valid: float | None = None
    mean_over_all: float | None = None
    """Episodes without a valid reward count as zero."""
    seconds: float = 0.0
    """Time spent in episodes; less has passed on the clock when they ran side by side."""
    cost_usd: float | None = None
    tokens: int | None = None
    cost_known: int = 0
    """How many episodes the cost is known of."""
    parties: dict[str, PartySums] = field(default_factory=dict)
    """Model calls by party; ``cost_usd`` and ``tokens`` above are the agent's alone."""

    @property
    def resolve_rate(self) -> float | None:
        """Resolved of valid."""
        return self.resolved / self.valid if self.valid else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Wilson's 95 % interval of the resolve rate."""
        return wilson(self.resolved, self.valid)


def totals(results: Iterable[EpisodeResult]) -> Totals:
    """Add up episodes."""
    every = list(results)
    valid = [each for each in every if is_valid(each)]
    rewards = [each.reward for each in valid if each.reward is not None]
    costs = [each.cost_usd for each in every if each.cost_usd is not None]
    tokens = [each.tokens for each in every if each.tokens is not None]
    excluded = Counter(each.outcome for each in every if not is_valid(each))
    return Totals(
        episodes=len(every),
        tasks=len({each.task_path for each in every}),
        resolved=sum(each.verdict == "passed" for each in valid),
        valid=len(valid),
        excluded=_in_order(excluded),
        outcomes=_in_order(Counter(each.outcome for each in every)),
        mean_over_valid=math.fsum(rewards) / len(valid) if valid else None,
        mean_over_all=math.fsum(rewards) / len(every) if every else None,
        seconds=math.fsum(each.ran.seconds for each in every),
        cost_usd=math.fsum(costs) if costs else None,
        tokens=sum(tokens) if tokens else None,
        cost_known=len(costs),
        parties=party_sums(every),
    )


def wilson(hits: float, n: int) -> tuple[float, float] | None:
    """Wilson's 95 % interval of a share; None of nothing. Hits may be parts of one."""
    if n == 0:
        return None
    z = 1.959964
    share = hits / n
    middle = share + z * z / (2 * n)
    reach = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    return max(0.0, (middle - reach) / scale), min(1.0, (middle + reach) / scale)


def _in_order(counted: Counter[Outcome]) -> dict[Outcome, int]:
    """In the order of the closed set, so that every report lists outcomes alike."""
    return {outcome: counted[outcome] for outcome in Outcome if counted[outcome]}


@dataclass(frozen=True)
class Row:
    """One line of the final table."""

    task: str
    verdict: Verdict
    outcome: Outcome
    reward: float | None
    reward_as_harbor: float | None
    steps_run: int
    steps_total: int
    steps: str
    """A mark per step: how far it came, at a glance."""
    seconds: float
    cost_usd: float | None


_MARKS = {"passed": "●", "failed": "✗", "xfailed": "○", "error": "!", "skipped": "·"}


def table(results: Iterable[EpisodeResult]) -> list[Row]:
    """A row per episode, ordered by key."""
    return [_row(each) for each in sorted(results, key=lambda each: each.key)]


def _row(result: EpisodeResult) -> Row:
    name = clean(result.key.rpartition("::")[2] or result.task)
    return Row(
        task=" ".join(name.split()),
        verdict=result.verdict,
        outcome=result.outcome,
        reward=result.reward,
        reward_as_harbor=result.reward_as_harbor,
        steps_run=result.steps_run,
        steps_total=result.steps_total,
        steps="".join(_MARKS[verdict_of(step)] for step in result.steps),
        seconds=result.ran.seconds,
        cost_usd=result.cost_usd,
    )


_HEAD = ("task", "outcome", "reward", "steps", "", "time", "cost")
_LEFT = {0, 1, 4}
_LEAST_TASK = 12


def render_table(rows: Sequence[Row], width: int) -> list[str]:
    """The final table as lines of text, at most ``width`` cells wide where that is possible.

    Columns without any content are left out; the task's name gives way first.
    """
    body = [_cells(row) for row in rows]
    used = [i for i in range(len(_HEAD)) if i == 0 or any(line[i] for line in body)]
    lines = [_HEAD, *body]
    sizes = {i: max(_width(line[i]) for line in lines) for i in used}
    spare = width - 2 * (len(used) - 1) - sum(sizes[i] for i in used if i != 0)
    sizes[0] = max(min(sizes[0], spare), min(sizes[0], _LEAST_TASK))
    return [
        "  ".join(_cell(line[i], sizes[i], i in _LEFT) for i in used).rstrip() for line in lines
    ]


def _cells(row: Row) -> tuple[str, ...]:
    several = row.steps_total > 1
    return (
        row.task,
        str(row.outcome),
        reward(row.reward),
        f"{row.steps_run}/{row.steps_total}" if several else "",
        row.steps if several and len(row.steps) <= 12 else "",
        duration(row.seconds),
        money(row.cost_usd) if row.cost_usd is not None else "",
    )


def _cell(text: str, cells: int, left: bool) -> str:
    return fit(text, cells) if left else " " * (cells - _width(text)) + text


_width = width  # "width" is a parameter above


def render_totals(sums: Totals) -> list[str]:
    """The run in a few lines: how many, of how many, and what they cost."""
    lines = [f"{sums.resolved} of {sums.valid} graded episodes resolved"]
    if sums.interval is not None:
        low, high = sums.interval
        lines[0] += f" ({sums.resolved / sums.valid:.0%}; 95 % interval {low:.0%} to {high:.0%})"
    if sums.excluded:
        parts = ", ".join(f"{n} {outcome}" for outcome, n in sums.excluded.items())
        lines.append(f"{sums.episodes - sums.valid} of {sums.episodes} not graded: {parts}")
    means = f"mean reward {reward(sums.mean_over_valid)} over the {sums.valid} graded"
    if sums.excluded:
        means += f", {reward(sums.mean_over_all)} over all {sums.episodes} (errors as 0)"
    lines.append(means)
    spent = [f"{duration(sums.seconds)} in episodes"]
    if sums.cost_usd is not None:
        known = "" if sums.cost_known == sums.episodes else f" (known of {sums.cost_known})"
        spent.append(f"{money(sums.cost_usd)}{known}")
    if sums.tokens is not None:
        spent.append(f"{sums.tokens:,} tokens")
    return [*lines, ", ".join(spent), *_parties(sums)]


def _parties(sums: Totals) -> list[str]:
    """The split of what model calls took, where there was more than an agent."""
    if not set(sums.parties) - {"agent"}:
        return []
    split = "; ".join(f"{party} {each}" for party, each in sums.parties.items())
    return [clean(f"model calls: {split}")]
