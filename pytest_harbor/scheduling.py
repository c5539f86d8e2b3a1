"""Which worker gets which task when, under pytest-xdist: the longest first, one at a time.

xdist hands out tests in chunks, made for thousands of short ones. Episodes take minutes: what
counts is that none of the long ones starts last, or waits behind another. Where the user chose a
``--dist`` mode, or no task was collected, xdist's own ways hold. The scheduler itself is in
:mod:`pytest_harbor.longest_first`, which is imported only where xdist runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from xdist.scheduler import LoadScheduling  # type: ignore[import-untyped]

_LEFT_ALONE = pytest.StashKey[bool]()


def note_dist_mode(config: pytest.Config) -> None:
    """Remember whether ``--dist`` was given, before xdist replaces its absence by ``load``."""
    config.stash[_LEFT_ALONE] = getattr(config.known_args_namespace, "dist", "no") == "no"


def make_scheduler(config: pytest.Config, log: Any) -> LoadScheduling | None:
    """Our scheduler, where the user left the choice to us; else None."""
    if not config.stash.get(_LEFT_ALONE, False):
        return None
    from pytest_harbor.longest_first import LongestFirst

    return LongestFirst(config, log)


def give_up(sched: Any, nodeid: str) -> None:
    """Keep a scheduler of xdist from handing out a test again whose worker died in it.

    Those behind loadscope, loadfile and loadgroup do so although it is reported
    (pytest-xdist#1371), and wait for ever for units of work in which all is done.
    """
    units: Any = getattr(sched, "workqueue", None)
    if not isinstance(units, dict):
        return
    for scope, tests in list(units.items()):
        if nodeid in tests:
            tests[nodeid] = True
        if all(tests.values()):
            del units[scope]
