"""Rewrites the user's junit file from result files, after pytest wrote it.

pytest puts a failed task's steps into one testcase with many ``<failure>``s, and forgets passed
ones. Here a task is one testcase and each of its steps another right after it, with counts that
match. Testcases of other tests stay as they are, in their order. The rows are testcase.py's.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from xml.etree import ElementTree as ET

from pytest_harbor.episode.outcome import Outcome
from pytest_harbor.episode.result import EpisodeResult, Verdict
from pytest_harbor.redaction import Redactor
from pytest_harbor.report.episodes import without_verifier_output
from pytest_harbor.report.summary import totals
from pytest_harbor.report.testcase import (
    ENDINGS,
    Files,
    Property,
    add_properties,
    bare_row,
    step_rows,
    task_row,
)
from pytest_harbor.report.text import escape

Key = tuple[str, str]
"""``classname`` and ``name`` of a testcase, which is what readers tell tests apart by."""


@dataclass(frozen=True)
class _Episode:
    """What is known of one testcase of ours."""

    nodeid: str
    folder: Path
    result: EpisodeResult | None
    shown: Verdict | None
    quotes: bool = False
    """Whether pytest has written a reason that may quote a verifier whose words are private."""
    key: Key = ("", "")


def rewrite(
    xml: Path,
    job: Path,
    episodes: Mapping[str, str],
    *,
    root: Path,
    prefix: str = "",
    shown: Mapping[str, Verdict] | None = None,
    redactor: Redactor | None = None,
    private_verifier: bool = False,
) -> str | None:
    """Rewrite ``xml`` in place; returns a warning when something kept it from doing so.

    Args:
        xml: the file that pytest wrote.
        job: the job folder.
        episodes: the episode's folder name of each node id.
        root: the folder that attachment paths are relative to (rootdir).
        prefix: pytest's ``--junit-prefix``.
        shown: how pytest showed an item itself, subtests aside; its last report counts. It matters
            where pytest has more to say than the episode: a failing fixture, an ``xfail`` mark, a
            user's own assertions, a rerun. Node ids left out are judged by the file alone.
        redactor: takes secrets out of what pytest itself wrote into our testcases.
        private_verifier: leave out what verifiers wrote.

    Never raises and never leaves half a file: on trouble the file stays as pytest wrote it.
    """
    if not episodes:
        return None
    try:
        known = [
            _read(nodeid, job / episodes[nodeid], (shown or {}).get(nodeid), private_verifier)
            for nodeid in sorted(episodes)
        ]
        return _rewrite(xml, known, root, prefix, redactor or Redactor())
    except Exception as error:
        return f"{xml} stays as pytest wrote it: {type(error).__name__}: {error}"


def _read(nodeid: str, folder: Path, shown: Verdict | None, private: bool) -> _Episode:
    result = EpisodeResult.read(folder)
    if result is None or not private:
        return _Episode(nodeid, folder, result, shown)
    quotes = result.fault is not None or any(step.fault is not None for step in result.steps)
    return _Episode(nodeid, folder, without_verifier_output(result), shown, quotes)


def _rewrite(
    xml: Path, episodes: Sequence[_Episode], root: Path, prefix: str, redactor: Redactor
) -> str | None:
    if not xml.is_file():
        return f"{xml} is not a file that could be rewritten; steps are missing in it"
    # pytest does not escape class names: whatever stands in them, the file can be read.
    text = escape(xml.read_text("utf-8", "replace"))
    document = ET.fromstring(text)  # noqa: S314  # pytest's own output
    episodes = _name_stopped(document, episodes, prefix)
    placed = 0
    for suite in document.iter("testsuite"):
        keys = {_key(case) for case in suite.findall("testcase")}
        found = [(each, _find(each.nodeid, keys, prefix)) for each in episodes]
        here = [replace(each, key=key) for each, key in found if key is not None]
        if here:
            _rewrite_suite(suite, here, root, redactor)
            _add_run_properties(suite, here, redactor)
        placed += len(here)
    _count(document)
    _write(xml, document)
    missing = len(episodes) - placed
    return f"{xml} has no testcase for {missing} of {len(episodes)} tasks" if missing else None


def _write(xml: Path, document: ET.Element) -> None:
    """Write beside the file, then rename: a reader sees the old file or the new one."""
    target = xml.resolve()
    beside = target.with_name(f".{target.name}.{os.getpid()}.new")
    try:
        ET.ElementTree(document).write(beside, encoding="utf-8", xml_declaration=True)
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)


# --- finding testcases


def _name_stopped(
    document: ET.Element, episodes: Sequence[_Episode], prefix: str
) -> list[_Episode]:
    """Give a testcase to each episode that was stopped; pytest leaves one without a name, or none.

    What is shown of it is its own verdict.
    """
    keys = {_key(case) for case in document.iter("testcase")}
    suite = next(document.iter("testsuite"), document)
    nameless = (case for case in suite.findall("testcase") if not case.get("name"))
    settled: list[_Episode] = []
    for each in episodes:
        stopped = each.result is not None and each.result.outcome is Outcome.INTERRUPTED
        if each.result is None or not stopped or _find(each.nodeid, keys, prefix) is not None:
            settled.append(each)
            continue
        classname, name = next(_candidates(each.nodeid, prefix))
        case = next(nameless, None)
        case = ET.SubElement(suite, "testcase") if case is None else case
        case.attrib.update(classname=classname, name=name)
        settled.append(replace(each, shown=each.result.verdict))
    return settled


def _key(case: ET.Element) -> Key:
    return case.get("classname", ""), case.get("name", "")


def _find(nodeid: str, keys: set[Key], prefix: str) -> Key | None:
    return next((key for key in _candidates(nodeid, prefix) if key in keys), None)


def _candidates(nodeid: str, prefix: str) -> Iterator[Key]:
    """The testcase keys that pytest makes of a node id.

    pytest 9.2 looks for parameters after the first ``::``, older ones after the first ``[``.
    """
    path, colons, rest = nodeid.partition("::")
    names, bracket, params = rest.partition("[")
    yield _mangled([path, *names.split("::")] if colons else [path], bracket + params, prefix)
    path, bracket, params = nodeid.partition("[")
    yield _mangled(path.split("::"), bracket + params, prefix)


def _mangled(names: list[str], params: str, prefix: str) -> Key:
    names[0] = names[0].replace("/", ".").removesuffix(".py")
    names[-1] += params
    *classes, name = names
    return escape(".".join([prefix, *classes] if prefix else classes)), escape(name)


# --- rebuilding a suite


def _rewrite_suite(
    suite: ET.Element, episodes: Sequence[_Episode], root: Path, redactor: Redactor
) -> None:
    """Put each episode's rows where the testcases of episodes stood, ordered by node id.

    xdist reports tasks in the order in which they end; the node ids' order is always the same.
    """
    ours = {each.key for each in episodes}
    written: dict[Key, list[ET.Element]] = {}
    for case in suite.findall("testcase"):
        written.setdefault(_key(case), []).append(case)
    blocks = iter([_rows(each, written, root, redactor) for each in episodes])
    children: list[ET.Element] = []
    seen: set[Key] = set()
    for child in suite:
        key = _key(child)
        if child.tag != "testcase" or key not in ours:
            children.append(child)
        elif key not in seen:
            seen.add(key)
            children.extend(next(blocks))
    suite[:] = children


def _rows(
    episode: _Episode, written: Mapping[Key, Sequence[ET.Element]], root: Path, redactor: Redactor
) -> list[ET.Element]:
    """The task's testcase, then those of steps that have none yet."""
    mine = written[episode.key]
    if episode.quotes:
        _empty_endings(mine)
    if episode.result is None:
        return [_redacted(bare_row(mine), redactor)]
    files = Files(episode.folder, root)
    task = task_row(episode.result, episode.shown, mine, files)
    steps = step_rows(episode.result, task, files)
    new = [row for name, row in steps if (episode.key[0], name) not in written]
    return [_redacted(row, redactor) for row in (task, *new)]


def _empty_endings(cases: Sequence[ET.Element]) -> None:
    """Take out what pytest itself wrote of an ending."""
    for ending in (child for case in cases for child in case if child.tag in ENDINGS):
        ending.text = ""
        ending.attrib.pop("message", None)


def _redacted(parent: ET.Element, redactor: Redactor) -> ET.Element:
    """Without secrets; a testcase's own attributes are its identity and stay."""
    for element in parent.iter():
        if element.text:
            element.text = redactor.text(element.text)
        if element is not parent:
            for name, value in element.attrib.items():
                element.set(name, redactor.text(value))
    return parent


def _add_run_properties(
    suite: ET.Element, episodes: Sequence[_Episode], redactor: Redactor
) -> None:
    """What the run came to, on the suite; Jenkins and others read it there."""
    results = [each.result for each in episodes if each.result is not None]
    sums = totals(results)
    agents = [each.agent for each in results if each.agent is not None]
    properties: list[Property] = [
        ("harbor.job", episodes[0].folder.parent.name),
        ("harbor.agent", ", ".join(sorted({each.name for each in agents})) or None),
        ("harbor.model", ", ".join(sorted({each.model for each in agents if each.model})) or None),
        ("harbor.episodes", sums.episodes),
        ("harbor.resolved", sums.resolved),
        ("harbor.valid", sums.valid),
        ("harbor.excluded", sums.episodes - sums.valid),
        ("harbor.mean_reward_valid", sums.mean_over_valid),
        ("harbor.mean_reward_all", sums.mean_over_all),
        ("harbor.cost_usd", sums.cost_usd),
        ("harbor.tokens", sums.tokens),
    ]
    before = ET.Element("testsuite")
    for each in suite.findall("properties"):
        suite.remove(each)
        before.append(each)
    add_properties(suite, [before], properties)
    _redacted(suite[0], redactor)


def _count(document: ET.Element) -> None:
    """Set every suite's counts from the testcases in it: each counts once, by its gravest ending.

    Totals on ``<testsuites>`` are only corrected where somebody wrote some.
    """
    for suite in document.iter():
        if suite.tag not in ("testsuite", "testsuites"):
            continue
        cases = list(suite.iter("testcase"))
        gravest = [next((tag for tag in ENDINGS if e.find(tag) is not None), "") for e in cases]
        counts = {
            "tests": len(cases),
            "errors": gravest.count("error"),
            "failures": gravest.count("failure"),
            "skipped": gravest.count("skipped"),
        }
        for name, number in counts.items():
            if suite.tag == "testsuite" or suite.get(name) is not None:
                suite.set(name, str(number))
