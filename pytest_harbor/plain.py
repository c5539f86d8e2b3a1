"""Anything to plain JSON data: the one door through which data leaves for another process.

A report that holds a path, a date or a lone surrogate stops a whole pytest-xdist run, sometimes
with exit status 0. What goes on a report goes through :func:`plain` first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from datetime import date, time, timedelta
from enum import Enum
from typing import TypeAlias

Plain: TypeAlias = "str | int | float | bool | list[Plain] | dict[str, Plain] | None"

DEEPEST = 60
"""Levels of nesting that are kept; below, and in data that contains itself, stands TOO_DEEP."""
TOO_DEEP = "(nested too deeply)"
_LARGEST = 2**63
"""Integers beyond it become text: not every reader of JSON can hold them."""
_SMALLEST = -(2**31)
"""execnet, which carries data for xdist, fails at negative integers below it; floats it takes."""
_EXACT = 2**53
"""Up to here, a float holds every integer."""


def plain(value: object) -> Plain:
    """Turn any value into JSON data of exact built-in types and valid UTF-8. Never raises.

    Infinity and NaN, which JSON has no words for, become None; what is no data becomes its text.
    """
    return _plain(value, DEEPEST)


def plain_text(value: object) -> str:
    """Turn any value into text that every encoder takes; half a surrogate pair becomes ``?``."""
    try:
        text = value if isinstance(value, str) else str(value)
        return text.encode("utf-8", "replace").decode("utf-8")
    except Exception:
        return f"({type(value).__name__} that cannot be shown)"


def _plain(value: object, levels: int) -> Plain:
    if value is None or value is True or value is False:
        return value
    if isinstance(value, str) and not isinstance(value, Enum):
        return plain_text(value)
    if levels == 0:
        return TOO_DEEP
    try:
        return _number(value) if isinstance(value, int | float) else _other(value, levels - 1)
    except Exception:
        return plain_text(value)


def _number(value: float) -> Plain:
    if isinstance(value, Enum):
        return _plain(value.value, 1)
    if not isinstance(value, int):
        return float(value) if math.isfinite(value) else None
    if _SMALLEST <= value < _LARGEST:
        return int(value)
    return float(value) if abs(value) <= _EXACT else str(int(value))


def _other(value: object, levels: int) -> Plain:
    if isinstance(value, Enum):
        return _plain(value.value, levels)
    if isinstance(value, Mapping):
        return {plain_text(key): _plain(entry, levels) for key, entry in value.items()}
    if isinstance(value, list | tuple | AbstractSet):
        return [_plain(entry, levels) for entry in value]
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, bytes | bytearray):
        return bytes(value).decode("utf-8", "replace")
    dump = getattr(value, "model_dump", None)
    if dump is not None and not isinstance(value, type):
        return _plain(dump(mode="json"), levels)
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: _plain(getattr(value, each.name), levels) for each in fields(value)}
    return plain_text(value)
