"""What of the run folder goes into the HTML page itself: excerpts, packed, within a budget.

Logs are read by head and tail only, so a log of any size costs the same. What does not fit is
linked to; the failed episodes' logs come first.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from pytest_harbor.report.text import log_text, size

HEAD = 48_000
TAIL = 48_000
_PACKED_SHARE = 0.4
"""What gzip and base64 make of text, roughly; only for planning."""


def excerpt(path: Path, redact: Callable[[str], str] = str) -> tuple[str, int] | None:
    """Head and tail of a text file, clean, and its size; None for a file that is not there."""
    try:
        with path.open("rb") as file:
            length = file.seek(0, 2)
            file.seek(0)
            if length <= HEAD + TAIL:
                return _read(file.read(), redact), length
            head = file.read(HEAD)
            file.seek(length - TAIL)
            tail = file.read()
    except OSError:
        return None
    # Cut at line ends: half a secret would not be found, and half a line says nothing.
    head = head[: head.rfind(b"\n") + 1] or head
    tail = tail[tail.find(b"\n") + 1 :] or tail
    left = size(length - len(head) - len(tail))
    mark = f"\n… {left} of {size(length)} not shown …\n\n"
    return _read(head, redact) + mark + _read(tail, redact), length


def _read(body: bytes, redact: Callable[[str], str]) -> str:
    return log_text(redact(body.decode("utf-8", "replace")))


def pack(data: Any) -> str:
    """Data for the page's script: JSON, gzip, base64."""
    body = json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    return base64.b64encode(gzip.compress(body, mtime=0)).decode("ascii")


class Budget:
    """How many bytes of logs the page may hold, and whose.

    Files come in ranks, 0 the most wanted. The page is written in its own order, so what the higher
    ranks are expected to take is kept free for them.
    """

    def __init__(self, limit: int, wanted: Iterable[tuple[int, Path]]) -> None:
        self._left = limit
        self._planned: dict[Path, tuple[int, int]] = {}
        self._kept_free: Counter[int] = Counter()
        for rank, path in sorted(wanted, key=lambda each: each[0]):
            expected = int(min(_size(path), HEAD + TAIL) * _PACKED_SHARE)
            if expected <= limit and path not in self._planned:
                limit -= expected
                self._planned[path] = rank, expected
                self._kept_free[rank] += expected

    def take(self, path: Path, data: Callable[[], Any]) -> str | None:
        """The packed data, if it was planned for and still fits; a file is asked for once."""
        rank, expected = self._planned.pop(path, (0, -1))
        if expected < 0:
            return None
        self._kept_free[rank] -= expected
        free = self._left - sum(n for each, n in self._kept_free.items() if each < rank)
        return self._spend(pack(data()), free)

    def take_first(self, data: Any) -> str | None:
        """Packed data that go before every log, as long as anything fits."""
        return self._spend(pack(data), self._left)

    def _spend(self, packed: str, free: int) -> str | None:
        if len(packed) > free:
            return None
        self._left -= len(packed)
        return packed


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
