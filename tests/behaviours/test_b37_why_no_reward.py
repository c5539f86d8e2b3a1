"""B37, B38: what an author needs to see of a grading that went wrong; the exit status is kept."""

from __future__ import annotations

from pathlib import Path

import pytest
from episodes import one_step, play

pytestmark = pytest.mark.docker


def test_b37_the_cause_is_in_the_message(tmp_path: Path) -> None:
    test = """
    echo one; echo "ImportError: no module named hope" >&2
    echo Traceback > /logs/verifier/reward.txt; echo x > /logs/verifier/details.json; exit 3
    """
    played = play(one_step(tmp_path, test=test))
    result = played.result
    assert (result.outcome, result.verdict, result.reward) == ("reward_unreadable", "error", None)
    assert result.fault is not None
    message = result.fault.message
    assert "reward.txt holds 'Traceback', which is not a decimal number" in message
    assert "exit status: 3" in message
    assert "details.json, reward.txt, test-stdout.txt" in message
    assert message.endswith("one\nImportError: no module named hope")
    assert result.verifier_exit == 3
    exception = played.json("result.json")["exception_info"]
    assert exception["exception_type"] == "VerifierOutputParseError"
    assert exception["policy_override"]["has_valid_reward"] is False


def test_b37_a_name_that_is_nearly_right_is_pointed_out(tmp_path: Path) -> None:
    test = """echo '{"reward": 1}' > /logs/verifier/rewards.json"""
    fault = play(one_step(tmp_path, test=test)).result.fault
    assert fault is not None
    assert fault.outcome == "no_reward"
    assert "rewards.json is not a name that is read" in fault.message
    assert "(no output)" in fault.message


@pytest.mark.parametrize("fatal", [False, True])
def test_b38_a_reward_with_a_bad_exit_status(tmp_path: Path, fatal: bool) -> None:
    test = "echo 1 > /logs/verifier/reward.txt; exit 3"
    result = play(one_step(tmp_path, test=test), recipe={"verifier.exit_fatal": fatal}).result
    assert result.verifier_exit == 3
    if fatal:
        assert (result.verdict, result.reward) == ("error", None)
        assert result.fault is not None
        assert "exited with 3 (a test: verifier.exit_fatal" in result.fault.message
    else:
        assert (result.outcome, result.reward) == ("passed", 1)
        assert result.steps[0].warnings == (
            "test.sh exited with 3; the reward that it wrote counts",
        )
