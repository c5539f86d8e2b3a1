"""Which task folders the user asked pytest to leave out, and which it would only think so.

pytest skips folders called ``build``, ``dist`` or ``.x`` and those that look like a virtual
environment; a task may be called or look so. What the user asked for holds for tasks, too: the
options ``--ignore`` and ``--ignore-glob``, ``collect_ignore`` in a conftest.py, and patterns in
``norecursedirs`` that are not pytest's own.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

import pytest

_PYTESTS_OWN = {"*.egg", ".*", "_darcs", "build", "CVS", "dist", "node_modules", "venv", "{arch}"}


@dataclass(frozen=True)
class Wishes:
    """What is to be left out, as far as it was known when so many plugins were registered."""

    plugins: int
    paths: frozenset[str]
    globs: tuple[str, ...]
    names: tuple[str, ...]


_WISHES = pytest.StashKey[Wishes]()


def asked_to_ignore(folder: Path, config: pytest.Config) -> bool:
    """Whether the user asked to leave out a folder that is a task."""
    plugins = config.pluginmanager.get_plugins()
    wishes = config.stash.get(_WISHES, None)
    if wishes is None or wishes.plugins != len(plugins):  # a conftest.py came with the last folder
        wishes = config.stash[_WISHES] = _read_wishes(config, plugins)
    text = str(folder)
    return (
        text in wishes.paths
        or any(fnmatch(text, pattern) for pattern in wishes.globs)
        or any(fnmatch(folder.name, pattern) for pattern in wishes.names)
    )


def _read_wishes(config: pytest.Config, plugins: Iterable[object]) -> Wishes:
    here = config.invocation_params.dir
    plugins = list(plugins)
    own = [each for each in config.getini("norecursedirs") if each not in _PYTESTS_OWN]
    paths = [_absolute(here, each) for each in config.getoption("ignore") or ()]
    globs = [_absolute(here, each) for each in config.getoption("ignore_glob") or ()]
    return Wishes(
        plugins=len(plugins),
        paths=frozenset([*paths, *_of_conftests(plugins, "collect_ignore")]),
        globs=(
            *globs,
            *_of_conftests(plugins, "collect_ignore_glob"),
            *(f"*/{pattern}" for pattern in own if "/" in pattern),
        ),
        names=tuple(pattern for pattern in own if "/" not in pattern),
    )


def _of_conftests(plugins: Iterable[object], name: str) -> Iterator[str]:
    for plugin in plugins:
        file = getattr(plugin, "__file__", None)
        if file is not None and os.path.basename(file) == "conftest.py":  # noqa: PTH119 (a str)
            for path in getattr(plugin, name, ()):
                yield _absolute(Path(file).parent, path)


def _absolute(folder: Path, path: str | os.PathLike[str]) -> str:
    return os.path.abspath(folder / path)  # noqa: PTH100 (links stay what they are called)
