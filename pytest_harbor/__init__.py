"""Agent benchmarks as pytest tests; usable without pytest through the names below.

Importing this package costs nothing: each public name is loaded where it is first used.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_harbor.episode.result import EpisodeResult
    from pytest_harbor.episode.run import run_episode
    from pytest_harbor.task.load import Task, load_task

__all__ = ["EpisodeResult", "Task", "load_task", "run_episode"]

_HOME = {
    "EpisodeResult": "pytest_harbor.episode.result",
    "Task": "pytest_harbor.task.load",
    "load_task": "pytest_harbor.task.load",
    "run_episode": "pytest_harbor.episode.run",
}


def __getattr__(name: str) -> Any:
    """Load a public name from its home at first use (PEP 562)."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOME[name]), name)
