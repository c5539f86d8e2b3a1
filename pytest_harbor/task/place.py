"""Where in a ``task.toml`` a value stands, written as the author would look for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def render(path: Sequence[str | int], raw: Any) -> str:
    """Write a path of keys and indexes as tables and key.

    ``("steps", 0, "agent", "timeout_sec")`` becomes ``[[steps]] plan [agent] timeout_sec``:
    an entry of an array of tables goes by its name in ``raw`` (the parsed file), else by number.
    """
    words: list[str] = []
    table: list[str] = []
    value = raw
    for part in path:
        value = _child(value, part)
        if isinstance(part, int):
            if isinstance(value, dict):
                words.append(f"[[{'.'.join(table)}]]")
            else:
                words += [f"[{'.'.join(table[:-1])}]"] * (len(table) > 1) + table[-1:]
            words.append(_label(value, part))
            table = []
        else:
            table.append(part)
    if table:
        if isinstance(value, dict):
            words.append(f"[{'.'.join(table)}]")
        else:
            words += [f"[{'.'.join(table[:-1])}]"] * (len(table) > 1) + table[-1:]
    return " ".join(words)


def _child(value: Any, part: str | int) -> Any:
    if isinstance(value, dict) and isinstance(part, str):
        return value.get(part)
    if isinstance(value, list) and isinstance(part, int) and part < len(value):
        return value[part]
    return None


def _label(value: Any, index: int) -> str:
    """Name an entry of an array: by its ``name`` where that is a plain text."""
    name = value.get("name") if isinstance(value, dict) else None
    if isinstance(name, str) and name.strip() and len(name) <= 80:
        return name
    return f"#{index + 1}"
