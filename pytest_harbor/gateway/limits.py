"""Limits that hold over all workers of a run: calls under way at once, and money spent.

Workers share nothing but a folder. A slot is a locked file, which the system unlocks when its
holder dies; what was spent is a file that everyone appends to.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import re
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from pytest_harbor.gateway.providers import Trace

_FIRST_LOOK: Final = 0.02
_SLOWEST_LOOK: Final = 0.3


class Limit:
    """Lets so many calls go at once; with a folder, so many over all workers that share it."""

    def __init__(self, name: str, most: int | None, folder: Path | None) -> None:
        self._most = most
        self._here = asyncio.Semaphore(most) if most is not None else None
        slug = re.sub(r"[^A-Za-z0-9._-]+", "-", name)
        self._slots = [
            folder / f"slot-{slug}-{number}" for number in range(most or 0) if folder is not None
        ]

    @asynccontextmanager
    async def hold(self, trace: Trace) -> AsyncIterator[None]:
        """Wait for a place, and keep it while the context lasts."""
        if self._here is None:
            yield
            return
        began = time.monotonic()
        async with self._here:
            slot = await self._lock_a_slot()
            trace.queued = time.monotonic() - began
            try:
                yield
            finally:
                if slot is not None:
                    os.close(slot)

    async def _lock_a_slot(self) -> int | None:
        pause = _FIRST_LOOK
        while self._slots:
            for path in self._slots:
                if (slot := _lock(path)) is not None:
                    return slot
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, _SLOWEST_LOOK)
        return None


def _lock(path: Path) -> int | None:
    """Lock a file and return its descriptor; closing that unlocks. None when it is taken."""
    path.parent.mkdir(parents=True, exist_ok=True)
    slot = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(slot, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(slot)
        return None
    return slot


class Spending:
    """Adds up what was spent; with a folder, over all workers that share it."""

    def __init__(self, folder: Path | None = None) -> None:
        self._file = None if folder is None else folder / "spent.jsonl"
        self._lock = threading.Lock()
        self._read = 0
        self._usd = 0.0
        self._tokens = 0

    def add(self, usd: float, tokens: int) -> None:
        """Count what a call cost."""
        with self._lock:
            if self._file is None:
                self._usd += usd
                self._tokens += tokens
                return
            self._file.parent.mkdir(parents=True, exist_ok=True)
            line = json.dumps({"usd": usd, "tokens": tokens}) + "\n"
            with self._file.open("ab", buffering=0) as file:  # one write: lines do not mix
                file.write(line.encode())

    def total(self) -> tuple[float, int]:
        """USD and tokens by now."""
        with self._lock:
            if self._file is not None and self._file.exists():
                with self._file.open("rb") as file:
                    file.seek(self._read)
                    self._take(file.read())
            return self._usd, self._tokens

    def _take(self, new: bytes) -> None:
        whole = new[: new.rfind(b"\n") + 1]
        self._read += len(whole)
        for line in whole.splitlines():
            try:
                spent = json.loads(line)
            except ValueError:  # a worker died while it wrote
                continue
            self._usd += spent["usd"]
            self._tokens += spent["tokens"]
