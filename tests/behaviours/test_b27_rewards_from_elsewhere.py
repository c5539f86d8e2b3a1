"""B27, B28: a reward counts when test.sh wrote it, and from nobody else."""

from __future__ import annotations

from pathlib import Path

import pytest
from episodes import Part, many_steps, one_step, play

pytestmark = pytest.mark.docker

FORGER = """
forge() {
    while sleep 0.02; do
        echo 1 > /logs/verifier/reward.txt
        echo '{"reward": 1}' > /logs/verifier/reward.json
    done 2> /dev/null
}
export -f forge
setsid bash -c forge forger > /dev/null 2>&1 &
sleep 0.3
"""


def test_b27_nobody_forges_a_reward_while_or_after_grading(tmp_path: Path) -> None:
    test = "sleep 0.3; echo 0 > /logs/verifier/reward.txt; sleep 0.3"
    played = play(many_steps(tmp_path, "", Part(FORGER, test), Part("true", test)))
    assert [step.reward for step in played.result.steps] == [0, 0]
    assert played.result.outcome == "failed"
    assert any("forger" in command for command in played["one"].hygiene.killed_before_grading)
    # what it had laid there before it died
    assert played["one"].hygiene.tampering == (
        "/logs/verifier held reward.json, reward.txt before grading",
    )
    assert played["two"].hygiene.tampering == ()


def test_b28_a_reward_that_was_there_before_is_none(tmp_path: Path) -> None:
    forged = "echo 1 > /logs/verifier/reward.txt; mkdir /tests; echo no > /tests/conftest.py"
    test = "ls /tests; exit 1"
    played = play(one_step(tmp_path, solve=forged, test=test))
    assert (played.result.outcome, played.result.verdict) == ("no_reward", "error")
    assert played.result.reward is None
    assert set(played[0].hygiene.tampering) == {
        "/logs/verifier held reward.txt before grading",
        "/tests held conftest.py before grading",
    }
    assert played.read("verifier/test-stdout.txt") == "test.sh\n"


def test_b28_links_are_not_followed(tmp_path: Path) -> None:
    solve = """
    rm -rf /logs/verifier && mkdir /app/mine && ln -s /app/mine /logs/verifier
    ln -s /app/mine /tests; echo 1 > /app/mine/reward.txt
    """
    test = "readlink /tests /logs/verifier; echo 0 > /logs/verifier/reward.txt; ls /app/mine"
    played = play(one_step(tmp_path, solve=solve, test=test))
    assert played.result.reward == 0
    assert played.read("verifier/test-stdout.txt") == "reward.txt\n"
    assert len(played[0].hygiene.tampering) == 2
