"""B116: no canary gets into a report, in whatever spelling and field it arrives."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from urllib.parse import quote

import pytest
from junit_tools import cases
from page_tools import everything
from sample_job import episode, fault, interval, step, write

from pytest_harbor.episode.outcome import Outcome
from pytest_harbor.episode.result import AgentIdentity, GradeRecord, RecipeValue, TurnRecord
from pytest_harbor.redaction import Redactor
from pytest_harbor.report.html import write_report
from pytest_harbor.report.junit import rewrite

CANARY = 'cana"ry/value+1'
SPELLINGS = {
    "plain": CANARY,
    "base64": base64.b64encode(f"user:{CANARY}".encode()).decode(),
    "url": quote(CANARY, safe=""),
    "json": json.dumps(CANARY),
    "shape": "ghp_" + "a1B2c3D4e5" * 4,
}
ROW = (
    '<testsuites><testsuite name="pytest"><testcase classname="d.t.task.toml" name="t" time="1">'
    '<properties><property name="config" value={v}/></properties>'
    "<failure message={v}>{t}</failure><system-out>{t}</system-out><system-err>{t}</system-err>"
    "</testcase></testsuite></testsuites>"
)


@pytest.mark.parametrize("leak", SPELLINGS.values(), ids=SPELLINGS.keys())
def test_b116_a_canary_in_every_field(tmp_path: Path, leak: str) -> None:
    from xml.sax.saxutils import escape, quoteattr

    turn = TurnRecord(
        ran=interval(1), ended="error", message=leak, log="a.log", trajectory="t.json", budget=leak
    )
    it = fault(Outcome.NO_REWARD, "verify", leak)
    result = episode(
        "d/t/task.toml::t",
        [
            step(
                "a",
                0,
                None,
                turn=turn,
                grade=GradeRecord(ran=interval(1), log="v.txt"),
                fault=it,
                verdict="error",
                verdict_reason=leak,
                warnings=(leak,),
            )
        ],
        Outcome.NO_REWARD,
        None,
        fault=it,
        verdict_reason=leak,
        agent=AgentIdentity(name="a", model=leak),
        recipe=(RecipeValue(key="agent.env.KEY", value=leak, source="harbor.yaml:3"),),
        warnings=(leak,),
    )
    call = {"tool_call_id": "1", "function_name": "Bash", "arguments": {"command": leak}}
    chat = {"steps": [{"source": "agent", "message": leak, "tool_calls": [call]}]}
    files = {"a.log": leak, "v.txt": leak, "t.json": json.dumps(chat), "services/s.log": leak}
    write(tmp_path / "job", result, files)
    redactor = Redactor([CANARY])

    page = tmp_path / "r.html"
    write_report(tmp_path / "job", page, [result], redactor=redactor)
    assert_gone(everything(page), leak)

    xml = tmp_path / "out.xml"
    xml.write_text(ROW.format(v=quoteattr(leak), t=escape(leak)))
    names = {result.key: result.episode}
    assert rewrite(xml, tmp_path / "job", names, root=tmp_path, redactor=redactor) is None
    assert len(cases(xml)) == 2
    assert_gone(xml.read_text(), leak)


def assert_gone(text: str, leak: str) -> None:
    assert "[redacted]" in text
    for trace in ("cana", "ry/value", "ry%2Fvalue", base64.b64encode(b"ry/val").decode()[:8]):
        assert trace not in text
    assert leak.strip('"') not in text
