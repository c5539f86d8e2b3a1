"""The numbers of a run in one place: over everything, and for each agent, model and dataset.

``summary.json`` holds all of them, for programs; the terminal and the page show a part. Read from
result files and what verifiers left in the episodes' folders.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pytest_harbor.episode.result import EpisodeResult
from pytest_harbor.episode.trial import dataset_of
from pytest_harbor.report.attempts import Attempts, Share, attempts
from pytest_harbor.report.calls import UserCalls, call_stats, user_calls
from pytest_harbor.report.episodes import is_valid, why
from pytest_harbor.report.identity import Identity, identity
from pytest_harbor.report.structural import StructuralZero, find_structural
from pytest_harbor.report.summary import Totals, totals
from pytest_harbor.report.text import clean, head_and_tail

SCHEMA_VERSION = 1
_LONGEST_WHY = 2_000


@dataclass(frozen=True)
class Part:
    """The numbers of some episodes."""

    sums: Totals
    structural: Mapping[str, int]
    """Structural zeros by code, the most frequent first; all of them are graded and failed."""
    calls: UserCalls | None


@dataclass(frozen=True)
class Group:
    """Episodes that may be added up: one agent with one model on one dataset."""

    agent: str
    model: str
    dataset: str
    part: Part
    thresholds: tuple[float, ...]
    """From which reward on an episode passes."""
    attempts: Attempts
    identity: Identity

    @property
    def sums(self) -> Totals:
        """What the episodes come to."""
        return self.part.sums

    @property
    def name(self) -> str:
        """For people."""
        who = ", ".join(filter(None, [self.agent, self.model]))
        return f"{who} on {self.dataset}" if self.dataset else who


@dataclass(frozen=True)
class Excluded:
    """An episode whose reward says nothing about the agent."""

    episode: str
    key: str
    outcome: str
    why: str


@dataclass(frozen=True)
class Numbers:
    """All numbers of a run."""

    whole: Part
    groups: tuple[Group, ...]
    excluded: tuple[Excluded, ...]


@dataclass(frozen=True)
class _Seen:
    """An episode with what its folder tells beside the result."""

    result: EpisodeResult
    structural: StructuralZero | None
    calls: Mapping[int, int]
    """Questions to the user in each step; none of an episode that was not graded."""


def numbers(job: Path, results: Iterable[EpisodeResult]) -> Numbers:
    """All numbers of the episodes of a job folder."""
    every = [_look(job, each) for each in sorted(results, key=lambda each: each.key)]
    found: dict[tuple[str, str, str], list[_Seen]] = {}
    for each in every:
        found.setdefault(_group_of(each.result), []).append(each)
    return Numbers(
        whole=_part(every),
        groups=tuple(_group(key, members) for key, members in sorted(found.items())),
        excluded=tuple(_excluded(each.result) for each in every if not is_valid(each.result)),
    )


def differences(groups: Sequence[Group]) -> list[str]:
    """What was not alike in episodes that are added up, as lines for people."""
    return [
        f"{group.name}: {each}" if len(groups) > 1 else str(each)
        for group in groups
        for each in group.identity.differences
    ]


def _look(job: Path, result: EpisodeResult) -> _Seen:
    folder = job / result.episode
    calls = user_calls(result, folder) if is_valid(result) else {}
    return _Seen(result, find_structural(result, folder), calls)


def _group_of(result: EpisodeResult) -> tuple[str, str, str]:
    agent = result.agent.name if result.agent else "unstarted"
    model = (result.agent.model if result.agent else None) or ""
    return agent, model, dataset_of(result) or ""


def _group(key: tuple[str, str, str], members: Sequence[_Seen]) -> Group:
    results = [each.result for each in members]
    return Group(
        *key,
        part=_part(members),
        thresholds=tuple(sorted({each.threshold for each in results})),
        attempts=attempts(results),
        identity=identity(results),
    )


def _part(members: Sequence[_Seen]) -> Part:
    structural = Counter(each.structural.code for each in members if each.structural is not None)
    return Part(
        sums=totals(each.result for each in members),
        structural=dict(sorted(structural.items(), key=lambda each: (-each[1], each[0]))),
        calls=call_stats((each.result, each.calls) for each in members),
    )


def _excluded(result: EpisodeResult) -> Excluded:
    reason = head_and_tail(clean(why(result)), _LONGEST_WHY)
    return Excluded(result.episode, result.key, result.outcome.value, reason)


def summary(job: str, found: Numbers) -> dict[str, Any]:
    """``summary.json`` as plain data; docs/usage.md tells its keys."""
    return {
        "schema_version": SCHEMA_VERSION,
        "job": job,
        "totals": _plain_part(found.whole),
        "groups": [_plain_group(each) for each in found.groups],
        "excluded": [asdict(each) for each in found.excluded],
    }


def _plain_group(group: Group) -> dict[str, Any]:
    return {
        "agent": group.agent,
        "model": group.model or None,
        "dataset": group.dataset or None,
        **_plain_part(group.part),
        "thresholds": list(group.thresholds),
        "attempts": _plain_attempts(group.attempts),
        "identity": asdict(group.identity),
    }


def _plain_part(part: Part) -> dict[str, Any]:
    sums = part.sums
    return {
        "episodes": sums.episodes,
        "tasks": sums.tasks,
        "resolved": sums.resolved,
        "valid": sums.valid,
        "excluded": {outcome.value: n for outcome, n in sums.excluded.items()},
        "outcomes": {outcome.value: n for outcome, n in sums.outcomes.items()},
        "structural_zeros": dict(part.structural),
        "resolve_rate": sums.resolve_rate,
        "resolve_rate_interval": sums.interval,
        "mean_reward_valid": sums.mean_over_valid,
        "mean_reward_all": sums.mean_over_all,
        "seconds": sums.seconds,
        "cost_usd": sums.cost_usd,
        "cost_known": sums.cost_known,
        "tokens": sums.tokens,
        "parties": {party: asdict(each) for party, each in sums.parties.items()},
        "user_calls": asdict(part.calls) if part.calls is not None else None,
    }


def _plain_attempts(tried: Attempts) -> dict[str, Any]:
    return {
        "episodes": tried.episodes,
        "graded": tried.graded,
        "by_k": [
            {
                "k": each.k,
                "tasks": each.tasks,
                "left_out": each.left_out,
                **_plain_share("pass_at_k", each.pass_at),
                **_plain_share("pass_hat_k", each.pass_hat),
            }
            for each in tried.by_k
        ],
        "by_task": [asdict(each) for each in tried.series],
    }


def _plain_share(name: str, share: Share) -> dict[str, Any]:
    return {name: share.value, f"{name}_interval": [share.low, share.high]}
