"""How recipe keys are written: dotted, and in some tables with names of the operator's choice.

``timeouts.agent.cap`` is known as it stands. ``compose_variables.SIM_USER_MODEL`` stands in a free
table: its entries are values under any name. ``model_servers.judge.base_url`` stands in a table of
named tables: any name, but known keys in it. A name may hold dots: ``prices.gpt-5.5.input``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

FREE_TABLES: Final = (
    "agent.env",
    "agent.options",
    "compose_variables",
    "sandbox.options",
    "verifier.env",
)
NAMED_TABLES: Final = ("model_servers", "prices")
NAME: Final = "<name>"
"""Stands for a name of the operator's choice in a general key."""

_NAMED_PARTS: Final = 3


def free_table(key: str) -> str | None:
    """The free table that a key is an entry of."""
    return next((table for table in FREE_TABLES if key.startswith(f"{table}.")), None)


def is_in_named_table(key: str) -> bool:
    """Whether a key stands in one table of a table of named tables."""
    return len(split(key)) == _NAMED_PARTS and key.startswith(NAMED_TABLES)


def split(key: str) -> tuple[str, ...]:
    """The parts of a key, a chosen name being one part whatever it holds."""
    if (table := free_table(key)) is not None:
        return (*table.split("."), key.removeprefix(f"{table}."))
    outer, _, rest = key.partition(".")
    name, _, field = rest.rpartition(".")
    return (outer, name, field) if outer in NAMED_TABLES and name else tuple(key.split("."))


def general(key: str) -> str:
    """The key with ``<name>`` in place of a name that stands in a table of named tables."""
    if not is_in_named_table(key):
        return key
    table, _, field = split(key)
    return f"{table}.{NAME}.{field}"


def is_value(parts: Sequence[str]) -> bool:
    """Whether what stands at a place is a value, even where it looks like a table."""
    if parts[0] in NAMED_TABLES:
        return len(parts) == _NAMED_PARTS
    return ".".join(parts[:-1]) in FREE_TABLES
