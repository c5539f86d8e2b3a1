"""What a call costs, by the recipe's price table."""

from __future__ import annotations

import re
from typing import Final

from pytest_harbor.gateway.model_server import Price, Prices
from pytest_harbor.gateway.wires.base import Usage

_MILLION: Final = 1_000_000
_DATED: Final = re.compile(r"-(?:latest|\d{4}-?\d{2}-?\d{2})$")


def find_price(prices: Prices, *models: str | None) -> Price | None:
    """The price of the first model name that the table knows.

    Names count as they are, then without what providers put around them: a date behind
    (``-2026-04-01``, ``-latest``), a family in front (``openai/``).
    """
    for model in models:
        for name in _spellings(model or ""):
            if name in prices:
                return prices[name]
    return None


def _spellings(model: str) -> list[str]:
    undated = _DATED.sub("", model)
    short = [name.rpartition("/")[2] for name in (model, undated)]
    return list(dict.fromkeys((model, undated, *short)))


def cost(usage: Usage, price: Price) -> float:
    """The cost of a call in USD."""
    fresh = max(0, usage.input - usage.cached - usage.written)
    cached = price.input if price.cached is None else price.cached
    written = price.input if price.written is None else price.written
    total = (
        fresh * price.input
        + usage.cached * cached
        + usage.written * written
        + usage.output * price.output
    )
    return total / _MILLION
