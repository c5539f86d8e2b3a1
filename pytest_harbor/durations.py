"""How long tasks take: what past runs measured, and what an unmeasured task may take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_harbor.guard import TASK_FILE
from pytest_harbor.task.outline import read_outline

if TYPE_CHECKING:
    import pytest

_CACHE = "harbor/durations"
_MARK = f"/{TASK_FILE}::"


def is_task_id(nodeid: str) -> bool:
    """Whether a node id is one of a task's items."""
    return _MARK in f"/{nodeid}"


def by_length(config: pytest.Config, nodeids: Sequence[str]) -> list[int]:
    """Positions of node ids, those first that will probably take longest.

    Tasks that were never measured lead, by the time that they may take (no limit: the longest of
    all); then those with a past duration; then ordinary tests.
    """
    past = _durations(config)

    def rank(position: int) -> tuple[int, float, int]:
        nodeid = nodeids[position]
        if not is_task_id(nodeid):
            return 2, 0.0, position
        if nodeid in past:
            return 1, -past[nodeid], position
        return 0, -_may_take(config.rootpath / nodeid.partition("::")[0]), position

    return sorted(range(len(nodeids)), key=rank)


@cache
def _may_take(task_file: Path) -> float:
    hint = read_outline(task_file).timeout_hint
    return float("inf") if hint is None else hint


def _durations(config: pytest.Config) -> Mapping[str, float]:
    store: pytest.Cache | None = getattr(config, "cache", None)
    known = store.get(_CACHE, {}) if store is not None else {}
    return {name: seconds for name, seconds in known.items() if isinstance(seconds, int | float)}


class DurationKeeper:
    """Remembers how long each episode took, for the next run."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._seconds: dict[str, float] = {}
        self._graded: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add up the phases of an item; its steps are in its call already."""
        episode: dict[str, Any] | None = getattr(report, "harbor_episode", None)
        if episode is None:
            return
        total = self._seconds.get(report.nodeid, 0.0) + report.duration
        self._seconds[report.nodeid] = round(total, 3)
        if episode.get("verdict") in ("passed", "failed"):
            self._graded.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        """Keep what was measured; an episode that broke says nothing about the next."""
        store: pytest.Cache | None = getattr(self._config, "cache", None)
        new = {name: self._seconds[name] for name in self._graded}
        if store is not None and new:
            store.set(_CACHE, {**_durations(self._config), **new})


def keep_durations(config: pytest.Config) -> None:
    """Measure in the process that sees all reports: not in a worker."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(DurationKeeper(config), "harbor-durations")
