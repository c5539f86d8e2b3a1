"""What a run shows while it goes on and at its end.

Live lines are read from the event files that episodes write, so they look the same whether an
episode runs in this process or in a worker.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from pytest_harbor.job import Job

if TYPE_CHECKING:
    import pytest

    from pytest_harbor.episode.result import EpisodeResult
    from pytest_harbor.report.numbers import Numbers

_LOOK_SECONDS = 0.5
_HEARTBEAT_SECONDS = 60.0
_MOST_WARNINGS = 20


@dataclass
class _Tail:
    """How far an event file has been read, and where its episode is."""

    offset: int = 0
    task: str = ""
    doing: str = "starting"
    over: bool = False


@dataclass
class LiveView:
    """Writes a line for each step that ends, and a sign of life when nothing has ended for long."""

    folder: Path
    reporter: pytest.TerminalReporter
    beside: TextIO | None = None
    """The terminal itself, where pytest keeps back what is printed while a test runs."""
    _tails: dict[Path, _Tail] = field(default_factory=dict)
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None
    _quiet_for: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def start(self) -> None:
        """Begin to watch, in a thread of its own."""
        self._thread = threading.Thread(target=self._watch, name="harbor-live", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop watching, after a last look."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout=5)
            self._thread = None

    def look(self) -> None:
        """Show what is new; also called before a task's line, so that its steps stand above it."""
        with self._lock:
            for line in self._news():
                write_line(self.reporter, f"  {line}", light=True)
            self.reporter.flush()

    def drop(self, name: str) -> None:
        """Say no more of an episode: its worker died."""
        with self._lock:
            self._tails.setdefault(self.folder / name / "events.jsonl", _Tail()).over = True

    def _watch(self) -> None:
        while not self._stop.wait(_LOOK_SECONDS):
            with self._lock:
                self._show(list(self._news()))

    def _show(self, lines: list[str]) -> None:
        self._quiet_for = 0.0 if lines else self._quiet_for + _LOOK_SECONDS
        if self._quiet_for >= _HEARTBEAT_SECONDS:
            self._quiet_for = 0.0
            lines = [f"{tail.task}: {tail.doing}" for tail in self._tails.values() if not tail.over]
        if self.beside is None:
            for line in lines:
                write_line(self.reporter, f"  {line}", light=True)
        elif lines:
            self.beside.write("".join(f"\n  {line}" for line in lines))
            self.beside.flush()

    def _news(self) -> Iterator[str]:
        for path in sorted(self.folder.glob("*/events.jsonl")):
            tail = self._tails.setdefault(path, _Tail())
            for event in _read_on(path, tail):
                line = _tell(event, tail)
                if line is not None:
                    yield line


def _read_on(path: Path, tail: _Tail) -> Iterator[dict[str, Any]]:
    """The whole lines that were written to an event file since the last look."""
    try:
        with path.open("rb") as file:
            if file.seek(0, 2) < tail.offset:  # the episode began anew
                tail.offset, tail.over = 0, False
            file.seek(tail.offset)
            block = file.read()
    except OSError:
        return
    whole = block[: block.rfind(b"\n") + 1]
    tail.offset += len(whole)
    for line in whole.splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict):
            yield event


def _tell(event: dict[str, Any], tail: _Tail) -> str | None:
    """Update where an episode is; returns the line that its event is worth."""
    kind, step = event.get("event"), event.get("step", "")
    if kind == "episode-start":
        tail.task = str(event.get("task", ""))
    elif kind == "agent-start":
        tail.doing = f"{step}: the agent works"
    elif kind == "verify-start":
        tail.doing = f"{step}: being graded"
    elif kind == "episode-end":
        tail.over = True
    elif kind == "killed":
        return f"{tail.task} > {step}: left running, killed: {'; '.join(event['commands'])[:120]}"
    elif kind == "step-end" and step:
        reward = event.get("reward")
        shown = "no reward" if reward is None else f"reward {reward:g}"
        outcome = event.get("outcome")
        return f"{tail.task} > {step}: {shown}" + ("" if outcome == "passed" else f" ({outcome})")
    return None


def keep_terminal(config: pytest.Config) -> TextIO | None:
    """A way to the terminal that stays open while pytest captures; ask before it begins to."""
    try:
        terminal = os.fdopen(os.dup(1), "w", encoding="utf-8", errors="replace")
    except OSError:
        return None
    config.add_cleanup(terminal.close)
    return terminal


def write_line(reporter: pytest.TerminalReporter, text: str, **markup: bool) -> None:
    """Write a line of its own, whatever pytest left on the current one."""
    reporter.ensure_newline()
    if reporter.config.get_terminal_writer().width_of_current_line:
        reporter.line("")
    reporter.write_line(text, **markup)


def task_line(job: Job, name: str) -> str | None:
    """The line for a finished task: reward, steps, time."""
    result = job.result(name)
    if result is None:
        return None
    from pytest_harbor.report.text import duration, one_line, reward

    parts = [
        f"{result.outcome.upper()} {result.task}",
        f"reward {reward(result.reward)}",
        f"{result.steps_run}/{result.steps_total} steps",
        duration(result.ran.seconds),
    ]
    if result.attempt > 1:
        parts[0] += f" (attempt {result.attempt})"
    if result.verdict != "passed":
        parts.append(one_line(result.verdict_reason, 300))
    return "  ".join(parts)


def write_summary(
    reporter: pytest.TerminalReporter, job: Job, places: list[str], found: Numbers | None = None
) -> None:
    """The final table, the run's numbers (counted here if nobody has), and where all lies."""
    if not job.episodes:
        return
    from pytest_harbor.report.lines import render_numbers
    from pytest_harbor.report.numbers import numbers
    from pytest_harbor.report.summary import render_table, render_totals, table

    results = list(job.results().values())
    if not results:
        return
    reporter.section("harbor", "=")
    width = max(60, reporter.config.get_terminal_writer().fullwidth - 1)
    found = found or numbers(job.folder, results)
    sums = [*render_totals(found.whole.sums), *render_numbers(found)]
    for line in [*render_table(table(results), width), "", *sums]:
        reporter.write_line(line)
    for line in _warnings(results):
        reporter.write_line(line, yellow=True)
    for line in places:
        reporter.write_line(line)


def _warnings(results: Sequence[EpisodeResult]) -> Iterator[str]:
    """What is odd about tasks, each once; all of it is in the report."""
    from pytest_harbor.report.text import one_line

    told = dict.fromkeys(
        f"warning: {result.task}: {one_line(text, 300)}"
        for result in results
        for text in result.warnings
    )
    yield from list(told)[:_MOST_WARNINGS]
    if len(told) > _MOST_WARNINGS:
        yield f"and {len(told) - _MOST_WARNINGS} more warnings, in the report"
