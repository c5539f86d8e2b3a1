"""A promise: pytest never runs or obeys a file inside a task folder, however it is named.

A dataset's conftest.py belongs to whoever runs the tests; what is in a task folder may come from
strangers, and what is in an episode's run folder, its artifacts, from an agent. pytest would import
a task's conftest.py when the task is named on the command line, a ``tests/`` folder when it walks
into it, a package's ``__init__.py`` when a dotted name leads there, and obey a task's pytest.ini.
Walking into these folders is prevented by collection; the rest is here.
"""

from __future__ import annotations

import glob
import importlib.abc
import importlib.machinery
import os
import sys
import types
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

TASK_FILE = "task.toml"


def is_task(folder: str | os.PathLike[str]) -> bool:
    """Whether a folder is a task: it has a task.toml, even one that cannot be read."""
    return os.path.lexists(f"{os.fspath(folder)}/{TASK_FILE}")


def is_run_folder(folder: str | os.PathLike[str]) -> bool:
    """Whether a folder is the run folder of an episode, of ours or of Harbor."""
    try:
        with open(f"{os.fspath(folder)}/result.json", "rb") as file:  # noqa: PTH123 (as above)
            return b'"trial_name"' in file.read(4096)
    except OSError:
        return False


def untrusted_around(path: Path) -> Path | None:
    """The outermost task or run folder that a path is or lies in, as written or behind links."""
    written = Path(os.path.abspath(path))  # noqa: PTH100 (links stay what they are called)
    behind = Path(os.path.realpath(path))
    for spelling in (written, behind):
        for folder in (*reversed(spelling.parents), spelling):
            if is_task(folder) or is_run_folder(folder):
                return folder
    return None


def _called(folder: Path) -> str:
    return f"the {'task' if is_task(folder) else 'run'} folder {folder}"


@contextmanager
def trusted_conftests(config: pytest.Config) -> Iterator[None]:
    """While pytest looks for initial conftest.py files, let it look only at trusted ones.

    pytest imports the conftest.py of every folder that is named, of the folders above, and of its
    ``test*`` children. Where one of them is inside a task, the trusted files are named instead.
    """
    namespace = config.known_args_namespace
    asked = namespace.file_or_dir
    namespace.file_or_dir = _anchors(config, _named(config)) or asked
    try:
        yield
    finally:
        namespace.file_or_dir = asked


def _named(config: pytest.Config) -> list[str]:
    """The paths that pytest looks at: those that are named and exist, else the working folder."""
    here = config.invocation_params.dir
    named = list(config.known_args_namespace.file_or_dir)
    if not named and here == config.rootpath:
        for pattern in config.getini("testpaths"):
            named += sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207 (as pytest does)
    return [name for name in named if _exists(_path_of(config, name))] or [str(here)]


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a word of the command line that is no path, but long
        return False


def _anchors(config: pytest.Config, arguments: list[str]) -> list[str]:
    """Arguments under which pytest finds the trusted conftest.py files; none: nothing to change."""
    changed = False
    anchors: list[str] = []
    for argument in arguments:
        path = _path_of(config, argument)
        task = untrusted_around(path)
        if task is not None:
            changed = True
            anchors += _conftest_above(task.parent)
        elif any(untrusted_around(child) for child in _test_folders(path)):
            changed = True
            trusted = [child for child in _test_folders(path) if untrusted_around(child) is None]
            anchors += _conftest_above(path)
            anchors += [str(c / "conftest.py") for c in trusted if (c / "conftest.py").is_file()]
        else:
            anchors.append(argument)
    # An anchor that exists in no folder of anybody's: with none, pytest takes the working folder.
    return (anchors or [os.devnull]) if changed else []


def _path_of(config: pytest.Config, argument: str) -> Path:
    return config.invocation_params.dir / argument.partition("::")[0]


def _test_folders(path: Path) -> list[Path]:
    return sorted(child for child in path.glob("test*") if child.is_dir()) if path.is_dir() else []


def _conftest_above(folder: Path) -> list[str]:
    """The nearest conftest.py at or above a folder; named as a file, pytest adds those above it."""
    found = (place / "conftest.py" for place in (folder, *folder.parents))
    return next(([str(conftest)] for conftest in found if conftest.is_file()), [])


def refuse_task_code(config: pytest.Config) -> None:
    """Stop before collection where a task's files would be run, or already configure the run.

    Raises:
        pytest.UsageError: says which file, and what to name instead.
    """
    problems = [*_configuration(config), *_import_path(config), *_arguments(config)]
    if problems:
        raise pytest.UsageError(*problems)


def _configuration(config: pytest.Config) -> Iterator[str]:
    ini_task = untrusted_around(config.inipath.parent) if config.inipath else None
    root_task = untrusted_around(config.rootpath)
    if ini_task and config.inipath:
        yield (
            f"{config.inipath} belongs to {_called(ini_task)}, which may not configure "
            f"pytest. Name your own file (an empty pytest.ini will do): pytest -c FILE {ini_task}, "
            f"or name the dataset: pytest {ini_task.parent}"
        )
    elif root_task:
        yield (
            f"{_called(root_task)} became pytest's rootdir, which leaves out the conftest.py "
            f"of its dataset. Run: pytest --rootdir={root_task.parent} {root_task}"
        )
    confcutdir = config.getoption("confcutdir")
    if confcutdir and (task := untrusted_around(config.invocation_params.dir / confcutdir)):
        yield (
            f"--confcutdir={confcutdir} is in {_called(task)}; "
            f"give a folder of your own, as {task.parent}"
        )


def _import_path(config: pytest.Config) -> Iterator[str]:
    for entry in dict.fromkeys(sys.path):
        task = untrusted_around(config.invocation_params.dir / entry)
        if task:
            yield (
                f"sys.path has {entry or 'the working folder'}, a part of {_called(task)}: "
                "its modules would be imported in place of others. Run pytest from a folder above "
                "(python -m pytest and PYTHONPATH=. add the working folder)"
            )


def _arguments(config: pytest.Config) -> Iterator[str]:
    for argument in config.args:
        path = _path_of(config, argument)
        if config.getoption("pyargs"):
            yield from _dotted(argument.partition("::")[0])
            if not _exists(path):
                continue
        task = untrusted_around(path)
        if task is None or _means_the_task(path, task):
            continue
        yield _refusal(argument, "is inside", task)


def _refusal(argument: str, lies: str, folder: Path) -> str:
    if is_task(folder):
        return (
            f"{argument} {lies} {_called(folder)}: what a task brings is run in its containers, "
            f"never by pytest. Name the task: pytest {folder}"
        )
    return (
        f"{argument} {lies} {_called(folder)}: what an agent left is never run by pytest. "
        "Copy it to another place if you trust it"
    )


def _means_the_task(path: Path, task: Path) -> bool:
    written = Path(os.path.abspath(path))  # noqa: PTH100 (links stay what they are called)
    return is_task(task) and written in (task, task / TASK_FILE)


def _dotted(name: str) -> Iterator[str]:
    """Refuse a dotted name that leads to a task: to find what is below, pytest would import it."""
    parts = name.split(".")
    places: list[str] | None = None
    for length in range(1, len(parts) + 1):
        try:
            spec = importlib.machinery.PathFinder.find_spec(".".join(parts[:length]), places)
        except (ImportError, ValueError):
            return
        if spec is None or spec.submodule_search_locations is None:
            return
        places = list(spec.submodule_search_locations)
        task = next((found for place in places if (found := untrusted_around(Path(place)))), None)
        if task:
            yield _refusal(name, "leads into", task)
            return


class TasksAreNoPackages(importlib.abc.MetaPathFinder):
    """Keeps Python from importing a task folder, whose name may be that of any module.

    pytest puts the folder of a conftest.py first on the import path: with a task called ``docker``
    in it that has an ``__init__.py``, ``import docker`` would run that.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Look where no task of that name is; leave it to others where there is none at all."""
        places = sys.path if path is None else list(path)
        name = fullname.rpartition(".")[2]
        others = [place for place in places if not is_task(f"{place or '.'}/{name}")]
        if len(others) == len(places):
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, others, target)
        if spec is None:
            raise ModuleNotFoundError(f"{fullname} is a task folder, not a module", name=fullname)
        return spec


def guard_imports(config: pytest.Config) -> None:
    """Hold tasks for no packages, until the end of the run."""
    finder = TasksAreNoPackages()
    sys.meta_path.insert(0, finder)
    config.add_cleanup(partial(sys.meta_path.remove, finder))


def spare_workers(config: pytest.Config) -> None:
    """Keep Python from importing out of a task folder that is the working folder.

    pytest-xdist starts its workers with ``python -c``, which puts the working folder first on the
    import path until xdist has set its own.
    """
    if untrusted_around(config.invocation_params.dir) and "PYTHONSAFEPATH" not in os.environ:
        os.environ["PYTHONSAFEPATH"] = "1"
        config.add_cleanup(partial(os.environ.__delitem__, "PYTHONSAFEPATH"))


def leads_into_untrusted(path: Path) -> Path | None:
    """The task or run folder that a link leads into, for one that is not itself a task."""
    if not os.path.islink(path) or is_task(path):  # noqa: PTH114 (asked for every path)
        return None
    return untrusted_around(path.resolve())
