"""Budgets of an episode and of the run: which one is spent, if any."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pytest_harbor.gateway.model_server import Budget

Scope = Literal["episode", "run"]
Unit = Literal["USD", "tokens"]


@dataclass(frozen=True)
class Spent:
    """A budget that is used up."""

    scope: Scope
    unit: Unit
    limit: float
    used: float
    refused: int = 0
    """Calls of the episode that were refused because of it."""

    def __str__(self) -> str:
        """The budget in words, for the client and for the report."""
        limit, used = self._show(self.limit), self._show(self.used)
        return f"the {self.scope}'s budget of {limit} is spent: {used} used"

    def _show(self, amount: float) -> str:
        return f"{amount:.2f} USD" if self.unit == "USD" else f"{amount:,.0f} tokens"


def check(scope: Scope, budget: Budget, usd: float, tokens: int) -> Spent | None:
    """The first limit of a budget that is reached; None while there is something left."""
    if budget.usd is not None and usd >= budget.usd:
        return Spent(scope, "USD", budget.usd, usd)
    if budget.tokens is not None and tokens >= budget.tokens:
        return Spent(scope, "tokens", budget.tokens, tokens)
    return None
