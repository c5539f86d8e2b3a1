"""Task folders to test items: ``datasets/x/task-1/task.toml::task-1[param]``.

Reads task.toml and nothing else, imports nothing heavy, starts nothing. A broken task becomes an
item like any other and fails when it is set up: its dataset runs, and its name is on the screen.
"""

from __future__ import annotations

import gc
import hashlib
import os
import re
import types
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_harbor import items, options
from pytest_harbor.errors import RecipeError
from pytest_harbor.guard import TASK_FILE, is_run_folder, is_task, leads_into_untrusted
from pytest_harbor.ignoring import asked_to_ignore
from pytest_harbor.items import FoundTask, TaskFunction
from pytest_harbor.recipe import FILE_NAME, stack
from pytest_harbor.task.outline import read_outline

if TYPE_CHECKING:
    import pluggy

_BODY = "run_task"
"""The one attribute of a task's synthetic module, whatever the task is called: a task named
``pytestmark`` or ``setup_module`` must not mean something to pytest."""
_UNSAFE = re.compile(r"[\[\]\\\x00-\x1f\x7f]|::")


class HarborWarning(pytest.PytestWarning):
    """Something about a dataset that is probably not meant."""


class TaskDir(pytest.File):
    """A task folder.

    Not a :class:`pytest.Directory`, for pytest imports the conftest.py of those. Its hooks, and
    those of all below it, are the ones of the folder that holds it.
    """

    @cached_property
    def ihook(self) -> pluggy.HookRelay:
        """The hooks of the dataset's conftest.py files; pytest knows none for this folder."""
        return _hooks_above(self)

    def collect(self) -> Iterable[TaskFile]:
        """Find the one thing in it that pytest may look at."""
        _warn_about_recipe(self)
        safe = safe_path(self.path, self.config.rootpath)
        refusal = (
            f"{str(self.path)!r} cannot be part of a test's name: pytest could not be told to run "
            "it. Rename the folder without '[', ']', '::', backslashes, control characters and "
            "bytes that are not UTF-8"
        )
        yield TaskFile.from_parent(
            self,
            path=safe / TASK_FILE,
            name=TASK_FILE,
            refusal=None if safe is self.path else refusal,
        )


class TaskFile(pytest.Module):
    """The task.toml of a task: what makes items of it, as a module makes items of its functions."""

    def __init__(self, *, refusal: str | None, **rest: Any) -> None:
        super().__init__(**rest)
        assert isinstance(self.parent, TaskDir)
        folder = self.parent.path
        name, file = (
            (folder.name, self.path)
            if refusal is None
            else (self.path.parent.name, folder / TASK_FILE)
        )
        self.task = FoundTask(folder, name, read_outline(file), refusal)

    @property
    def ihook(self) -> pluggy.HookRelay:
        """The hooks of the dataset's conftest.py files."""
        return _hooks_above(self)

    def collect(self) -> Iterable[pytest.Item | pytest.Collector]:
        """Make the items, marked with what the task says of itself."""
        outline = self.task.outline
        facts: dict[str, Any] = {"steps": len(outline.steps) or 1, **outline.metadata}
        self.add_marker(pytest.mark.harbor(**facts))
        self.extra_keyword_matches.update(outline.tags)
        # There is one test in this module and no fixture: no need to look through it.
        made = self.ihook.pytest_pycollect_makeitem(collector=self, name=_BODY, obj=items.run_task)
        return [self._named_after_the_task(item) for item in made]

    def _named_after_the_task(self, item: pytest.Function) -> TaskFunction:
        name = self.task.name
        return TaskFunction.from_parent(
            self,
            name=f"{name}{item.name.removeprefix(_BODY)}",
            originalname=name,
            callobj=items.run_task,
            callspec=getattr(item, "callspec", None),
            fixtureinfo=item._fixtureinfo,
            task=self.task,
        )

    def _getobj(self) -> types.ModuleType:
        """Stand in for the import of a module."""
        module = types.ModuleType(items.__name__)
        module.__file__ = str(self.path)
        setattr(module, _BODY, items.run_task)
        return module

    def funcnamefilter(self, name: str) -> bool:
        """Take the body for a test, whatever names ``python_functions`` asks for."""
        return name == _BODY

    def classnamefilter(self, name: str) -> bool:  # noqa: ARG002
        """Find no test classes."""
        return False


def _hooks_above(node: pytest.Collector | pytest.Item) -> pluggy.HookRelay:
    assert node.parent is not None
    return node.parent.ihook


def _warn_about_recipe(node: TaskDir) -> None:
    if os.path.exists(f"{node.path}/{FILE_NAME}"):  # noqa: PTH110 (asked for every task)
        node.warn(
            HarborWarning(
                f"{node.path / FILE_NAME} is ignored: a task may not say how it is run. "
                f"Move it to {node.path.parent} if you trust it"
            )
        )


def safe_path(folder: Path, rootpath: Path) -> Path:
    """Make a folder's path one whose node id pytest accepts as an argument; equal if it was one.

    What had to be replaced is told apart by a few digits of a hash: ``a[1]`` and ``a_1_`` may
    both be there. Above the rootdir nothing is part of a node id.
    """
    if _safe_part(str(folder)) == str(folder):
        return folder
    if not folder.is_relative_to(rootpath):
        return folder.with_name(_safe_part(folder.name))
    return rootpath.joinpath(*map(_safe_part, folder.relative_to(rootpath).parts))


def _safe_part(name: str) -> str:
    if name.isascii() and not _UNSAFE.search(name):
        return name
    encoded = name.encode("utf-8", "surrogateescape")
    safe = _UNSAFE.sub("_", encoded.decode("utf-8", "replace").replace("\ufffd", "_"))
    return safe if safe == name else f"{safe}-{hashlib.sha256(encoded).hexdigest()[:6]}"


def make_collector(path: Path, parent: pytest.Collector) -> TaskDir | None:
    """Take a task folder out of pytest's hands; None for any other folder."""
    return TaskDir.from_parent(parent, path=path, name=path.name) if is_task(path) else None


@contextmanager
def undisturbed() -> Iterator[None]:
    """Pause garbage collection while items are made: they all stay, and looking takes long."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def settle_ignored(path: Path, config: pytest.Config) -> bool | None:
    """Whether to skip a path while pytest walks through folders; None: pytest may say."""
    if is_task(path):
        return asked_to_ignore(path, config)
    if is_run_folder(path):
        return True
    folder = leads_into_untrusted(path)
    if folder is None:
        return None
    warning = HarborWarning(f"{path} is skipped: it leads into {folder}, which is not run")
    warnings.warn_explicit(warning, None, filename=str(path), lineno=1)
    return True


def repeat_attempts(metafunc: pytest.Metafunc) -> None:
    """Make one item per attempt, where more than one is wanted."""
    if "harbor_attempt" not in metafunc.fixturenames:
        return
    count = _attempts(metafunc.config, metafunc.definition.parent)
    if count > 1:
        numbers = range(1, count + 1)
        names = [f"attempt{number}" for number in numbers]
        metafunc.parametrize("harbor_attempt", numbers, indirect=True, ids=names)


_ATTEMPTS = pytest.StashKey[dict[str, int]]()


def _attempts(config: pytest.Config, parent: object) -> int:
    """How many attempts the recipe of a dataset asks for; asked once for each dataset."""
    folder = parent.task.folder if isinstance(parent, TaskFile) else None
    dataset = os.path.dirname(folder) if folder else ""  # noqa: PTH120 (asked for every task)
    known = config.stash.setdefault(_ATTEMPTS, {})
    if dataset not in known:
        known[dataset] = _read_attempts(config, folder)
    return known[dataset]


def _read_attempts(config: pytest.Config, folder: Path | None) -> int:
    try:
        layers = options.recipe_layers(config, folder) if folder else options.setting_layers(config)
    except RecipeError:  # each of its tasks says so when it is set up
        return 1
    asked = stack(layers).values.get("attempts", 1)
    return asked if isinstance(asked, int) else 1


def order(collected: list[pytest.Item]) -> None:
    """Undo what pytest's grouping by parameters does to tasks: items of one task stay together.

    pytest moves items that share a parameter of a session-wide fixture next to each other, so that
    all tasks of the first model would run before any of the second. Where such a fixture is the
    user's own (a model server, perhaps, that is slow to start), pytest's order stays.
    """
    tasks: dict[pytest.Collector | None, list[pytest.Item]] = {}
    for item in collected:
        if isinstance(item, TaskFunction):
            if not item.has_only_our_parameters:
                return
            tasks.setdefault(item.parent, []).append(item)
    if tasks:
        collected[:] = list(_grouped(collected, tasks))


def _grouped(
    collected: list[pytest.Item], tasks: dict[Any, list[pytest.Item]]
) -> Iterator[pytest.Item]:
    for item in collected:
        if isinstance(item, TaskFunction):
            yield from tasks.pop(item.parent, ())
        else:
            yield item
