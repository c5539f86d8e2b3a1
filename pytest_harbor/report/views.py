"""Episodes and steps as the HTML page shows them, with their logs and links.

Plain data for the templates, so that those hold no decisions.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

from pytest_harbor.episode.result import EpisodeResult, StepResult, Verdict
from pytest_harbor.episode.trajectories import NAME
from pytest_harbor.report.charts import Segment, timeline
from pytest_harbor.report.episodes import reason_of, verdict_of, why
from pytest_harbor.report.facts import (
    Chip,
    Fact,
    episode_facts,
    granted_names,
    item_name,
    step_chips,
    step_facts,
    words,
)
from pytest_harbor.report.inline import Budget, excerpt
from pytest_harbor.report.talk import Exchange, Talk, as_messages, find_talk
from pytest_harbor.report.text import number_of, size
from pytest_harbor.report.transcript import Transcript, read_transcript

GLYPHS: dict[Verdict, str] = {
    "passed": "✓",
    "failed": "✗",
    "xfailed": "○",
    "error": "!",
    "skipped": "·",
}
WORDS: dict[Verdict, str] = {
    "passed": "passed",
    "failed": "failed",
    "xfailed": "low, does not decide",
    "error": "error",
    "skipped": "not reached",
}


@dataclass(frozen=True)
class Place:
    """Where the page lies and where the episodes' folders lie, for links and reading."""

    job: Path
    page: Path

    @cached_property
    def _to_job(self) -> str:
        return Path(os.path.relpath(self.job.absolute(), self.page.absolute().parent)).as_posix()

    def link(self, episode: str, file: str = "") -> str:
        """A relative link; whatever a file is called, it is no scheme and no other host."""
        path = "/".join(part for part in (self._to_job, episode, file) if part and part != ".")
        return "./" + quote(path, safe="/")


@dataclass(frozen=True)
class Log:
    """A log of a step, inside the page if it fits there."""

    title: str
    kind: Literal["chat", "text"]
    link: str
    note: str
    packed: str | None = None
    opened: bool = False
    """Whether it opens with its step: what one looks for first after a failure."""

    def plain(self) -> dict[str, Any]:
        """What the page's script needs to know, besides the packed data."""
        return {
            "title": self.title,
            "kind": self.kind,
            "link": self.link,
            "note": self.note,
            "here": self.packed is not None,
            "opened": self.opened,
        }


@dataclass(frozen=True)
class StepView:
    """A step of an episode."""

    step: StepResult
    chips: tuple[Chip, ...]
    facts: tuple[Fact, ...]
    logs: tuple[Log, ...]
    told: bool = True
    """Whether the reason is to be said here; False where the episode says the same above."""

    @property
    def verdict(self) -> Verdict:
        """How the step is shown."""
        return verdict_of(self.step)

    @property
    def reason(self) -> str:
        """Why."""
        return reason_of(self.step)

    @property
    def opened(self) -> bool:
        """Steps that explain a failure lie open."""
        return self.verdict in ("failed", "error")


@dataclass(frozen=True)
class EpisodeView:
    """An episode: its row, and what opens under it."""

    result: EpisodeResult
    name: str
    folder: str
    facts: tuple[Fact, ...]
    timeline: tuple[Segment, ...]
    logs: tuple[Log, ...]
    steps: tuple[StepView, ...]

    @property
    def reason(self) -> str:
        """Why the episode ended as it did."""
        return why(self.result)

    @property
    def several(self) -> bool:
        """Whether there are steps to tell apart."""
        return not all(view.step.implicit for view in self.steps)

    @property
    def as_harbor(self) -> float | None:
        """Harbor's number, where it differs from ours."""
        ours, theirs = self.result.reward, self.result.reward_as_harbor
        return None if theirs is None or ours == theirs else theirs

    def details(self) -> list[dict[str, Any]]:
        """Facts and logs of each step and, last, of the episode: what the script lays out."""
        parts = [*((step.facts, step.logs) for step in self.steps), (self.facts, self.logs)]
        return [
            {"facts": [asdict(fact) for fact in facts], "logs": [log.plain() for log in logs]}
            for facts, logs in parts
        ]

    @property
    def search(self) -> str:
        """What the page's filter looks at."""
        agent = self.result.agent
        parts = [self.result.key, words(self.result.outcome), self.result.verdict]
        parts += [agent.name, agent.model or ""] if agent else []
        return " ".join(parts)


class Viewer:
    """Makes views; reads logs as far as the budget allows."""

    def __init__(self, place: Place, budget: Budget, redact: Callable[[str], str]) -> None:
        self._place = place
        self._budget = budget
        self._redact = redact

    def episode(self, result: EpisodeResult) -> EpisodeView:
        """The view of an episode; its logs are read here."""
        talk = find_talk(result, self._place.job / result.episode, self._redact)
        return EpisodeView(
            result=result,
            name=item_name(result),
            folder=self._place.link(result.episode) + "/",
            facts=tuple(episode_facts(result)),
            timeline=tuple(timeline(result)),
            logs=(*self._trajectory(result), *self._service_logs(result)),
            steps=tuple(self._step(result, step, talk) for step in result.steps),
        )

    def _step(self, result: EpisodeResult, step: StepResult, talk: Talk | None) -> StepView:
        chat = self._transcript(result, step)
        said = talk.by_step.get(step.index) if talk is not None else None
        return StepView(
            step=step,
            chips=tuple(step_chips(step, chat, talk.asked.get(step.index) if talk else None)),
            facts=tuple(step_facts(step, chat)),
            logs=(*self._said(result, talk, said), *self._logs(result, step, chat)),
            told=step.fault is None or step.fault != result.fault,
        )

    def _transcript(self, result: EpisodeResult, step: StepResult) -> Transcript | None:
        if step.turn is None or step.turn.trajectory is None:
            return None
        path = self._place.job / result.episode / step.turn.trajectory
        return read_transcript(path, to_user=granted_names(step.grants), redact=self._redact)

    def _logs(
        self, result: EpisodeResult, step: StepResult, chat: Transcript | None
    ) -> Iterator[Log]:
        failed = verdict_of(step) in ("failed", "error")
        turn = step.turn
        if turn is not None and turn.trajectory is not None:
            if chat is None:
                yield from self._text("Transcript", result, turn.trajectory)
            else:
                yield self._chat(result, turn.trajectory, chat)
        if turn is not None and turn.log is not None:
            yield from self._text("Agent log", result, turn.log)
        if step.grade is not None and step.grade.log is not None:
            yield from self._text("Verifier output", result, step.grade.log, opened=failed)

    def _said(
        self, result: EpisodeResult, talk: Talk | None, said: Sequence[Exchange] | None
    ) -> Iterator[Log]:
        if talk is not None and said:
            file = talk.path.relative_to(self._place.job / result.episode).as_posix()
            yield Log(
                title="Talk with the user",
                kind="chat",
                link=self._place.link(result.episode, file),
                note=number_of(len(said), "question"),
                packed=self._budget.take_first({"messages": as_messages(said)}),
            )

    def _chat(self, result: EpisodeResult, file: str, chat: Transcript) -> Log:
        path = self._place.job / result.episode / file
        return Log(
            title="Transcript",
            kind="chat",
            link=self._place.link(result.episode, file),
            note=chat.title,
            packed=self._budget.take(path, lambda: {"messages": chat.messages}),
        )

    def _text(
        self, title: str, result: EpisodeResult, file: str, *, opened: bool = False
    ) -> Iterator[Log]:
        path = self._place.job / result.episode / file
        found = excerpt(path, self._redact)
        if found is not None and (found[1] or opened):
            text, length = found
            yield Log(
                title=title,
                kind="text",
                link=self._place.link(result.episode, file),
                note=size(length),
                packed=self._budget.take(path, lambda: {"text": text}),
                opened=opened,
            )

    def _trajectory(self, result: EpisodeResult) -> Iterator[Log]:
        """The episode's trajectory, for tools to load: its turns are on the page already."""
        path = self._place.job / result.episode / NAME
        if path.is_file():
            link, length = self._place.link(result.episode, NAME), size(path.stat().st_size)
            yield Log("Trajectory of the episode", "text", link, f"ATIF, {length}")

    def _service_logs(self, result: EpisodeResult) -> Iterator[Log]:
        """What the sidecars printed, as the run folder has it."""
        folder = self._place.job / result.episode
        for path in sorted(folder.glob("services/*.log")):
            file = path.relative_to(folder).as_posix()
            yield from self._text(f"Log of {path.stem}", result, file)


def wanted_logs(job: Path, results: Iterable[EpisodeResult]) -> Iterator[tuple[int, Path]]:
    """The logs of all episodes with their rank for the page's budget.

    What explains a failure comes first, then the rest of that episode, then the passed ones.
    """
    for result in results:
        folder, fine = job / result.episode, result.verdict == "passed"
        for step in result.steps:
            rank = 2 if fine else 1 if verdict_of(step) == "passed" else 0
            turn = (step.turn.trajectory, step.turn.log) if step.turn else ()
            for file in (step.grade.log if step.grade else None, *turn):
                if file is not None:
                    yield rank, folder / file
        for path in folder.glob("services/*.log"):
            yield (2 if fine else 1), path
