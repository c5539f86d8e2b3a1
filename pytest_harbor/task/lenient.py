"""What a published ``task.toml`` may get wrong and still run, with a warning each.

Harbor ignores keys that it does not know and takes any number for a timeout (harbor-format 2;
sharp edge 22), so such files exist. :func:`tidy` takes these mistakes out before the models of
:mod:`pytest_harbor.task.schema` judge the rest, and says what it took out. Strict mode turns the
warnings into errors elsewhere.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from functools import cache
from typing import Any, get_args

from pydantic import BaseModel

from pytest_harbor.task import schema
from pytest_harbor.task.place import render
from pytest_harbor.task.values import Number

Keys = tuple[str | int, ...]


def tidy(raw: dict[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the file without its harmless mistakes, and a warning for each ("[agent] ...")."""
    found: list[tuple[Keys, str]] = []
    clean = _tidy_table(raw, schema.TaskConfig, (), found)
    return clean, tuple(f"{render(path, raw)}: {text}" for path, text in found)


def _tidy_table(
    raw: dict[str, Any], model: type[schema.Table], path: Keys, found: list[tuple[Keys, str]]
) -> dict[str, Any]:
    """Copy one table: known keys only, meaningless numbers dropped, tables below likewise."""
    clean: dict[str, Any] = {}
    for key, value in raw.items():
        here = (*path, key)
        if key in model.legacy_keys:
            clean[key] = value
        elif key not in model.model_fields:
            found.append((here, _unknown(key, model)))
        elif complaint := _meaningless(value, model.numbers.get(key)):
            found.append((here, complaint))
        else:
            clean[key] = _tidy_value(value, _table_of(model, key), here, found)
    if model is schema.EnvironmentConfig:
        found += _tidy_legacy_sizes(clean, path)
        found += _overruled_switch(clean, path)
    if model is schema.McpServer:
        found += _mcp_habits(clean, path)
    return clean


def _tidy_value(
    value: Any, model: type[schema.Table] | None, path: Keys, found: list[tuple[Keys, str]]
) -> Any:
    """Descend into a table or an array of tables; anything else is the model's to judge."""
    if model is None:
        return value
    if isinstance(value, dict):
        return _tidy_table(value, model, path, found)
    if isinstance(value, list):
        return [_tidy_value(item, model, (*path, i), found) for i, item in enumerate(value)]
    return value


def _meaningless(value: Any, kind: Number | None) -> str | None:
    """Say what is wrong with a number that Harbor takes and nobody can mean."""
    if kind is None:
        return None
    if isinstance(value, bool):
        return f"is {str(value).lower()}, not a number; it counts as unset"
    if not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    if kind.accepts(number):
        return None
    return f"is {value}, not {kind.value}; it counts as unset"


def _tidy_legacy_sizes(clean: dict[str, Any], path: Keys) -> Iterator[tuple[Keys, str]]:
    """Read ``memory = 2048`` as MB; Harbor loses it without a word (harbor-format 2.5)."""
    for old in ("memory", "storage"):
        value = clean.get(old)
        if value is None or isinstance(value, str):
            continue
        del clean[old]
        new = f"{old}_mb"
        if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
            yield (*path, old), f"cannot be read as a size and is ignored; write {new} = 2048"
        elif new in clean:
            yield (*path, old), f"is ignored beside {new} = {clean[new]}; remove {old}"
        else:
            clean[new] = value
            yield (*path, old), f"is read as {value} MB; write {new} = {value}"


def _overruled_switch(clean: dict[str, Any], path: Keys) -> Iterator[tuple[Keys, str]]:
    """Name an ``allow_internet`` that today's key contradicts, and so overrules."""
    says, mode = clean.get("allow_internet"), clean.get("network_mode")
    if isinstance(says, bool) and mode is not None and says is not (mode != "no-network"):
        text = str(says).lower()
        yield (*path, "allow_internet"), f"is {text}, but network_mode is {mode!r}, which counts"


def _mcp_habits(clean: dict[str, Any], path: Keys) -> Iterator[tuple[Keys, str]]:
    """Name what is legal for an MCP server and bites later (harbor-format 8, sharp edge 45)."""
    if "transport" not in clean and "command" in clean and "url" not in clean:
        return  # refused by the model, which asks for the transport
    if "transport" not in clean:
        yield (
            (*path, "transport"),
            'is not declared, so the legacy "sse" counts; declare "sse" or "streamable-http"',
        )
    if "${" in str(clean.get("url", "")):
        yield (*path, "url"), "holds ${...}, which is not resolved in a URL; write the address"


def _unknown(key: str, model: type[schema.Table]) -> str:
    """Say that a key is unknown, and what may have been meant."""
    near = _closest(key, _known(model))
    if near is not None:
        return f"unknown key, ignored; did you mean {near!r}?"
    homes = sorted(name for name, table in _tables() if key in _known(table) and table is not model)
    if homes:
        return f"unknown key here, ignored; {key!r} belongs {' or '.join(homes)}"
    return "unknown key, ignored; remove it, or keep it in [metadata]"


def _closest(key: str, known: frozenset[str]) -> str | None:
    folded = {name.casefold(): name for name in sorted(known)}
    plain = key.casefold().replace("-", "_")
    near = difflib.get_close_matches(plain, folded, n=1, cutoff=0.7)
    return folded[near[0]] if near else None


def _known(model: type[schema.Table]) -> frozenset[str]:
    return frozenset(model.model_fields) - model.legacy_keys


@cache
def _table_of(model: type[schema.Table], key: str) -> type[schema.Table] | None:
    """Find the model of the table, or of the tables, that stand under a key."""
    return next(_tables_in(model.model_fields[key].annotation), None)


def _tables_in(annotation: Any) -> Iterator[type[schema.Table]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation  # type: ignore[misc]
    for inner in get_args(annotation):
        yield from _tables_in(inner)


@cache
def _tables() -> tuple[tuple[str, type[schema.Table]], ...]:
    """List where a misplaced key may belong: "in [agent]"."""
    return (
        ("at the top of the file, before the first [table]", schema.TaskConfig),
        ("in [task]", schema.PackageConfig),
        ("in [agent]", schema.AgentConfig),
        ("in [verifier]", schema.VerifierConfig),
        ("in [environment]", schema.EnvironmentConfig),
        ("in [[environment.mcp_servers]]", schema.McpServer),
        ("in [environment.healthcheck]", schema.Healthcheck),
        ("in [[steps]]", schema.StepConfig),
        ("in [[verifier.collect]]", schema.CollectHook),
    )
