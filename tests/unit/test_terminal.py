"""What the live view makes of event files."""

from __future__ import annotations

import io
import json
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from pytest_harbor.terminal import LiveView


def write(path: Path, *events: dict[str, Any], end: str = "\n") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write("\n".join(map(json.dumps, events)) + end)


def test_steps_are_told_beside_what_pytest_keeps_back(tmp_path: Path) -> None:
    beside = io.StringIO()
    view = LiveView(tmp_path, cast("Any", SimpleNamespace()), beside)
    events = tmp_path / "a__1234567" / "events.jsonl"
    view.start()
    write(events, {"event": "episode-start", "task": "a"})
    write(events, {"event": "step-end", "step": "one", "reward": 1, "outcome": "passed"})
    write(events, {"event": "step-end", "step": "two", "reward": 0.5, "outcome": "failed"}, end="")
    time.sleep(0.8)
    assert beside.getvalue() == "\n  a > one: reward 1"
    write(events, end="\n")
    time.sleep(0.8)
    view.stop()
    assert beside.getvalue() == "\n  a > one: reward 1\n  a > two: reward 0.5 (failed)"
