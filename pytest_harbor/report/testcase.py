"""One episode as junit testcases: the task's row, and a row per step.

Each row has one ending at most, properties with plain decimal numbers, and attachment lines.
Where the rows go in the user's file is junit.py's matter.

A task's own row has the time that its steps do not account for, so that readers which add up
testcases arrive at the episode's length.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

from pytest_harbor.episode.result import EpisodeResult, StepResult, Verdict
from pytest_harbor.report.episodes import (
    reason_of,
    telling_step,
    tokens_of,
    transcript_of,
    verdict_of,
    why,
)
from pytest_harbor.report.text import clean, decimal, escape, one_line

ENDINGS = ("error", "failure", "skipped")
"""The gravest first."""

_ATTACHMENT = "[[ATTACHMENT|"
_OURS = "harbor."
_SUBTESTS_ONLY = re.compile(r"contains \d+ failed subtests?")

Property = tuple[str, str | float | None]


class Files:
    """The files of an episode as junit readers find them: relative to the project's root."""

    def __init__(self, folder: Path, root: Path) -> None:
        self._folder = folder.absolute()
        self._root = root.absolute()

    def shown(self, file: str | None) -> str | None:
        """The path to show; None for a file that is not there."""
        if file is None or not (self._folder / file).is_file():
            return None
        path = self._folder / file
        inside = path.is_relative_to(self._root)
        return clean(path.relative_to(self._root).as_posix() if inside else path.as_posix())

    def attachments(self, files: Iterable[str]) -> list[str]:
        """The lines that GitLab and Jenkins take for attachments."""
        paths = dict.fromkeys(self.shown(file) for file in files)
        return [f"{_ATTACHMENT}{path}]]" for path in paths if path is not None]


def task_row(
    result: EpisodeResult, shown: Verdict | None, written: Sequence[ET.Element], files: Files
) -> ET.Element:
    """The task's testcase, in place of those that pytest wrote for it."""
    in_steps = sum(step.ran.seconds for step in _named(result) if step.ran is not None)
    row = ET.Element("testcase", written[0].attrib)
    row.set("time", _seconds(result.ran.seconds - in_steps))
    telling = telling_step(result)
    properties: list[Property] = [
        ("harbor.reward", result.reward),
        ("harbor.reward_as_harbor", result.reward_as_harbor),
        ("harbor.outcome", str(result.outcome)),
        ("harbor.steps_run", result.steps_run),
        ("harbor.steps_total", result.steps_total),
        ("harbor.verifier_exit", result.verifier_exit),
        ("harbor.agent", result.agent.name if result.agent else None),
        ("harbor.model", result.agent.model if result.agent else None),
        ("harbor.cost_usd", result.cost_usd),
        ("harbor.tokens", result.tokens),
        ("harbor.transcript", files.shown(transcript_of(telling) if telling else None)),
    ]
    add_properties(row, written, properties)
    ending = _task_ending(result, shown or _shown_in_file(result, written), written)
    if ending is not None:
        row.append(ending)
    _add_output(row, written, files.attachments([*_files_of(telling), "result.json"]))
    return row


def step_rows(
    result: EpisodeResult, task: ET.Element, files: Files
) -> Iterator[tuple[str, ET.Element]]:
    """A testcase for each step, with its name; the implicit step of a simple task has none."""
    steps = _named(result)
    for step, name in zip(steps, _step_names(task.get("name", ""), steps), strict=True):
        yield name, _step_row(step, name, task, files)


def bare_row(written: Sequence[ET.Element]) -> ET.Element:
    """What pytest wrote for a task without a result, with the gravest ending only."""
    row = ET.Element("testcase", written[0].attrib)
    add_properties(row, written, [])
    endings = (_last(written, tag) for tag in ENDINGS)
    ending = next((each for each in endings if each is not None), None)
    if ending is not None:
        row.append(ending)
    _add_output(row, written, [])
    return row


def _step_row(step: StepResult, name: str, task: ET.Element, files: Files) -> ET.Element:
    row = ET.Element("testcase", {**task.attrib, "name": name})
    row.set("time", _seconds(step.ran.seconds if step.ran else 0.0))
    properties: list[Property] = [
        ("harbor.reward", step.reward),
        ("harbor.outcome", step.outcome and str(step.outcome)),
        ("harbor.verifier_exit", step.grade.exit_code if step.grade else None),
        ("harbor.cost_usd", step.turn.cost_usd if step.turn else None),
        ("harbor.tokens", tokens_of(step)),
        ("harbor.transcript", files.shown(transcript_of(step))),
    ]
    add_properties(row, [], properties)
    ending = _step_ending(step)
    if ending is not None:
        row.append(ending)
    _add_output(row, [], files.attachments(_files_of(step)))
    return row


def _named(result: EpisodeResult) -> list[StepResult]:
    return [step for step in result.steps if not step.implicit]


def _step_names(task: str, steps: Sequence[StepResult]) -> list[str]:
    """``<item name>[<step>]``; readable, and different even where hostile names look alike."""
    names: list[str] = []
    for step in steps:
        name = f"{task}[{clean(step.name)}]"
        names.append(name if name not in names else f"{task}[{step.index}:{escape(step.name)}]")
    return names


def _seconds(seconds: float) -> str:
    return f"{max(0.0, seconds):.3f}"


def _files_of(step: StepResult | None) -> list[str]:
    """The files worth attaching; GitLab takes only the first."""
    if step is None:
        return []
    turn = (step.turn.trajectory, step.turn.log) if step.turn else ()
    files = [*turn, step.grade.log if step.grade else None]
    return [file for file in files if file is not None]


# --- endings: one failure, error or skipped per testcase


def _ending(tag: str, message: str, text: str = "", kind: str | None = None) -> ET.Element:
    element = ET.Element(tag, {"type": kind} if kind else {}, message=one_line(message, 500))
    element.text = clean(text or message)
    return element


def _step_ending(step: StepResult) -> ET.Element | None:
    reason = reason_of(step)
    match verdict_of(step):
        case "passed":
            return None
        case "failed":
            return _ending("failure", reason or "failed")
        case "error":
            return _ending("error", reason or "error")
        case "xfailed":
            return _ending("skipped", reason, kind="pytest.xfail")
        case "skipped":
            return _ending("skipped", reason, kind="pytest.skip")


def _task_ending(
    result: EpisodeResult, shown: Verdict, written: Sequence[ET.Element]
) -> ET.Element | None:
    """The episode's verdict, unless pytest had the last word about the item."""
    if shown == "passed":
        return None
    if shown in ("xfailed", "skipped"):
        kept = _last(written, "skipped")
        return kept if kept is not None else _ending("skipped", why(result), kind="pytest.xfail")
    account = clean("\n".join(_account(result)))
    tag = "error" if "error" in (result.verdict, shown) else "failure"
    if result.verdict in ("error", shown):
        said = _said(written, account, result)
        return _ending(tag, why(result), "\n\n".join([account, *said]))
    # A fixture broke beside a good grade, or a user's own assertion failed: pytest has the word.
    of_pytest = _last(written, tag)
    text = _text_of(of_pytest, account)
    message = of_pytest.get("message") if of_pytest is not None else None
    return _ending(tag, message or account, "\n\n".join(filter(None, [text, account])))


def _shown_in_file(result: EpisodeResult, written: Sequence[ET.Element]) -> Verdict:
    """How pytest showed the item, as far as its testcases tell.

    Skipped steps put their ``<skipped>`` into the item's testcase; one more is the item's own.
    """
    endings = [child for case in written for child in case if child.tag in ENDINGS]
    tags = [each.tag for each in endings]
    if "error" in tags:
        return "error"
    if "failure" in tags:
        return "failed"
    of_steps = sum(verdict_of(step) in ("xfailed", "skipped") for step in _named(result))
    if len(tags) > of_steps:
        return "xfailed" if endings[-1].get("type") == "pytest.xfail" else "skipped"
    return "passed"


def _last(written: Sequence[ET.Element], tag: str) -> ET.Element | None:
    return next((e for case in reversed(written) for e in reversed(case.findall(tag))), None)


def _said(written: Sequence[ET.Element], account: str, result: EpisodeResult) -> Iterator[str]:
    """What pytest itself said about the item, where it says something new."""
    known = [why(result), *(step.verdict_reason for step in result.steps)]
    for tag in ("error", "failure"):
        text = _text_of(_last(written, tag), account)
        old = _SUBTESTS_ONLY.search(text) or any(each in text for each in known if each)
        if text and not old:
            yield text


def _text_of(ending: ET.Element | None, account: str) -> str:
    """An ending's text, without what a former rewrite put there."""
    if ending is None:
        return ""
    return (ending.text or ending.get("message") or "").replace(account, "").strip()


def _account(result: EpisodeResult) -> Iterator[str]:
    """The episode in a few lines, for readers that show only one text."""
    yield why(result) or str(result.outcome)
    if result.reward is not None:
        yield f"reward {decimal(result.reward)} ({result.reward_strategy} of the steps)"
    for step in _named(result):
        got = "-" if step.reward is None else decimal(step.reward)
        reason = one_line(reason_of(step))
        yield f"  {step.name}: {verdict_of(step)}, reward {got}  {reason}".rstrip()


# --- properties and output


def add_properties(
    row: ET.Element, written: Sequence[ET.Element], properties: Sequence[Property]
) -> None:
    """Ours, after those that users recorded; a value that nobody knows has no property."""
    kept = [
        each
        for case in written
        for each in case.iterfind("properties/property")
        if not each.get("name", "").startswith(_OURS)
    ]
    known = [(name, value) for name, value in properties if value is not None]
    if not kept and not known:
        return
    parent = ET.Element("properties")
    row.insert(0, parent)
    parent.extend(kept)
    for name, value in known:
        text = clean(value) if isinstance(value, str) else decimal(value)
        ET.SubElement(parent, "property", name=name, value=text)


def _add_output(row: ET.Element, written: Sequence[ET.Element], lines: Sequence[str]) -> None:
    for tag, extra in (("system-out", lines), ("system-err", ())):
        texts = [each.text or "" for case in written for each in case.findall(tag)]
        kept = [
            line for text in texts for line in text.splitlines() if not line.startswith(_ATTACHMENT)
        ]
        if kept or extra:
            ET.SubElement(row, tag).text = "\n".join([*kept, *extra]) + "\n"
