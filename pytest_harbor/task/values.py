"""How single values of a ``task.toml`` are read, where that takes more than a type.

Each reader returns the settled value or raises ValueError with what was expected.
"""

from __future__ import annotations

import math
import re
from enum import Enum
from typing import Any

_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([GMK])\s*", re.IGNORECASE)
_PER_MB = {"G": 1024.0, "M": 1.0, "K": 1 / 1024}


class Number(Enum):
    """What a number must be to mean anything; others count as unset, with a warning."""

    SECONDS = "a number of seconds above 0"
    PAUSE = "a number of seconds, 0 or more"
    AMOUNT = "a number above 0"
    COUNT = "a number, 0 or more"

    def accepts(self, value: float) -> bool:
        """Whether ``value`` means something."""
        if not math.isfinite(value):
            # An infinite amount is for the model to refuse, as Harbor does.
            return self in (Number.AMOUNT, Number.COUNT)
        return value > 0 or (value == 0 and self in (Number.PAUSE, Number.COUNT))


def user(value: object) -> str | int | None:
    """Accept a user as Docker does: a name, or a number that is not a boolean."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise ValueError(f"must be a user name in quotes or a user id, is {value!r}")


def number(value: object) -> float:
    """Read a number as Harbor does: numeric strings count (harbor-format 2)."""
    try:
        read = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"must be a number, is {value!r}") from None
    if math.isnan(read):
        raise ValueError("must be a number, is nan")
    return read


def min_reward(value: object) -> float | dict[str, float] | None:
    """Accept a gate: a number for the key ``reward``, or a table of numbers by key."""
    if value is None:
        return None
    if isinstance(value, dict):
        return {str(key): number(inner) for key, inner in value.items()}
    return number(value)


def artifact(value: object) -> object:
    """Accept the short form of an artifact, its source alone (harbor-format 2.8)."""
    return {"source": value} if isinstance(value, str) else value


def migrate_size(raw: dict[str, Any], old: str) -> None:
    """Turn ``memory = "2G"`` into ``memory_mb = 2048`` (and ``storage``) in place."""
    new, text = f"{old}_mb", str(raw.pop(old))
    match = _SIZE.fullmatch(text)
    if match is None:
        raise ValueError(f"{old} = {text!r} is not a number with G, M or K; write {new} = ...")
    size = int(float(match[1]) * _PER_MB[match[2].upper()])
    if new in raw and number(raw[new]) != size:
        raise ValueError(f"{old} = {text!r} contradicts {new} = {raw[new]}; remove {old}")
    raw[new] = size
