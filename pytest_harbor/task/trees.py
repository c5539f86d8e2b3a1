"""The trees of a task that go into a container: which files, from where, with which mode.

``.harborignore`` (harbor-format 1) is applied here, and the rule that symlinks stay inside the
task. The trees are read, never written.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import pathspec

from pytest_harbor.errors import TaskError
from pytest_harbor.task.files import inside, read_bytes, show
from pytest_harbor.task.toml import decode_text

IGNORE_FILE = ".harborignore"


@dataclass(frozen=True)
class TreeFile:
    """A file to upload.

    ``path`` is relative to the tree, ``source`` the real file on disk (symlinks followed),
    ``mode`` its permission bits.
    """

    path: PurePosixPath
    source: Path
    mode: int


@dataclass(frozen=True)
class _Rules:
    """The patterns of one ignore file and the folder, relative to the tree, that they hold for."""

    base: PurePosixPath
    spec: pathspec.GitIgnoreSpec

    def verdict(self, path: PurePosixPath, is_dir: bool) -> bool | None:
        """Whether the path is excluded (True), brought back (False), or not mentioned (None).

        As in Git the last pattern that matches this very entry decides. pathspec's own verdict
        would also count patterns that match a folder above, which was judged on the way here.
        """
        text = path.relative_to(self.base).as_posix()
        for pattern in reversed(self.spec.patterns):
            # A comment has neither a regex nor a verdict.
            if pattern.regex is not None and _matches(pattern.regex, text, is_dir):
                return pattern.include
        return None


_FOLDER_MARK = "ps_d"
"""pathspec's name for the slash after what a pattern matched, where that is a folder."""


def _matches(regex: re.Pattern[str], text: str, is_dir: bool) -> bool:
    """Whether a pattern matches the entry itself, not only a folder above it."""
    found = regex.search(text)
    if found is not None and found.groupdict().get(_FOLDER_MARK) is None:
        return True
    folder = text + "/"
    return is_dir and any(
        found.groupdict().get(_FOLDER_MARK) is not None and found.end(_FOLDER_MARK) == len(folder)
        for found in regex.finditer(folder)
    )


def upload_tree(
    root: Path, *, task: Path | None = None, harborignore: bool = True
) -> tuple[TreeFile, ...]:
    """List the files under ``root`` that are uploaded, sorted by path.

    ``task`` is the task folder that symlinks may not leave; by default the nearest folder above
    with a ``task.toml``. ``harborignore=False`` is for ``workdir/``, where the format knows no
    ignore file and such a file is a file like any other.

    Raises TaskError for a link that leaves the task or goes in circles, for what is neither file
    nor folder, and for an ignore file that cannot be read.
    """
    task = task or _task_of(root)
    found = _walk(root, PurePosixPath(), task, (), (), harborignore=harborignore)
    return tuple(sorted(found, key=lambda file: file.path))


def _walk(
    folder: Path,
    at: PurePosixPath,
    task: Path,
    above: tuple[Path, ...],
    rules: tuple[_Rules, ...],
    *,
    harborignore: bool,
) -> Iterator[TreeFile]:
    """Yield the files of one folder and those below; ``above`` are the real folders on the way."""
    real = inside(folder, task)
    if real in above:
        raise TaskError(f"{show(folder, task)} is a symlink to a folder above it; remove it")
    if harborignore and (folder / IGNORE_FILE).is_file():
        rules = (_read_rules(folder / IGNORE_FILE, at, task), *rules)
    for name in _names(folder, task):
        if harborignore and name == IGNORE_FILE:
            continue
        entry, path = folder / name, at / name
        source = inside(entry, task)
        status = source.stat()
        if _excluded(path, stat.S_ISDIR(status.st_mode), rules):
            continue
        if stat.S_ISDIR(status.st_mode):
            yield from _walk(entry, path, task, (*above, real), rules, harborignore=harborignore)
        elif stat.S_ISREG(status.st_mode):
            yield TreeFile(path, source, stat.S_IMODE(status.st_mode))
        else:
            raise TaskError(f"{show(entry, task)} is neither a file nor a folder; remove it")


def _excluded(path: PurePosixPath, is_dir: bool, rules: tuple[_Rules, ...]) -> bool:
    """Ask the nearest ignore file first; the first that mentions the path decides, as in Git."""
    for rule in rules:
        verdict = rule.verdict(path, is_dir)
        if verdict is not None:
            return verdict
    return False


def _read_rules(path: Path, at: PurePosixPath, task: Path) -> _Rules:
    text = decode_text(read_bytes(path, task), show(path, task))
    try:
        return _Rules(at, pathspec.GitIgnoreSpec.from_lines(text.splitlines()))
    except ValueError as error:
        raise TaskError(f"{show(path, task)}: {error}; correct the pattern") from error


def _names(folder: Path, task: Path) -> list[str]:
    try:
        return sorted(entry.name for entry in folder.iterdir())
    except OSError as error:
        raise TaskError(f"{show(folder, task)} cannot be read: {error.strerror}") from error


def _task_of(root: Path) -> Path:
    """Find the task that a tree belongs to; a tree on its own is its own boundary."""
    homes = [root, *root.absolute().parents]
    return next((home for home in homes if (home / "task.toml").is_file()), root)
