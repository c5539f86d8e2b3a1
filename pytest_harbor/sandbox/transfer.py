"""Files on their way into a container, as a tar stream of bounded memory.

The way out is :mod:`~pytest_harbor.sandbox.unpack`'s; talking to the engine is
:mod:`~pytest_harbor.sandbox.container`'s.
"""

from __future__ import annotations

import os
import stat
import tarfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from pytest_harbor.errors import SandboxError
from pytest_harbor.sandbox.bounded import PIECE


@dataclass(frozen=True)
class Entry:
    """One thing to be put into a container, at an absolute path.

    ``source`` is a file on this host, the content itself, or None for a folder. Folders above it
    are made where they are missing and left alone where they stand. Whatever else stands at
    ``path`` itself is replaced, a link never followed; a folder at a folder's place keeps its
    content, unless the entry is ``fresh``. ``mode`` None takes the file's own (0644, 0755 for
    content and folders).
    """

    path: str
    source: Path | bytes | None = None
    mode: int | None = None
    uid: int = 0
    gid: int = 0
    link: str | None = None
    """Make a symbolic link with this target instead; ``source`` is None then."""
    fresh: bool = False
    """Empty the folder first. The engine does it: no command runs inside."""
    mtime: int | None = None
    """Seconds since 1970; None: a file's own, or now."""


def pack(entries: Iterable[Entry]) -> Iterator[bytes]:
    """Write entries as a tar stream to be unpacked at ``/``, reading files as it goes."""
    buffer = bytearray()
    for entry in entries:
        for piece in _pack_one(entry):
            buffer += piece
            if len(buffer) >= PIECE:
                yield bytes(buffer)
                buffer.clear()
    yield bytes(buffer) + bytes(2 * tarfile.BLOCKSIZE)


def _pack_one(entry: Entry) -> Iterator[bytes]:
    info = tarfile.TarInfo(_inside(entry.path))
    info.uid, info.gid = entry.uid, entry.gid
    info.mtime = int(time.time()) if entry.mtime is None else entry.mtime
    if entry.link is not None:
        info.type, info.linkname, info.mode = tarfile.SYMTYPE, entry.link, 0o777
        yield _header(info)
    elif entry.source is None:
        if entry.fresh:
            # a file in its place makes the engine remove the folder and all that is in it
            yield _header(info)
        info.type = tarfile.DIRTYPE
        info.mode = 0o755 if entry.mode is None else entry.mode
        yield _header(info)
    elif isinstance(entry.source, bytes):
        info.mode = 0o644 if entry.mode is None else entry.mode
        info.size = len(entry.source)
        yield _header(info)
        yield entry.source
        yield _padding(info.size)
    else:
        yield from _pack_file(info, entry, entry.source)


def _pack_file(info: tarfile.TarInfo, entry: Entry, source: Path) -> Iterator[bytes]:
    with source.open("rb") as file:
        facts = os.fstat(file.fileno())
        info.size = facts.st_size
        info.mtime = int(facts.st_mtime) if entry.mtime is None else entry.mtime
        info.mode = stat.S_IMODE(facts.st_mode) if entry.mode is None else entry.mode
        yield _header(info)
        left = info.size
        while left and (piece := file.read(min(left, PIECE))):
            left -= len(piece)
            yield piece
        if left:
            raise SandboxError(f"{source} became shorter while it was copied; keep it still")
    yield _padding(info.size)


def _header(info: tarfile.TarInfo) -> bytes:
    return info.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")


def _padding(size: int) -> bytes:
    return bytes(-size % tarfile.BLOCKSIZE)


def _inside(path: str) -> str:
    """The path relative to ``/``, as a tar stream names it."""
    pure = PurePosixPath(path)
    if not pure.is_absolute() or ".." in pure.parts or len(pure.parts) < 2 or "\0" in path:
        raise ValueError(f"{path!r} is no absolute path below / without '..'")
    return str(pure.relative_to(pure.anchor))
