"""B118: with --harbor-private-verifier the reports say nothing of the hidden tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from episodes import one_step
from junit_tools import cases
from page_tools import everything
from sample_job import episode, fault, interval, step, write

from pytest_harbor.episode.outcome import Outcome
from pytest_harbor.episode.result import GradeRecord, Hygiene
from pytest_harbor.report.html import write_report
from pytest_harbor.report.junit import rewrite

CANARY = "test_hidden_canary"
ROW = (
    '<testsuites><testsuite name="pytest"><testcase classname="d.t.task.toml" name="t" time="1">'
    "</testcase></testsuite></testsuites>"
)


@pytest.mark.docker
@pytest.mark.parametrize("private", [False, True])
def test_b118_the_option_holds_for_both_reports(pytester: pytest.Pytester, private: bool) -> None:
    pytester.makeini("[pytest]\n")
    one_step(pytester.path / "ds", test=f"echo {CANARY}")
    options = ["--harbor-private-verifier"] if private else []
    pytester.runpytest_subprocess(
        "ds", "--junitxml=out.xml", "--harbor-html=r.html", *options
    ).assert_outcomes(errors=1)
    for report in ("out.xml", "r.html"):
        path = pytester.path / report
        text = everything(path) if path.suffix == ".html" else path.read_text()
        assert (CANARY in text) is not private, report


def test_b118_a_canary_in_the_verifiers_output(tmp_path: Path) -> None:
    it = fault(Outcome.NO_REWARD, "verify", f"no reward; its output ends:\n{CANARY}")
    result = episode(
        "d/t/task.toml::t",
        [
            step(
                "a",
                0,
                None,
                grade=GradeRecord(ran=interval(1), log="v.txt", rewards={CANARY: 1.0}),
                fault=it,
                verdict="error",
                verdict_reason=f"no_reward: {it.message}",
                hygiene=Hygiene(removed=(f"/tmp/{CANARY}",)),
                warnings=(f"odd: {CANARY}",),
            )
        ],
        Outcome.NO_REWARD,
        None,
        fault=it,
        verdict_reason=f"no_reward (verify): {it.message}",
    )
    write(tmp_path / "job", result, {"v.txt": CANARY})
    page, xml = tmp_path / "r.html", tmp_path / "out.xml"
    names = {result.key: result.episode}

    for private in (False, True):
        write_report(tmp_path / "job", page, [result], private_verifier=private)
        xml.write_text(ROW)
        options = {"root": tmp_path, "shown": {result.key: "error"}, "private_verifier": private}
        assert rewrite(xml, tmp_path / "job", names, **options) is None  # type: ignore[arg-type]
        assert len(cases(xml)) == 2
        assert (CANARY in everything(page)) is not private
        assert (CANARY in xml.read_text()) is not private
