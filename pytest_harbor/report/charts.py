"""The numbers behind the page's charts; the templates draw them as small SVGs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pytest_harbor.episode.outcome import Outcome
from pytest_harbor.episode.result import EpisodeResult, Interval, StepResult, Verdict
from pytest_harbor.report.episodes import verdict_of
from pytest_harbor.report.facts import item_name, words
from pytest_harbor.report.text import duration, reward


@dataclass(frozen=True)
class Segment:
    """A part of a timeline, in percent of its length."""

    kind: str
    start: float
    length: float
    title: str


def timeline(result: EpisodeResult) -> Iterator[Segment]:
    """Phases, turns and gradings of an episode on one line."""
    whole = result.ran.seconds
    if whole <= 0:
        return
    parts: list[tuple[str, str, Interval]] = [
        ("start", words(name), ran) for name, ran in result.phases.items()
    ]
    for step in result.steps:
        named = "" if step.implicit else f"{step.name}: "
        if step.turn is not None:
            parts.append(("turn", f"{named}agent", step.turn.ran))
        if step.grade is not None:
            parts.append(("grade", f"{named}verifier", step.grade.ran))
    for kind, title, ran in sorted(parts, key=lambda each: each[2].started_at):
        start = (ran.started_at - result.ran.started_at).total_seconds() / whole * 100
        length = ran.seconds / whole * 100
        if 0 <= start <= 100 and length >= 0.05:
            shown = min(length, 100 - start)
            yield Segment(
                kind, round(start, 2), round(shown, 2), f"{title} {duration(ran.seconds)}"
            )


@dataclass(frozen=True)
class Share:
    """One outcome's part of all episodes."""

    outcome: Outcome
    number: int
    start: float
    length: float

    @property
    def tone(self) -> str:
        """The colour's name: errors share one."""
        return self.outcome.value if self.outcome.is_graded else "error"


def shares(outcomes: dict[Outcome, int]) -> list[Share]:
    """The outcomes as parts of a bar of a hundred."""
    whole = sum(outcomes.values())
    found, start = [], 0.0
    for outcome, number in outcomes.items():
        length = number / whole * 100
        found.append(Share(outcome, number, round(start, 3), round(length, 3)))
        start += length
    return found


@dataclass(frozen=True)
class Bar:
    """One episode in the skyline of rewards."""

    anchor: str
    title: str
    verdict: Verdict
    height: float


def skyline(results: Sequence[EpisodeResult]) -> list[Bar]:
    """Every episode by its reward, the best first; those without one come last."""
    order = sorted(results, key=lambda each: (each.reward is None, -(each.reward or 0.0), each.key))
    return [
        Bar(
            anchor=each.episode,
            title=f"{item_name(each)}: {words(each.outcome)}, reward {reward(each.reward)}",
            verdict=each.verdict,
            height=100.0 if each.reward is None else max(0.0, min(1.0, each.reward)) * 100,
        )
        for each in order
    ]


@dataclass(frozen=True)
class Rung:
    """How one step, by its name, went over all episodes that have it."""

    name: str
    counts: dict[Verdict, int]
    whole: int
    seconds: float | None
    """Mean time of those that ran."""

    def parts(self) -> Iterator[tuple[Verdict, int, float, float]]:
        """Verdict, number, start and length in percent."""
        start = 0.0
        for verdict in ("passed", "xfailed", "failed", "error", "skipped"):
            number = self.counts.get(verdict, 0)
            if number:
                length = number / self.whole * 100
                yield verdict, number, round(start, 3), round(length, 3)
                start += length


def ladder(results: Iterable[EpisodeResult], limit: int = 12) -> list[Rung]:
    """The steps of many-step tasks by name, in the order of the tasks."""
    found: dict[str, list[StepResult]] = {}
    for result in results:
        for step in result.steps:
            if not step.implicit:
                found.setdefault(step.name, []).append(step)
    return [_rung(name, steps) for name, steps in list(found.items())[:limit]]


def _rung(name: str, steps: Sequence[StepResult]) -> Rung:
    times = [step.ran.seconds for step in steps if step.ran is not None]
    counts: Counter[Verdict] = Counter(verdict_of(step) for step in steps)
    mean = sum(times) / len(times) if times else None
    return Rung(name, dict(counts), len(steps), mean)
