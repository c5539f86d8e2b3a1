"""What is longer than anybody wants to keep: its beginning, its end, and a mark between (B99)."""

from __future__ import annotations

from collections import deque
from typing import IO, Final

from pytest_harbor.errors import SandboxError

PIECE: Final = 1 << 20
"""Bytes that are moved at a time."""

BROKEN_OFF: Final = "The engine broke off while it sent files; run the task again."


def mark(size: int, kept: int) -> bytes:
    """The line that stands where the middle of something too long was taken out."""
    return b"\n[... %d of %d bytes left out here ...]\n" % (size - kept, size)


def copy_capped(source: IO[bytes], target: IO[bytes], size: int, limit: int) -> int:
    """Copy a file of known size, or only its beginning and end; returns the bytes kept."""
    if size <= limit:
        _copy(source, target, size)
        return size
    head = limit - limit // 2
    _copy(source, target, head)
    _copy(source, None, size - limit)
    target.write(mark(size, limit))
    _copy(source, target, limit // 2)
    return limit


def _copy(source: IO[bytes], target: IO[bytes] | None, count: int) -> None:
    while count:
        piece = source.read(min(count, PIECE))
        if not piece:
            raise SandboxError(BROKEN_OFF, outcome="sandbox_died")
        count -= len(piece)
        if target is not None:
            target.write(piece)


class HeadTail:
    """Output of unknown size: its beginning, its end and its true size, in bounded memory."""

    def __init__(self, limit: int) -> None:
        self.size = 0
        self._limit = limit
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0

    def feed(self, data: bytes) -> None:
        """Take the next piece."""
        self.size += len(data)
        room = self._limit - self._limit // 2 - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        if data and (half := self._limit // 2):
            self._tail.append(data)
            self._tail_size += len(data)
            while self._tail_size - len(self._tail[0]) >= half:
                self._tail_size -= len(self._tail.popleft())

    def value(self) -> bytes:
        """All of it, or beginning and end around a mark."""
        tail = b"".join(self._tail)
        if self.size <= self._limit:
            return bytes(self._head) + tail
        half = self._limit // 2
        return bytes(self._head) + mark(self.size, self._limit) + (tail[-half:] if half else b"")
