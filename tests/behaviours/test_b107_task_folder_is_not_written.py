"""B107: reading a task writes nothing into its folder, and caches never change its digest.

That a whole episode leaves the folder alone is tested with the episode.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from task_folders import write_files, write_steps

from pytest_harbor.task.digest import environment_digest, task_digest
from pytest_harbor.task.load import load_task
from pytest_harbor.task.outline import read_outline
from pytest_harbor.task.trees import upload_tree

FILES = {
    "tests/lib.py": "x = 1\n",
    "tests/test_it.py": "def test_it(): pass\n",
    "conftest.py": "raise SystemExit('a task runs no code on the host')\n",
    "solution/solve.sh": "x",
    "steps/one/workdir/setup.sh": "x",
}


def snapshot(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Everything there is, with modes, times of change and content."""
    found = {}
    for path in [folder, *folder.rglob("*")]:
        status = path.lstat()
        content = path.read_bytes() if path.is_file() else b""
        found[str(path)] = (status.st_mode, status.st_mtime_ns, content)
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A task that nobody may write to."""
    folder = write_steps(tmp_path / "task", "one", "two", **FILES)
    paths = [folder, *folder.rglob("*")]
    for path in paths:
        path.chmod(stat.S_IMODE(path.stat().st_mode) & ~0o222)
    yield folder
    for path in paths:
        path.chmod(stat.S_IMODE(path.stat().st_mode) | 0o200)


def test_reading_writes_nothing(folder: Path) -> None:
    before = snapshot(folder)
    read_outline(folder / "task.toml")
    task = load_task(folder)
    digest = task.digest
    assert task.environment_dir is not None
    environment_digest(task.environment_dir)
    for step in task.steps:
        for tree in step.test_trees:
            upload_tree(tree)
    assert snapshot(folder) == before
    assert load_task(folder).digest == digest


def test_caches_do_not_change_the_digest(tmp_path: Path) -> None:
    folder = write_steps(tmp_path / "task", "one", **FILES)
    before, environment = task_digest(folder), environment_digest(folder / "environment")
    write_files(
        folder,
        {
            "tests/__pycache__/lib.cpython-311.pyc": os.urandom(9),
            "__pycache__/conftest.cpython-311-pytest-9.pyc": os.urandom(9),
            ".pytest_cache/v/cache/nodeids": "[]",
            "environment/__pycache__/server.cpython-311.pyc": os.urandom(9),
            "environment/.DS_Store": "x",
        },
    )
    assert task_digest(folder) == before
    assert environment_digest(folder / "environment") == environment


def test_a_real_change_does(tmp_path: Path) -> None:
    folder = write_steps(tmp_path / "task", "one", **FILES)
    seen = {task_digest(folder)}
    write_files(folder, {"tests/lib.py": "x = 2\n"})
    seen.add(task_digest(folder))
    (folder / "solution/solve.sh").chmod(0o755)
    seen.add(task_digest(folder))
    (folder / "steps/one/instruction.md").unlink()
    seen.add(task_digest(folder))
    assert len(seen) == 4
