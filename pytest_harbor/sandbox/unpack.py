"""Files on their way out of a container, from a tar stream that is not trusted.

No link is followed, no device made, no setuid bit kept, and no file is larger than was asked for.
"""

from __future__ import annotations

import errno
import io
import os
import tarfile
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import IO, Final

from pytest_harbor.errors import SandboxError
from pytest_harbor.sandbox.bounded import BROKEN_OFF, PIECE, HeadTail, copy_capped

_DEEPEST: Final = 200
"""Levels of folders; what is deeper would break the tools of whoever clears it away (B101)."""

_END: Final = 2 * tarfile.BLOCKSIZE
"""Zero bytes at the end of every archive."""

_NAMES_WITHIN: Final = 64 << 20

_PATH_FAULTS: Final = frozenset(
    {
        errno.EEXIST,
        errno.EILSEQ,
        errno.EINVAL,
        errno.EISDIR,
        errno.ENAMETOOLONG,
        errno.ENOTDIR,
        errno.ENOTEMPTY,
        errno.EPERM,
    }
)


@dataclass(frozen=True)
class Cut:
    """A file of which only beginning and end were kept."""

    path: str
    size: int
    kept: int


@dataclass(frozen=True)
class Got:
    """What came out of a container."""

    found: bool = True
    is_folder: bool = True
    files: int = 0
    bytes: int = 0
    """Bytes on disk now; :attr:`truncated` says how large the cut ones were."""
    skipped: tuple[str, ...] = ()
    """Things left behind, each with the reason."""
    truncated: tuple[Cut, ...] = ()


def unpack(
    chunks: Iterable[bytes],
    into: Path,
    *,
    exclude: Collection[str] = (),
    limit_bytes: int,
    file_limit: int | None = None,
) -> Got:
    """Unpack a tar stream of one file or folder so that it becomes ``into``.

    ``exclude`` are patterns as ``tar --exclude`` has them: they match a name at any depth, and a
    folder with all that is in it. No file keeps more than ``file_limit`` bytes, and all together
    no more than ``limit_bytes``; of a larger file the beginning and the end are kept around a mark
    (B99). Symbolic links that stay inside the tree are kept, all others recorded as skipped (B35).
    """
    unpacking = _Unpacking(into, tuple(exclude), limit_bytes, file_limit)
    source = Chunks(chunks)
    with tarfile.open(fileobj=source, mode="r|", bufsize=PIECE) as tar:
        for member in tar:
            unpacking.take(tar, member)
            # the archive would otherwise remember every member that it has seen
            tar.members = []  # type: ignore[attr-defined]
    source.check_end()
    unpacking.make_links()
    return unpacking.got()


def names(chunks: Iterable[bytes], *, limit: int) -> tuple[str, ...]:
    """Names directly inside the folder that a tar stream holds.

    At most ``limit`` of them, and no more than the first 64 MiB of the stream tell: a tar has
    contents between its names.
    """
    found: dict[str, None] = {}
    with tarfile.open(fileobj=Chunks(chunks), mode="r|", bufsize=PIECE) as tar:
        for member in tar:
            parts = PurePosixPath(member.name).parts
            if len(parts) > 1:
                found[parts[1]] = None
            if len(found) >= limit or member.offset_data + member.size > _NAMES_WITHIN:
                break
            tar.members = []  # type: ignore[attr-defined]
    return tuple(found)


def first_member(chunks: Iterable[bytes]) -> tarfile.TarInfo:
    """The first thing that a tar stream holds."""
    with tarfile.open(fileobj=Chunks(chunks), mode="r|", bufsize=PIECE) as tar:
        member = tar.next()
    if member is None:
        raise tarfile.ReadError("an empty archive")
    return member


def first_file(chunks: Iterable[bytes], limit: int) -> bytes | None:
    """The content of the file that a tar stream holds, None when it holds something else."""
    with tarfile.open(fileobj=Chunks(chunks), mode="r|", bufsize=PIECE) as tar:
        member = tar.next()
        if member is None or not member.isreg():
            return None
        source = tar.extractfile(member)
        assert source is not None
        kept = HeadTail(limit)
        while piece := source.read(PIECE):
            kept.feed(piece)
        return kept.value()


class Chunks(io.RawIOBase):
    """A stream of byte chunks in the clothes of a file."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self._rest = memoryview(b"")
        self._last = b""

    def readable(self) -> bool:
        """It can be read, and nothing else."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Up to ``size`` bytes, none at the end."""
        while not self._rest:
            try:
                chunk = next(self._chunks)
            except StopIteration:
                return b""
            self._rest = memoryview(chunk)
            self._last = (self._last + chunk[-_END:])[-_END:]
        piece = self._rest if size < 0 else self._rest[:size]
        self._rest = self._rest[len(piece) :]
        return bytes(piece)

    def check_end(self) -> None:
        """Raise unless the stream ends as a tar does.

        An engine that fails half-way just stops; tarfile takes that for the end.
        """
        while self.read(PIECE):
            pass
        if self._last != bytes(_END):
            raise SandboxError(BROKEN_OFF, outcome="sandbox_died")


class _Unpacking:
    """The state of one :func:`unpack`."""

    def __init__(
        self, into: Path, exclude: tuple[str, ...], limit_bytes: int, file_limit: int | None
    ) -> None:
        self.into = into
        self.exclude = exclude
        self.left = limit_bytes
        self.file_limit = limit_bytes if file_limit is None else file_limit
        self.is_folder = False
        self.files = self.bytes = 0
        self.skipped: list[str] = []
        self.truncated: list[Cut] = []
        self.links: list[tuple[str, Path, str]] = []
        self.written: dict[str, Path] = {}
        self.folders: set[Path] = set()

    def take(self, tar: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        """Put one member of the stream in its place, or say why not."""
        raw = member.name.rstrip("/")
        parts = raw.split("/")
        if not raw or any(part in ("", ".", "..") for part in parts) or "\0" in raw:
            self.skip(member.name, "its name leaves the tree")
            return
        if len(parts) > _DEEPEST:
            self.skip(f"{raw[:100]}...", "folders in folders without end")
            return
        inner = parts[1:]
        name = "/".join(inner)
        if not inner:
            self.is_folder = member.isdir()
        if inner and excluded(name, self.exclude):
            return
        place = self.into.joinpath(*inner)
        label = name or raw
        try:
            self._take(tar, member, raw, label, place)
        except OSError as fault:
            if not _is_about_the_name(fault):
                raise
            self.skip(label, f"this host cannot store it: {fault.strerror}")

    def _take(
        self, tar: tarfile.TarFile, member: tarfile.TarInfo, raw: str, label: str, place: Path
    ) -> None:
        if member.isdir():
            self.folder(place)
        elif member.issym():
            self.links.append((label, place, member.linkname))
        elif member.islnk():
            self.hard_link(label, place, member.linkname)
        elif member.isreg():
            source = tar.extractfile(member)
            assert source is not None
            self.file(label, place, source, member.size, bool(member.mode & 0o111))
            self.written[raw] = place
        else:
            self.skip(label, "neither file, folder nor link")

    def skip(self, name: str, why: str) -> None:
        """Record something that is left behind."""
        self.skipped.append(f"{name} ({why})")

    def folder(self, place: Path) -> None:
        """Make a real folder of ``place`` and of all between it and the top."""
        missing = []
        while place not in self.folders:
            missing.append(place)
            if place == self.into:
                place.parent.mkdir(parents=True, exist_ok=True)
                break
            place = place.parent
        for folder in reversed(missing):
            if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
                folder.unlink()
            folder.mkdir(exist_ok=True)
            self.folders.add(folder)

    def clear(self, place: Path) -> None:
        """Make room for a file or link at ``place``."""
        if place != self.into:
            self.folder(place.parent)
        else:
            place.parent.mkdir(parents=True, exist_ok=True)
        if place.is_symlink() or place.exists():
            place.unlink()

    def file(self, label: str, place: Path, source: IO[bytes], size: int, program: bool) -> None:
        """Write a file, cut to what is allowed."""
        limit = min(self.file_limit, self.left)
        if limit <= 0 and size:
            self.skip(label, f"{size} bytes over the limit for all files")
            return
        self.clear(place)
        # ours, readable, and never setuid, whatever it was inside (B35, B101)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with os.fdopen(os.open(place, flags, 0o755 if program else 0o644), "wb") as target:
            kept = copy_capped(source, target, size, limit)
        if kept < size:
            self.truncated.append(Cut(label, size, kept))
        self.files += 1
        self.bytes += kept
        self.left -= kept

    def hard_link(self, label: str, place: Path, target: str) -> None:
        """A further name of a file that the stream has brought already."""
        first = self.written.get(target.rstrip("/"))
        if first is None:
            self.skip(label, "a hard link to something that was left out")
            return
        self.clear(place)
        place.hardlink_to(first)
        self.files += 1

    def make_links(self) -> None:
        """Make the symbolic links, last of all, so that nothing was ever written through one."""
        made: dict[Path, tuple[str, str]] = {}
        for label, place, target in self.links:
            if place == self.into or not self._stays(place, target):
                self.skip(label, f"a link to {target}")
                continue
            try:
                self.clear(place)
                place.symlink_to(target)
            except OSError as fault:
                self.skip(label, f"this host cannot store it: {fault.strerror}")
            else:
                made[place] = (label, target)
        # each may look harmless and all together lead out: judge them where they end
        root = os.path.realpath(self.into)
        while escaped := [p for p in made if not _is_inside(os.path.realpath(p), root)]:
            for place in escaped:
                label, target = made.pop(place)
                place.unlink()
                self.skip(label, f"a link to {target}")

    def _stays(self, place: Path, target: str) -> bool:
        if not target or target.startswith("/") or "\0" in target:
            return False
        return _is_inside(os.path.normpath(place.parent / target), os.path.normpath(self.into))

    def got(self) -> Got:
        """What came of it."""
        return Got(
            is_folder=self.is_folder,
            files=self.files,
            bytes=self.bytes,
            skipped=tuple(self.skipped),
            truncated=tuple(self.truncated),
        )


def excluded(name: str, patterns: Collection[str]) -> bool:
    """Whether a path within a tree is left out by one of ``tar``'s exclude patterns."""
    parts = name.split("/")
    for pattern in patterns:
        bare = pattern.removeprefix("./").rstrip("/")
        for end in range(1, len(parts) + 1):
            if any(fnmatchcase("/".join(parts[start:end]), bare) for start in range(end)):
                return True
    return False


def _is_inside(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")


def _is_about_the_name(fault: OSError) -> bool:
    """Whether one path is at fault, and not the disk."""
    return fault.errno in _PATH_FAULTS
