"""B114: where nobody graded there is no number, and in no mean a zero that nobody sees."""

from __future__ import annotations

from pathlib import Path

import pytest
from junit_tools import cases, suite_properties
from played import key_of, play
from sample_job import episode, fault, step, write

from pytest_harbor.episode.outcome import Outcome
from pytest_harbor.episode.trial import trial_document
from pytest_harbor.report.summary import render_totals, totals

ERRORS = [each for each in Outcome if not each.is_graded]


@pytest.mark.parametrize("outcome", ERRORS)
def test_b114_no_reward_anywhere(tmp_path: Path, outcome: Outcome) -> None:
    result = broken(outcome)
    assert trial_document(result)["verifier_result"] is None
    sums = totals([result, episode("d/t/task.toml::t")])
    assert sums.mean_over_valid == 1.0
    assert sums.mean_over_all == 0.5
    text = "\n".join(render_totals(sums))
    assert "1.0 over the 1 graded" in text
    assert "0.5 over all 2 (errors as 0)" in text
    assert f"1 {outcome}" in text


def test_b114_no_property_in_junit(pytester: pytest.Pytester) -> None:
    results = [broken(each, key_of(each)) for each in ERRORS if each is not Outcome.INTERRUPTED]
    xml = play(pytester, results)
    for each in cases(xml):
        if each.ending == "error":
            assert "harbor.reward" not in each.properties
            assert "harbor.reward_as_harbor" not in each.properties
    assert "harbor.mean_reward_valid" not in suite_properties(xml)
    assert suite_properties(xml)["harbor.excluded"] == str(len(results))


def broken(outcome: Outcome, key: str = "d/x/task.toml::x"):
    it = fault(outcome)
    last = step("b", 1, None, fault=it, outcome=outcome, verdict="error", grade=None)
    first = step("a", 0, None, grade=None)
    return episode(key, steps=[first, last], outcome=outcome, reward=None, fault=it)


def test_b114_a_result_on_disk_keeps_the_null(tmp_path: Path) -> None:
    folder = write(tmp_path, broken(Outcome.SANDBOX_DIED))
    assert '"reward": null' in (folder / "result.json").read_text()
