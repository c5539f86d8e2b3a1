"""Who asked how much of a model: agent, simulated user, judge, each with its own cost."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pytest_harbor.episode.result import EpisodeResult, PartyRecord
from pytest_harbor.report.text import count, money, number_of

_ORDER = ("agent", "user", "judge")


@dataclass(frozen=True)
class PartySums:
    """What a party's model calls come to, over some episodes."""

    episodes: int
    calls: int
    failed: int
    retries: int
    tokens: int
    cost_usd: float | None
    """What is known of it; None when nothing is."""
    cost_known: int
    """Of how many episodes the cost is known."""
    models: tuple[str, ...]

    def __str__(self) -> str:
        """The sums in words."""
        cost = money(self.cost_usd)
        if self.cost_usd is None:
            cost = "cost unknown"
        elif self.cost_known < self.episodes:
            cost += f" (known of {self.cost_known})"
        return f"{_calls(self.calls, self.failed)}, {count(self.tokens)} tokens, {cost}"


def party_sums(results: Iterable[EpisodeResult]) -> dict[str, PartySums]:
    """The sums by party, the agent first; tries that were given up cost, too (B112)."""
    found: dict[str, list[PartyRecord]] = {}
    for result in results:
        for party, record in result.parties.items():
            found.setdefault(party, []).append(record)
    return {party: _sums(found[party]) for party in sorted(found, key=_rank)}


def party_items(parties: Mapping[str, PartyRecord]) -> tuple[str, ...]:
    """A line for each party of an episode or a step."""
    return tuple(_item(party, parties[party]) for party in sorted(parties, key=_rank))


def _rank(party: str) -> tuple[int, str]:
    return (_ORDER.index(party) if party in _ORDER else len(_ORDER), party)


def _sums(records: list[PartyRecord]) -> PartySums:
    costs = [each.cost_usd for each in records if each.cost_usd is not None]
    models = (model for each in records for model in each.models)
    return PartySums(
        episodes=len(records),
        calls=sum(each.calls for each in records),
        failed=sum(each.failed for each in records),
        retries=sum(each.retries for each in records),
        tokens=sum(each.tokens for each in records),
        cost_usd=math.fsum(costs) if costs else None,
        cost_known=len(costs),
        models=tuple(dict.fromkeys(models)),
    )


def _item(party: str, record: PartyRecord) -> str:
    cached = f" ({count(record.cached_tokens)} cached)" if record.cached_tokens else ""
    counted = f"{count(record.input_tokens)}{cached} + {count(record.output_tokens)} tokens"
    cost = money(record.cost_usd) if record.cost_usd is not None else "cost unknown"
    models = f", {', '.join(record.models)}" if record.models else ""
    notes = f"; {'; '.join(record.notes)}" if record.notes else ""
    return f"{party}: {_calls(record.calls, record.failed)}, {counted}, {cost}{models}{notes}"


def _calls(calls: int, failed: int) -> str:
    return number_of(calls, "call") + (f" ({failed} failed)" if failed else "")
