"""The pass rule."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from pytest_harbor.episode.outcome import Outcome
from pytest_harbor.episode.result import Fault, Interval, StepResult, TurnRecord
from pytest_harbor.episode.verdict import rule

NOW = Interval(
    started_at=datetime(2026, 1, 1, tzinfo=UTC),
    finished_at=datetime(2026, 1, 1, tzinfo=UTC),
    seconds=1.0,
)


def steps(*rewards: float | None, gate: int | None = None, ended: str = "exited"):
    """Steps with these rewards; None was never reached; the step at ``gate`` missed its gate."""
    return [
        StepResult(
            name=f"s{i}",
            index=i,
            reward=reward if reward is not None else 0.0,
            ran=NOW if reward is not None else None,
            gate="min_reward ≥ 1, got 0" if i == gate else None,
            turn=TurnRecord(ran=NOW, ended=ended, message="" if ended == "exited" else ended),
        )
        for i, reward in enumerate(rewards)
    ]


def judged(found, **terms):
    terms = {"reward": None, "strategy": "mean", "threshold": 1.0, "fault": None, **terms}
    ruling = rule(found, **terms)
    return ruling.outcome, [step.verdict for step in ruling.steps]


def test_under_mean_with_threshold_one_each_low_step_fails() -> None:
    assert judged(steps(1.0, 0.5, 1.0), reward=0.83) == (
        Outcome.FAILED,
        ["passed", "failed", "passed"],
    )


def test_under_final_only_the_last_step_decides() -> None:
    assert judged(steps(0.0, 0.0, 1.0), reward=1.0, strategy="final") == (
        Outcome.PASSED,
        ["xfailed", "xfailed", "passed"],
    )
    assert judged(steps(1.0, 0.0), reward=0.0, strategy="final") == (
        Outcome.FAILED,
        ["passed", "failed"],
    )


def test_under_a_lower_threshold_no_single_step_decides() -> None:
    assert judged(steps(0.2, 1.0), reward=0.6, threshold=0.5) == (
        Outcome.PASSED,
        ["xfailed", "passed"],
    )
    assert judged(steps(0.2, 0.4), reward=0.3, threshold=0.5) == (
        Outcome.FAILED,
        ["xfailed", "xfailed"],
    )


def test_a_missed_gate_fails_even_where_the_reward_would_do() -> None:
    outcome, verdicts = judged(steps(1.0, 1.0, None, gate=1), reward=0.67, threshold=0.5)
    assert outcome is Outcome.GATE_STOPPED
    assert verdicts == ["passed", "failed", "skipped"]


def test_a_fault_is_an_error_and_decides_nothing() -> None:
    fault = Fault(outcome=Outcome.SANDBOX_DIED, phase="agent", message="gone")
    found = steps(0.0, 0.0, None)
    found[1] = found[1].model_copy(update={"fault": fault, "reward": None})
    assert judged(found, fault=fault) == (
        Outcome.SANDBOX_DIED,
        ["xfailed", "error", "skipped"],
    )


@pytest.mark.parametrize(
    ("ended", "outcome"),
    [
        ("timeout", Outcome.AGENT_TIMEOUT),
        ("error", Outcome.AGENT_ERROR),
        ("exited", Outcome.FAILED),
    ],
)
def test_how_the_turn_ended_names_a_failure_but_not_a_success(ended, outcome) -> None:
    assert judged(steps(0.0, ended=ended), reward=0.0)[0] is outcome
    assert judged(steps(1.0, ended=ended), reward=1.0)[0] is Outcome.PASSED


def test_summing_floats_does_not_cost_a_pass() -> None:
    assert judged(steps(*[0.1] * 10), reward=0.1 * 10 - 1e-16, threshold=1.0)[0] is Outcome.PASSED


def test_every_outcome_has_a_meaning_that_agrees_with_itself() -> None:
    for outcome in Outcome:
        meaning = outcome.meaning
        assert (meaning.shown == "error") is not meaning.trusted
        assert meaning.text
    assert [o for o in Outcome if o.meaning.shown == "passed"] == [Outcome.PASSED]
