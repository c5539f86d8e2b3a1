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
