"""B21: the verifier's budget is test.sh's alone, and a test that hangs is not run twice."""

from __future__ import annotations

from pathlib import Path

import pytest
from episodes import one_step, play

pytestmark = pytest.mark.docker


def test_b21_a_slow_start_and_large_tests_cost_the_verifier_nothing(tmp_path: Path) -> None:
    toml = """
    [verifier]
    timeout_sec = 1.5
    [environment.healthcheck]
    command = "test -e /tmp/late || { sleep 2; touch /tmp/late; exit 1; }"
    interval_sec = 0.1
    """
    large = {f"tests/data/{number}.bin": bytes(8_000_000) for number in range(4)}
    result = play(one_step(tmp_path, toml, **large)).result
    assert (result.outcome, result.reward) == ("passed", 1)
    grade = result.steps[0].grade
    assert grade is not None
    assert grade.budget == "1.5 s ([verifier] timeout_sec)"
    assert grade.ran.seconds < 1.5


def test_b21_a_hanging_test_is_an_error_that_names_its_limit(tmp_path: Path) -> None:
    test = "echo started; (setsid sleep 60 &) ; sleep 60; echo 1 > /logs/verifier/reward.txt"
    task = one_step(tmp_path, "[verifier]\ntimeout_sec = 1", test=test)
    played = play(task)
    result = played.result
    assert (result.outcome, result.verdict) == ("verifier_timeout", "error")
    assert result.reward is None
    assert result.fault is not None
    assert "1 s ([verifier] timeout_sec), after 1" in result.fault.message
    assert "its output ends:\nstarted" in result.fault.message
    assert result.outcome.meaning.retry is False
    assert sum(event["event"] == "verify-start" for event in played.events()) == 1
    assert result.ran.seconds < 20


def test_b21_what_the_recipe_counts_as_zero_is_a_zero(tmp_path: Path) -> None:
    task = one_step(tmp_path, "[verifier]\ntimeout_sec = 1", test="sleep 60")
    result = play(task, recipe={"count_as_zero": ["verifier_timeout", "no_reward"]}).result
    assert (result.outcome, result.reward) == ("failed", 0)
    assert "verifier_timeout counts as 0 (a test: count_as_zero)" in result.steps[0].warnings[0]
    assert result.reward_as_harbor is None
