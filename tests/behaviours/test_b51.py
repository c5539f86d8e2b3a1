"""B51: no text, wherever it came from, makes a report unreadable."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from junit_tools import cases
from played import key_of, play
from sample_job import episode, step, write

from pytest_harbor.episode.outcome import Outcome
from pytest_harbor.episode.result import AgentIdentity
from pytest_harbor.report.junit import rewrite

HOSTILE = "\x00 \x1b[31mred\x1b[0m \ufffe ]]> <b> & \"'"
HEAD = '<testsuites><testsuite name="pytest"><testcase classname="a.task.toml" name="t" time="1"/>'


def test_b51_in_names_messages_and_properties(pytester: pytest.Pytester) -> None:
    result = episode(
        key_of("t1"),
        steps=[step(f"s{HOSTILE}", 0, 0.0, verdict_reason=HOSTILE)],
        outcome=Outcome.FAILED,
        reward=0.0,
        verdict_reason=HOSTILE,
        agent=AgentIdentity(name=HOSTILE, model=HOSTILE),
    )
    xml = play(pytester, [result], "-o", "junit_logging=all")
    found = cases(xml)
    shown = "#x00 red #xFFFE ]]> <b> & \"'"
    assert found[1].name == f"test_task[t1][s{shown}]"
    assert found[1].message == shown
    assert found[0].properties["harbor.agent"] == shown
    assert "\x1b" not in xml.read_text()
    assert "x1B" not in "".join(each.name + each.message for each in found)


@given(st.text(st.characters(codec="utf-8"), min_size=1, max_size=30))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_b51_any_text(tmp_path: Path, text: str) -> None:
    key = "a/task.toml::t"
    result = episode(
        key,
        steps=[step(text, 0, 0.0, verdict_reason=text), step("b", 1)],
        outcome=Outcome.FAILED,
        reward=0.0,
        verdict_reason=text,
        agent=AgentIdentity(name=text),
    )
    write(tmp_path, result)
    xml = tmp_path / "out.xml"
    xml.write_text(f"{HEAD}</testsuite></testsuites>")
    shown = {key: "failed"}
    assert rewrite(xml, tmp_path, {key: result.episode}, root=tmp_path, shown=shown) is None
    assert len(cases(xml)) == 3
