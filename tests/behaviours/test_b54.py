"""B54: junit and HTML show the same steps, each once, with the same verdicts."""

from __future__ import annotations

import pytest
from junit_tools import cases
from page_tools import episodes, read_page
from played import key_of, play
from sample_job import episode, step

from pytest_harbor.episode.outcome import Outcome
from pytest_harbor.report.html import write_report

ENDINGS = {"✓": None, "✗": "failure", "○": "skipped", "!": "error"}


def test_b54_five_steps_in_both(pytester: pytest.Pytester) -> None:
    low = step("build", 1, 0.5, verdict="xfailed", verdict_reason="does not decide")
    steps = [step("plan", 0), low, step("ship", 2), step("tests", 3), step("handoff", 4, 0.0)]
    result = episode(key_of("t1"), steps, Outcome.FAILED, 0.0)
    xml = play(pytester, [result])
    page = pytester.path / "r.html"
    write_report(pytester.path / "jobs" / "now", page, [result])
    prefix = "test_task[t1]["
    in_junit = [
        (each.name.removeprefix(prefix)[:-1], each.ending)
        for each in cases(xml)
        if each.name.startswith(prefix)
    ]
    [row] = episodes(read_page(page))
    in_page = [
        (each.all("span", class_="name")[0].text, ENDINGS[each.all("span", class_="glyph")[0].text])
        for each in row.all("details", class_="step")
    ]
    assert in_junit == in_page
    assert [name for name, _ in in_page] == ["plan", "build", "ship", "tests", "handoff"]
