"""What every report asks about an episode."""

from __future__ import annotations

from pathlib import Path

import pytest
from sample_job import episode, fault, interval, step, unreached, write

from pytest_harbor.episode.outcome import Outcome
from pytest_harbor.episode.result import (
    ArtifactRecord,
    EpisodeResult,
    GradeRecord,
    Hygiene,
    StepResult,
    TurnRecord,
)
from pytest_harbor.report.episodes import (
    is_valid,
    read_job,
    reason_of,
    telling_step,
    tokens_of,
    transcript_of,
    verdict_of,
    why,
    without_verifier_output,
)


def test_a_job_is_read_in_the_order_of_keys(tmp_path: Path) -> None:
    for name in "cab":
        write(tmp_path, episode(f"d/{name}/task.toml::{name}"))
    (tmp_path / "stray").mkdir()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "result.json").write_text("{")
    (tmp_path / "result.json").write_text("{}")
    assert [each.task for each in read_job(tmp_path)] == ["a", "b", "c"]
    assert read_job(tmp_path / "gone") == []


@pytest.mark.parametrize(
    ("it", "verdict"),
    [
        (step("a", 0, 0.5, verdict="xfailed"), "xfailed"),
        (step("a", 0, 1.0, verdict="skipped"), "passed"),
        (step("a", 0, 0.0, verdict="skipped"), "failed"),
        (step("a", 0, None, verdict="skipped", outcome=None), "error"),
        (step("a", 0, 1.0, verdict="skipped", fault=fault(Outcome.NO_REWARD)), "error"),
        (unreached("a", 0), "skipped"),
    ],
)
def test_verdict_of_a_step(it: StepResult, verdict: str) -> None:
    assert verdict_of(it) == verdict


def test_reasons_are_never_missing() -> None:
    assert reason_of(step("a", 0, None, verdict_reason="", fault=fault(Outcome.NO_REWARD))) == (
        "no_reward: it broke"
    )
    assert reason_of(unreached("a", 0, "")) == "not reached"
    assert reason_of(step("a", 0, None, verdict_reason="", outcome=None)) == "it did not end"
    broken = episode(outcome=Outcome.START_FAILED, reward=None, verdict_reason="")
    assert why(broken) == "start_failed: the Compose group did not become ready"
    it = fault(Outcome.START_FAILED, "group", "no network")
    assert why(broken.model_copy(update={"fault": it})) == "start_failed (group): no network"
    assert why(episode()) == ""


def test_the_step_that_tells_the_end() -> None:
    bad = step("b", 1, 0.0)
    assert telling_step(episode(steps=[step("a", 0), bad, step("c", 2)])) == bad
    last = step("b", 1)
    assert telling_step(episode(steps=[step("a", 0), last, unreached("c", 2)])) == last
    assert telling_step(episode(steps=[unreached("a", 0)])) is None


def test_numbers_nobody_counted_are_none() -> None:
    turn = TurnRecord(ran=interval(1), ended="exited", output_tokens=5, log="a.log")
    assert tokens_of(step("a", 0, turn=turn)) == 5
    assert tokens_of(step("a", 0)) is None
    assert tokens_of(unreached("a", 0)) is None
    assert transcript_of(step("a", 0, turn=turn)) == "a.log"


def test_an_error_with_a_reward_is_not_valid() -> None:
    assert not is_valid(episode(outcome=Outcome.USER_DEGRADED, reward=1.0))
    assert not is_valid(episode(outcome=Outcome.FAILED, reward=None))
    assert is_valid(episode(outcome=Outcome.NO_REWARD, reward=0.0, verdict="failed"))


def private_sample() -> EpisodeResult:
    """CANARY wherever something may quote the verifier; KEEP where nothing does."""
    it = fault(Outcome.NO_REWARD, "verify", "no reward file\nits output ends: CANARY")
    first = step(
        "a",
        0,
        1.0,
        grade=GradeRecord(
            ran=interval(1),
            log="CANARY.txt",
            reward_file="reward.json",
            rewards={"reward": 1.0, "test_CANARY": 1.0},
        ),
        hygiene=Hygiene(
            killed_before_grading=("KEEP",),
            killed_after_grading=("CANARY",),
            removed=("/tmp/CANARY", "/tmp/CANARY2"),
            changed=("/app/CANARY",),
        ),
        warnings=("no_reward counts as 0: CANARY",),
        artifacts=(
            ArtifactRecord(source="/logs/verifier/CANARY", destination="d", status="ok"),
            ArtifactRecord(source="/app/KEEP", destination="d", status="ok"),
        ),
    )
    second = step("b", 1, None, fault=it, verdict="error", verdict_reason=f"x {it.message}")
    third = unreached("c", 2, f"not reached: {it.outcome}: {it.message}")
    return episode(
        steps=[first, second, third],
        outcome=Outcome.NO_REWARD,
        reward=None,
        fault=it,
        rewards={"reward": 1.0, "test_CANARY": 0.5},
        verdict_reason=f"{it.outcome} ({it.phase}): {it.message}",
    )


def test_b118_nothing_of_the_verifier_is_left() -> None:
    hidden = without_verifier_output(private_sample())
    text = hidden.model_dump_json()
    assert "CANARY" not in text
    assert text.count("KEEP") == 2
    assert hidden.outcome is Outcome.NO_REWARD
    assert hidden.steps[0].reward == 1.0
    assert hidden.steps[0].hygiene.removed[0].startswith("2: not shown")
    assert hidden.verdict_reason.startswith("no_reward: the verifier wrote no reward")


def test_b118_faults_of_other_phases_stay() -> None:
    it = fault(Outcome.SANDBOX_DIED, "agent", "main is gone")
    result = episode(outcome=Outcome.SANDBOX_DIED, reward=None, fault=it, verdict_reason="x")
    assert without_verifier_output(result) == result
