"""The run's numbers as lines for the terminal, each only where it has something to say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pytest_harbor.episode.outcome import Outcome
from pytest_harbor.report.attempts import Attempts, Share
from pytest_harbor.report.calls import CallStats, UserCalls
from pytest_harbor.report.numbers import Group, Numbers, Part, differences
from pytest_harbor.report.text import clean, number_of

_MOST_DIFFERENCES = 5


def render_numbers(found: Numbers) -> list[str]:
    """What the totals do not say: failures by kind, attempts, talk, and what was not alike."""
    several = len(found.groups) > 1
    lines = [*_failures(found.whole), *_calls(found.whole.calls)]
    for group in found.groups:
        if several:
            lines.append(_group(group))
        lines += _attempts(group.attempts)
    return [clean(line).replace("\n", " ") for line in [*lines, *_differences(found.groups)]]


def _failures(part: Part) -> Iterator[str]:
    """Graded failures by kind; a run whose failures are all plain ones needs no such line."""
    sums = part.sums
    kinds = {
        outcome.value: graded
        for outcome, number in sums.outcomes.items()
        if outcome is not Outcome.PASSED and (graded := number - sums.excluded.get(outcome, 0))
    }
    if set(kinds) - {Outcome.FAILED.value}:
        yield f"graded failures: {_listed(kinds)}"
    if part.structural:
        number = number_of(sum(part.structural.values()), "structural zero")
        yield f"{number} (wrong shape, not tested): {_listed(part.structural)}"


def _listed(counted: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {name}" for name, number in counted.items())


def _calls(calls: UserCalls | None) -> Iterator[str]:
    if calls is None:
        return
    steps = [f"{name} {_span(stats)}" for name, stats in calls.by_step.items() if stats.most]
    if steps:
        rest = "; in no other step" if len(steps) < len(calls.by_step) else ""
        yield f"user asked (least/median/most): {', '.join(steps)}{rest}"
    if calls.whole is not None and calls.whole.silent:
        yield (
            f"user never asked in {calls.whole.silent} of "
            f"{number_of(calls.whole.episodes, 'graded episode')}"
        )


def _span(stats: CallStats) -> str:
    return f"{stats.least}/{stats.median:g}/{stats.most}"


def _group(group: Group) -> str:
    sums = group.sums
    rate = ""
    if sums.resolve_rate is not None and sums.interval is not None:
        low, high = sums.interval
        rate = f" ({sums.resolve_rate:.0%}; {low:.0%} to {high:.0%})"
    left = sums.episodes - sums.valid
    excluded = f", {left} not graded" if left else ""
    return f"{group.name}: {sums.resolved} of {sums.valid}{rate}{excluded}"


def _attempts(tried: Attempts) -> Iterator[str]:
    if not tried.several:
        return
    tasks, episodes = number_of(len(tried.series), "task"), number_of(tried.episodes, "attempt")
    over = "; 95 % intervals over tasks" if tried.by_k else ""
    yield f"  {episodes} at {tasks}, {tried.graded} graded{over}"
    for row in tried.told():
        left = f" ({row.left_out} with fewer graded attempts left out)" if row.left_out else ""
        yield (
            f"  pass@{row.k} {_share(row.pass_at):19}  pass^{row.k} {_share(row.pass_hat):19}"
            f"  of {number_of(row.tasks, 'task')}{left}"
        )


def _share(share: Share) -> str:
    return f"{share.value:.0%} ({share.low:.0%} to {share.high:.0%})"


def _differences(groups: Sequence[Group]) -> Iterator[str]:
    told = differences(groups)
    if told:
        yield "WARNING: these episodes are added up and were not run alike:"
    yield from (f"  {line}" for line in told[:_MOST_DIFFERENCES])
    if len(told) > _MOST_DIFFERENCES:
        yield f"  and {len(told) - _MOST_DIFFERENCES} more, in summary.json"
