"""B15, B16, B92, B20: an agent out of time is ended with all that it started, then graded."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from episodes import GIVES_0, one_step, play

pytestmark = pytest.mark.docker

STUBBORN = """
echo solved > /app/work
nobody_stops_me() { trap '' TERM INT HUP; while :; do sleep 0.1; done; }
export -f nobody_stops_me
setsid bash -c nobody_stops_me lingerer &
(setsid bash -c nobody_stops_me lingerer &)
nobody_stops_me
"""
ALONE = """
for process in /proc/[0-9]*; do
    tr '\\0' ' ' < $process/cmdline 2>/dev/null | grep -E 'lingerer|solve.sh' && echo in $process
done
[ $(grep -c . /app/work) = 1 ] && echo 1 > /logs/verifier/reward.txt
"""


def test_b15_b16_b92_ended_graded_and_both_are_shown(tmp_path: Path) -> None:
    task = one_step(tmp_path, "[agent]\ntimeout_sec = 8", solve=STUBBORN, test=ALONE)
    played = play(task, recipe={"timeouts.multiplier": 0.5, "timeouts.agent.cap": 2.0})
    result, step = played.result, played[0]
    assert (result.outcome, result.reward) == ("passed", 1)
    assert played.read("verifier/test-stdout.txt") == ""  # nobody of them lived
    assert len([c for c in step.hygiene.killed_before_grading if "lingerer" in c]) >= 2
    assert result.ran.seconds < 30
    assert step.turn is not None
    assert step.turn.ended == "timeout"
    # which limit, after how long, and the sum behind it
    limit = (
        "8 s ([agent] timeout_sec) × 0.5 (a test: timeouts.multiplier) = 4 s, "  # noqa: RUF001
        "capped at 2 s (a test: timeouts.agent.cap)"
    )
    assert step.turn.budget == limit
    assert limit in step.turn.message
    assert re.search(
        r"agent timed out: agent budget of step task: .*, after [2-9]", step.turn.message
    )
    assert "timed out" in step.verdict_reason
    exception = played.json("result.json")["exception_info"]
    assert exception["exception_type"] == "AgentTimeoutError"
    assert exception["policy_override"]["has_valid_reward"] is True


def test_b92_a_low_reward_after_a_timeout_names_both(tmp_path: Path) -> None:
    task = one_step(tmp_path, "[agent]\ntimeout_sec = 1", solve="sleep 60", test=GIVES_0)
    result = play(task).result
    assert (result.outcome, result.verdict, result.reward) == ("agent_timeout", "failed", 0)
    assert result.verdict_reason.startswith("agent_timeout: reward 0 < 1; step task: agent timed")


HANGING_HOOK = """
[[verifier.collect]]
command = "sleep 60"
timeout_sec = 0.5
[agent]
timeout_sec = 60
"""
HANGING_CHECK = """
[environment.healthcheck]
command = "sleep 60"
timeout_sec = 0.3
retries = 2
interval_sec = 0.1
"""


def test_b20_a_hook_out_of_time_names_its_own_limit(tmp_path: Path) -> None:
    result = play(one_step(tmp_path, HANGING_HOOK)).result
    assert result.outcome == "passed"
    (said,) = result.steps[0].warnings
    assert "timed out ([[verifier.collect]] timeout_sec, after " in said


def test_b20_a_hanging_healthcheck_is_a_failed_attempt(tmp_path: Path) -> None:
    result = play(one_step(tmp_path, HANGING_CHECK)).result
    assert (result.outcome, result.reward) == ("start_failed", None)
    assert result.fault is not None
    assert (
        "[environment.healthcheck] 'sleep 60' failed 2 times; the last timed out"
        in result.fault.message
    )
