"""Digests of folders: what names an image, and what tells that a task has changed.

Only content counts: relative paths, the executable bit, bytes, and where symlinks point. What
tools leave behind when code is run in a task folder never changes a digest (B107).
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from pytest_harbor.errors import TaskError

CACHES = frozenset(
    {"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", ".DS_Store"}
)
"""Names of files and folders that tools write beside content."""


def environment_digest(folder: Path) -> str:
    """Return the SHA-256 (hex) of a build context.

    A ``.git`` below counts: it is part of what the Dockerfile may copy. Raises TaskError when a
    file cannot be read.
    """
    return _digest(folder, CACHES)


def task_digest(folder: Path) -> str:
    """Return the SHA-256 (hex) of a task folder, without a ``.git`` at its top.

    Raises TaskError when a file cannot be read.
    """
    return _digest(folder, CACHES, top=frozenset({".git"}))


def _digest(folder: Path, ignored: frozenset[str], top: frozenset[str] = frozenset()) -> str:
    total = hashlib.sha256()
    entries = sorted(_entries(folder, b"", ignored, top))
    for name, path in entries:
        try:
            kind, content = _content(path)
        except OSError as error:
            raise TaskError(f"{path} cannot be read: {error.strerror}") from error
        # Lengths first, so that no two folders can write the same stream.
        total.update(b"%s %d %d\0" % (kind, len(name), len(content)) + name + content)
    return total.hexdigest()


def _entries(
    folder: Path, at: bytes, ignored: frozenset[str], top: frozenset[str]
) -> Iterator[tuple[bytes, Path]]:
    """Yield every file and symlink below, by its path in bytes with forward slashes."""
    try:
        names = [entry.name for entry in folder.iterdir()]
    except OSError as error:
        raise TaskError(f"{folder} cannot be read: {error.strerror}") from error
    for name in names:
        if name in ignored or name in top:
            continue
        path, inner = folder / name, at + os.fsencode(name)
        if path.is_dir() and not path.is_symlink():
            yield from _entries(path, inner + b"/", ignored, frozenset())
        else:
            yield inner, path


def _content(path: Path) -> tuple[bytes, bytes]:
    """Return what kind of entry it is, and the digest of its bytes or the text of its link."""
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        return b"link", os.fsencode(os.readlink(path))  # noqa: PTH115 (text, not a path)
    if not stat.S_ISREG(mode):
        return b"special", b""
    with path.open("rb") as file:
        return (b"program" if mode & 0o100 else b"file"), hashlib.file_digest(
            file, "sha256"
        ).digest()
