"""B47: an attempt that another one superseded leaves no failure behind in junit."""

from __future__ import annotations

from pathlib import Path

import pytest
from junit_tools import cases
from sample_job import episode, step, write

from pytest_harbor.report.junit import rewrite

KEY = "d/t1/task.toml::t1"
ROW = '<testcase classname="d.t1.task.toml" name="t1" time="1">{}</testcase>'
FIRST = '<failure message="low">SUBFAILED</failure>'


@pytest.mark.parametrize(
    "rows",
    [ROW.format(FIRST), ROW.format(FIRST) + ROW.format("")],
    ids=["one testcase", "a testcase per attempt"],
)
def test_b47_a_superseded_attempt(tmp_path: Path, rows: str) -> None:
    """What rerunfailures leaves: the first attempt's subtests, then a passed item."""
    result = episode(KEY, steps=[step("a", 0), step("b", 1)])
    write(tmp_path, result)
    xml = tmp_path / "out.xml"
    xml.write_text(f'<testsuites><testsuite name="pytest">{rows}</testsuite></testsuites>')
    shown = {KEY: "passed"}
    assert rewrite(xml, tmp_path, {KEY: result.episode}, root=tmp_path, shown=shown) is None
    found = [(each.name, each.ending) for each in cases(xml)]
    assert found == [("t1", None), ("t1[a]", None), ("t1[b]", None)]
