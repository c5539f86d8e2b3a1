"""Digests of folders: what names an image, and what tells that a task has changed.

Content alone counts, not the place or the time of change. What tools leave behind when code is run
in a task folder never changes a digest (B107).
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
    """Return the SHA-256 (hex) of a build context: all that an image builder looks at.

    That is each path, its kind, permission bits, bytes, and where symlinks point. A ``.git``
    counts, and so does a ``.pyc`` that is no cache: a Dockerfile may copy them.

    Raises TaskError when something cannot be read.
    """
    return _digest(_entries(folder, b"", ignored=CACHES), bits=0o7777)


def task_digest(folder: Path) -> str:
    """Return the SHA-256 (hex) of a task folder: what version control would keep of it.

    That is each file's path, executable bit and bytes, and where symlinks point; not a ``.git``
    at the top, not empty folders, and not the bits that a umask decides.

    Raises TaskError when something cannot be read.
    """
    return _digest(_files_of_task(folder), bits=0o100)


def part_digests(folder: Path) -> dict[str, str]:
    """Return digests like :func:`task_digest` of the parts of a task, to tell what has changed.

    A part is what stands at the top of the folder (``task.toml``, ``tests``), and each folder in
    ``environment``: a simulated user and its persona are one of those.

    Raises TaskError when something cannot be read.
    """
    parts: dict[str, list[tuple[bytes, Path]]] = {}
    for name, path in _files_of_task(folder):
        parts.setdefault(_part(os.fsdecode(name)), []).append((name, path))
    return {part: _digest(iter(parts[part]), bits=0o100) for part in sorted(parts)}


def _part(name: str) -> str:
    top, _, rest = name.partition("/")
    inner, slash, _ = rest.partition("/")
    return f"{top}/{inner}" if top == "environment" and slash else top


def _files_of_task(folder: Path) -> Iterator[tuple[bytes, Path]]:
    entries = _entries(folder, b"", ignored=CACHES | {".git"})
    return (entry for entry in entries if not _is_folder(entry[1]))


def _digest(entries: Iterator[tuple[bytes, Path]], *, bits: int) -> str:
    total = hashlib.sha256()
    for name, path in sorted(entries):
        try:
            kind, mode, content = _look(path)
        except OSError as error:
            raise TaskError(f"{path} cannot be read: {error.strerror}") from error
        # Lengths first, so that no two folders can write the same stream.
        head = b"%s %o %d %d\0" % (kind, mode & bits, len(name), len(content))
        total.update(head + name + content)
    return total.hexdigest()


def _entries(folder: Path, at: bytes, *, ignored: frozenset[str]) -> Iterator[tuple[bytes, Path]]:
    """Yield everything below, by its path in bytes with forward slashes.

    Of the names to be ignored only caches are ignored further down.
    """
    try:
        names = [entry.name for entry in folder.iterdir()]
    except OSError as error:
        raise TaskError(f"{folder} cannot be read: {error.strerror}") from error
    for name in names:
        if name in ignored:
            continue
        path, inner = folder / name, at + os.fsencode(name)
        yield inner, path
        if _is_folder(path):
            yield from _entries(path, inner + b"/", ignored=CACHES)


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _look(path: Path) -> tuple[bytes, int, bytes]:
    """Return kind, mode, and the digest of the bytes or the text of the link."""
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):  # it has no mode of its own
        return b"link", 0, os.fsencode(os.readlink(path))  # noqa: PTH115 (text, not a path)
    if stat.S_ISDIR(mode):
        return b"folder", mode, b""
    if not stat.S_ISREG(mode):
        return b"special", mode, b""
    with path.open("rb") as file:
        return b"file", mode, hashlib.file_digest(file, "sha256").digest()
