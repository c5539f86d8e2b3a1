"""Who may call: episodes with their budgets and ledgers, and the secret doors of their parties."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from pytest_harbor.gateway import budgets
from pytest_harbor.gateway.budgets import Spent
from pytest_harbor.gateway.ledger import Call, Ledger
from pytest_harbor.gateway.limits import Spending
from pytest_harbor.gateway.model_server import UNLIMITED, Budget, ModelServer, Prices, ProviderName
from pytest_harbor.gateway.providers import Provider, Recorder
from pytest_harbor.gateway.relay_log import RelayLog
from pytest_harbor.gateway.wires.base import Tool

DUMMY_KEY: Final = "pytest-harbor"
"""What a client may send as its key. The address is the secret; the key is not looked at."""


@dataclass(frozen=True)
class Access:
    """What a party gets to know: where its model is."""

    base_url: str
    secret: str = field(repr=False)
    token: str = DUMMY_KEY

    @property
    def url(self) -> str:
        """The address without a version, for clients that add one; those that add two are fine."""
        return f"{self.base_url}/{self.secret}"

    @property
    def v1(self) -> str:
        """The address with its version, for clients that add none."""
        return f"{self.url}/v1"

    def at(self, base_url: str) -> Access:
        """The same door by another address that the gateway listens at."""
        return replace(self, base_url=base_url)


@dataclass(frozen=True)
class Terms:
    """What holds for an episode's calls."""

    ledger: Path | None = None
    """The file that calls are appended to; None keeps them in memory only."""
    relay_log: Path | None = None
    """The same for requests to MCP servers."""
    prices: Prices = field(default_factory=dict)
    budget: Budget = UNLIMITED
    run_budget: Budget | None = None
    """What all episodes may spend together, as this episode's recipe has it; None: as the gateway
    was told."""
    recording: str | None = None
    """The episode's name in a recording; None: as the episode is called."""
    recorded: bool = True
    """Whether its calls are part of a recording that is being made."""


@dataclass
class Account:
    """One episode's standing. Its tasks are touched in the gateway's thread only."""

    episode: str
    terms: Terms
    ledger: Ledger
    relay_log: RelayLog
    run: Spending
    run_budget: Budget
    try_number: int = 1
    step: str | None = None
    is_open: bool = True
    refused: int = 0
    spending: Spending = field(default_factory=Spending)
    tasks: set[asyncio.Task[None]] = field(default_factory=set)
    players: dict[tuple[str, str], Provider] = field(default_factory=dict)
    """Providers that remember where a party is, by party and server."""
    recorders: dict[str, Recorder] = field(default_factory=dict)
    offered: dict[tuple[str, int, str | None], dict[str, Tool]] = field(default_factory=dict)
    """Tools that models were offered, by name; by party, try and step."""

    @property
    def recording(self) -> str:
        """The episode's name in a recording."""
        return self.terms.recording or self.episode

    def spent(self) -> Spent | None:
        """The budget that is used up, the episode's own before the run's; None if there is none."""
        found = budgets.check("episode", self.terms.budget, *self.spending.total())
        if found is None and self.run_budget != UNLIMITED:
            found = budgets.check("run", self.run_budget, *self.run.total())
        return None if found is None else replace(found, refused=self.refused)

    def offer(self, party: str, tools: Iterable[Tool]) -> None:
        """Remember what a request offers to its model."""
        known = self.offered.setdefault((party, self.try_number, self.step), {})
        known.update((tool.qualified, tool) for tool in tools)

    def enter(self, call: Call, tokens: tuple[Mapping[str, object], ...] = ()) -> None:
        """Enter a call that has ended, and count what it took."""
        used = 0 if call.usage is None else call.usage.input + call.usage.output
        if used or call.cost_usd:
            self.spending.add(call.cost_usd or 0.0, used)
            self.run.add(call.cost_usd or 0.0, used)
        self.ledger.add(call, tokens)


@dataclass(frozen=True)
class Door:
    """The way in for one party of an episode."""

    secret: str
    account: Account
    party: str
    server: ModelServer
    """As the recipe defines it, also where a recording answers for it."""
    kind: ProviderName
    provider: Provider
    recorder: Recorder | None = None


def new_secret() -> str:
    """An address that nobody guesses."""
    return secrets.token_urlsafe(24)
