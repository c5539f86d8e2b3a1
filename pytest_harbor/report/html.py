"""Writes the HTML report: one file that needs no network, no server and no other file.

Everything a task, an agent or a verifier wrote passes one door before it is printed
(:func:`_Door.show`): secrets out, control characters out, HTML escaped. Logs lie in the page as
packed data and become text, never markup, when somebody opens them.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_harbor.episode.result import EpisodeResult
from pytest_harbor.episode.trial import dataset_of
from pytest_harbor.redaction import Redactor
from pytest_harbor.report import charts, text
from pytest_harbor.report.episodes import without_verifier_output
from pytest_harbor.report.facts import settings, words
from pytest_harbor.report.inline import Budget, pack
from pytest_harbor.report.numbers import Numbers, differences, numbers
from pytest_harbor.report.views import GLYPHS, WORDS, EpisodeView, Place, Viewer, wanted_logs

if TYPE_CHECKING:
    from jinja2 import Environment

LOG_BYTES = 20_000_000
"""How much of the page packed logs may take; beyond it they are linked to."""

_TEMPLATES = Path(__file__).with_name("templates")


def write_report(
    job: Path,
    page: Path,
    results: Iterable[EpisodeResult],
    *,
    log_bytes: int = LOG_BYTES,
    redactor: Redactor | None = None,
    private_verifier: bool = False,
    found: Numbers | None = None,
) -> None:
    """Write the report of a job.

    Args:
        job: the job folder, which holds the episodes' folders.
        page: the file to write; links to logs are relative to it.
        results: the episodes.
        log_bytes: how much of the page logs may take.
        redactor: takes secrets out once more; files that containers wrote may hold some.
        private_verifier: leave out what verifiers wrote.
        found: the numbers of these episodes, if somebody has them already.
    """
    every = sorted(results, key=lambda each: each.key)
    if private_verifier:
        every = [without_verifier_output(each) for each in every]
    if found is None or private_verifier:
        found = numbers(job, every)
    door = _Door(redactor or Redactor())
    viewer = Viewer(Place(job, page), Budget(log_bytes, wanted_logs(job, every)), door.redact)
    views = (viewer.episode(each) for each in every)
    page.parent.mkdir(parents=True, exist_ok=True)
    beside = page.with_name(f".{page.name}.{os.getpid()}.new")
    try:
        with beside.open("w", encoding="utf-8", errors="replace") as file:
            for piece in _pieces(job, every, views, found, door):
                file.write(piece)
        beside.replace(page)
    finally:
        beside.unlink(missing_ok=True)


def _pieces(
    job: Path,
    results: Sequence[EpisodeResult],
    views: Iterator[EpisodeView],
    found: Numbers,
    door: _Door,
) -> Iterator[str]:
    """The page, piece by piece: only one episode's logs are in memory at a time."""
    from markupsafe import Markup

    style = (_TEMPLATES / "report.css").read_text(encoding="utf-8")
    script = (_TEMPLATES / "report.js").read_text(encoding="utf-8")
    yield from (
        _environment(door)
        .get_template("report.html.j2")
        .generate(
            job=job.name,
            sums=found.whole.sums,
            part=found.whole,
            groups=found.groups,
            alike=differences(found.groups),
            span=_span(results),
            identity=_identity(results),
            settings=settings(results),
            shares=charts.shares(found.whole.sums.outcomes),
            bars=charts.skyline(results),
            rungs=charts.ladder(results),
            verdicts=_verdicts(results),
            episodes=views,
            style=Markup(style),  # noqa: S704  # our own files
            script=Markup(script),  # noqa: S704
            style_hash=_csp_hash(style),
            script_hash=_csp_hash(script),
        )
    )


class _Door:
    """The one way by which anything gets onto the page."""

    def __init__(self, redactor: Redactor) -> None:
        self.redact = redactor.text

    def show(self, value: Any) -> Any:
        """Jinja's ``finalize``: runs on every printed expression, before escaping."""
        if value is None:
            return ""
        if hasattr(value, "__html__") or isinstance(value, int | float):
            return value
        return text.clean(self.redact(str(value)))

    def pack(self, value: Any) -> str:
        """Data for the page's script, cleaned at any depth and packed."""
        return pack(self._clean(value))

    def _clean(self, value: Any) -> Any:
        if isinstance(value, str):
            return text.clean(self.redact(value))
        if isinstance(value, dict):
            return {key: self._clean(each) for key, each in value.items()}
        if isinstance(value, list | tuple):
            return [self._clean(each) for each in value]
        return value


def _environment(door: _Door) -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=door.show,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        reward=text.reward,
        duration=text.duration,
        money=text.money,
        count=text.count,
        words=words,
        glyph=GLYPHS.__getitem__,
        verdict_words=WORDS.__getitem__,
        moment=_moment,
        pack=door.pack,
    )
    return environment


def _csp_hash(content: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()


def _moment(at: datetime) -> str:
    return f"{at.astimezone():%Y-%m-%d %H:%M:%S}"


@dataclass(frozen=True)
class _Span:
    """From the first episode's beginning to the last one's end."""

    started_at: datetime
    finished_at: datetime

    @property
    def seconds(self) -> float:
        return (self.finished_at - self.started_at).total_seconds()


def _span(results: Sequence[EpisodeResult]) -> _Span | None:
    if not results:
        return None
    return _Span(
        min(each.ran.started_at for each in results),
        max(each.ran.finished_at for each in results),
    )


def _identity(results: Sequence[EpisodeResult]) -> str:
    """What ran on what, in one line."""
    agents = {" ".join(filter(None, [e.agent.name, e.agent.version])) for e in results if e.agent}
    models = {each.agent.model for each in results if each.agent and each.agent.model}
    datasets = {name for each in results if (name := dataset_of(each))}
    parts = [_few(datasets, "datasets"), _few(agents, "agents"), _few(models, "models")]
    return " · ".join(part for part in parts if part)


def _few(names: set[str], many: str) -> str:
    return ", ".join(sorted(names)) if len(names) <= 3 else f"{len(names)} {many}"


def _verdicts(results: Iterable[EpisodeResult]) -> dict[str, int]:
    """How many episodes each status button shows."""
    every = [each.verdict for each in results]
    shown = ("passed", "failed", "error", *sorted({*every} - {"passed", "failed", "error"}))
    return {verdict: every.count(verdict) for verdict in shown}
