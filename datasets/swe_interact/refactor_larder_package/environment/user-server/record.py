"""What the simulated user did, as three files of JSON lines.

ask-user.jsonl holds every question and its answer, tool-calls.jsonl every look at the
repository, events.jsonl the rest: model rounds, fallbacks and errors.
"""

import json
import os
import threading
import time
from pathlib import Path
from typing import Any

NAMES = ("ask-user.jsonl", "tool-calls.jsonl", "events.jsonl")
PREVIEW = int(os.environ.get("SIM_USER_LOG_PREVIEW_CHARS", "240"))


class Record:
    """The three files in one folder; each line is on disk before the call goes on."""

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.calls = 0
        self._lock = threading.Lock()
        for name in NAMES:
            (self.folder / name).touch()

    def next_call(self) -> int:
        """Count another ask_user call."""
        self.calls += 1
        return self.calls

    def ask_user(self, **fields: Any) -> None:
        """Keep a question and its answer in full."""
        self._write("ask-user.jsonl", fields)

    def tool_call(self, **fields: Any) -> None:
        """Keep a look at the repository in full."""
        self._write("tool-calls.jsonl", {"call": self.calls, **fields})

    def event(self, event: str, preview: str | None = None, **fields: Any) -> None:
        """Keep an event; long text only as a preview."""
        if preview is not None:
            fields["preview"] = preview[:PREVIEW]
        self._write("events.jsonl", {"event": event, "call": self.calls, **fields})

    def files(self) -> dict[str, str]:
        """Return the three files' text by name."""
        return {name: (self.folder / name).read_text(encoding="utf-8") for name in NAMES}

    def _write(self, name: str, fields: dict[str, Any]) -> None:
        line = json.dumps({"time": round(time.time(), 3), **fields}, ensure_ascii=True)
        with self._lock, (self.folder / name).open("a", encoding="utf-8") as file:
            file.write(line + "\n")
