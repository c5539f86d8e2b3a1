"""The little of a ``task.toml`` that collection needs, read fast and without ever raising.

Thousands of tasks are collected in seconds: one read and one parse each, the standard library
alone. Whether the task is in order is found out when it is loaded (:mod:`pytest_harbor.task.load`).
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_harbor.errors import TaskError
from pytest_harbor.task.timeouts import DEFAULTS
from pytest_harbor.task.toml import parse_toml

Scalar = str | int | float | bool


@dataclass(frozen=True)
class Outline:
    """What is known of a task before it is loaded."""

    name_hint: str
    """``[task].name``, else the folder's name."""
    steps: tuple[str, ...] = ()
    """Names of the declared steps; empty for a single-step task."""
    metadata: Mapping[str, Scalar] = field(default_factory=dict)
    """Scalars of ``[metadata]``, hyphens in keys as underscores, and ``tag_<slug>`` per tag."""
    tags: tuple[str, ...] = ()
    """As written."""
    timeout_hint: float | None = None
    """Seconds that agent and verifier may take over all steps; None where there is no limit."""
    error: str | None = None
    """Why the file cannot be read, with line and column; then nothing else is known."""


def read_outline(path: Path) -> Outline:
    """Outline the task of a ``task.toml`` (or of the folder that holds it). Never raises."""
    folder = path.absolute().parent.name
    try:
        if path.is_dir():
            path, folder = path / "task.toml", path.absolute().name
        raw = parse_toml(path.read_bytes(), str(path))
        return _outline(raw, folder)
    except TaskError as error:
        return Outline(folder, error=str(error))
    except OSError as error:
        return Outline(folder, error=f"{path} cannot be read: {error.strerror}")
    except Exception as error:  # whatever a file holds, collection goes on
        return Outline(folder, error=f"{path} cannot be understood: {error!r}")


def _outline(raw: dict[str, Any], folder: str) -> Outline:
    name = _table(raw, "task").get("name")
    metadata = _table(raw, "metadata")
    tags = metadata.get("tags")
    tags = tuple(tag for tag in tags if isinstance(tag, str)) if isinstance(tags, list) else ()
    listed = raw.get("steps")
    steps: list[dict[str, Any]] = (
        [step for step in listed if isinstance(step, dict)] if isinstance(listed, list) else []
    )
    return Outline(
        name_hint=name if isinstance(name, str) and name else folder,
        steps=tuple(step["name"] for step in steps if isinstance(step.get("name"), str)),
        metadata=_scalars(metadata) | {f"tag_{slug}": True for slug in map(_slug, tags) if slug},
        tags=tags,
        timeout_hint=_timeout_hint(raw, steps or [{}]),
    )


def _scalars(metadata: dict[str, Any]) -> dict[str, Scalar]:
    """Keep what a mark can carry; dates and times become text.

    ``self`` is dropped: a mark's keyword arguments cannot have it.
    """
    kept: dict[str, Scalar] = {}
    for key, value in metadata.items():
        if isinstance(value, datetime.date | datetime.time):
            value = value.isoformat()
        if isinstance(value, Scalar) and key != "self":
            kept[key.replace("-", "_")] = value
    return kept


def _slug(tag: str) -> str:
    """Make an identifier of a tag, for ``-m "harbor(tag_...)"``."""
    return re.sub(r"\W+", "_", tag.casefold()).strip("_")


def _timeout_hint(raw: dict[str, Any], steps: list[dict[str, Any]]) -> float | None:
    """Add up what the steps may take, by the rules of :func:`timeouts.resolve`."""
    total = 0.0
    for step in steps:
        for phase in ("agent", "verifier"):
            own = _seconds(_table(step, phase)) or _seconds(_table(raw, phase))
            seconds = own or DEFAULTS[phase]
            if seconds is None:
                return None
            total += seconds
    return total


def _seconds(table: dict[str, Any]) -> float | None:
    """Return a timeout that means something."""
    value = table.get("timeout_sec")
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        seconds = float(value)
    except (ValueError, OverflowError):
        return None
    return seconds if math.isfinite(seconds) and seconds > 0 else None


def _table(raw: dict[str, Any], key: str) -> dict[str, Any]:
    value = raw.get(key)
    return value if isinstance(value, dict) else {}
