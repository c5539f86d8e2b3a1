"""What is tried once in a run, by whichever worker comes first; the others read what it found."""

from __future__ import annotations

import fcntl
import json
import threading
from collections.abc import Callable
from pathlib import Path


class Trials:
    """Runs a trial once and gives its finding to all; with a folder, to all that share it.

    A worker that dies in a trial leaves no finding, and the next one tries.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._found: dict[str, str | None] = {}

    def once(self, mark: str, trial: Callable[[], str | None]) -> str | None:
        """What a trial found, now or earlier; ``mark`` tells trials apart and is a file's name."""
        with self._lock:
            if mark not in self._found:
                self._found[mark] = self._among_all(mark, trial)
            return self._found[mark]

    def _among_all(self, mark: str, trial: Callable[[], str | None]) -> str | None:
        if self._folder is None:
            return trial()
        self._folder.mkdir(parents=True, exist_ok=True)
        with (self._folder / f"trial-{mark}.json").open("a+", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # those that come second wait for the first
            file.seek(0)
            written = file.read()
            found: str | None = json.loads(written)["found"] if written else trial()
            if not written:
                file.write(json.dumps({"found": found}))
            return found
