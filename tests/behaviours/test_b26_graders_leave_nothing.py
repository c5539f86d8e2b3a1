"""B26, B44: the next agent finds nothing that grading brought: no file, process or variable."""

from __future__ import annotations

from pathlib import Path

import pytest
from episodes import Part, many_steps, play

pytestmark = pytest.mark.docker

LEAKY = """
echo "key is $SECRET_KEY"
for place in /tmp /var/tmp /dev/shm /run /tests /logs/verifier; do
    mkdir -p $place/.hidden/deep
    echo $SECRET_KEY > $place/.hidden/deep/answer
    echo $SECRET_KEY > "$place/an answer"
done
echo $SECRET_KEY >> /app/notes
export SECRET_KEY
setsid bash -c 'while :; do sleep 1; done' $SECRET_KEY > /dev/null 2>&1 &
echo 1 > /logs/verifier/reward.txt
"""
# The needle is put together, lest the search finds itself.
SEARCH = """
needle=CANARY-FOR; needle=$needle-B26
{
    grep -rIl --exclude-dir=proc --exclude-dir=sys --exclude-dir=solution -e $needle / 2>/dev/null
    for process in /proc/[0-9]*; do
        tr '\\0' '\\n' < $process/environ 2>/dev/null | grep -e $needle
        tr '\\0' ' ' < $process/cmdline 2>/dev/null | grep -e $needle
    done
    env | grep -e $needle
    find /tests /logs/verifier /logs/agent -mindepth 1 ! -name oracle.txt
    find /tmp /var/tmp /dev/shm -newer /app/start 2>/dev/null -mindepth 1
} > /logs/artifacts/found
"""
TOML = """
[verifier.env]
SECRET_KEY = "${JUDGE_KEY}"
"""


def test_b26_the_second_agent_looks_everywhere(tmp_path: Path) -> None:
    first = Part(
        solve="echo mine > /tmp/mine; echo log > /logs/agent/own.txt; touch /app/notes /app/start",
        test=LEAKY,
    )
    second = Part(solve=SEARCH + "cat /tmp/mine > /logs/artifacts/kept")
    task = many_steps(tmp_path, TOML, first, second)
    played = play(task, host={"JUDGE_KEY": "CANARY-FOR-B26"})
    assert played.result.reward == 1
    found = "steps/two/artifacts/logs/artifacts"
    # a file of the agent's that grading wrote to is its own, and named
    assert played.read(f"{found}/found") == "/app/notes\n"
    hygiene = played["one"].hygiene
    assert "/app/notes" in hygiene.changed
    assert "/tmp/an answer" in hygiene.removed
    assert {"/tmp/.hidden", "/var/tmp/.hidden", "/dev/shm/.hidden", "/run/.hidden"} <= set(
        hygiene.removed
    )
    assert any("sleep 1" in command for command in hygiene.killed_after_grading)
    assert played.read(f"{found}/kept") == "mine\n"
    # kept outside, where no agent comes
    assert played.read("steps/one/verifier/test-stdout.txt") == "key is [redacted]\n"
    assert "CANARY" not in played.everything.replace("needle=CANARY-FOR", "")
    assert (played.folder / "steps/one/agent/own.txt").exists()


@pytest.mark.parametrize(
    "sabotage",
    [
        "printf '#!/bin/sh\\nexit 0\\n' > /bin/rm",
        "printf '#!/bin/sh\\nexit 1\\n' > /bin/rm",
    ],
)
def test_b26_where_cleaning_fails_nobody_goes_on(tmp_path: Path, sabotage: str) -> None:
    test = f"echo secret > /tmp/answer; {sabotage}; echo 1 > /logs/verifier/reward.txt"
    played = play(many_steps(tmp_path, "", Part(test=test), Part(solve=SEARCH)))
    result = played.result
    assert (result.outcome, result.verdict) == ("cleaning_failed", "error")
    assert result.fault is not None
    assert "/tmp/answer" in result.fault.message
    assert result.reward is None
    assert result.reward_as_harbor is None
    assert played["two"].ran is None


def test_b44_the_verifier_sees_the_logs_of_its_own_step_only(tmp_path: Path) -> None:
    first = Part(
        solve="echo a > /logs/agent/first.txt",
        test="ls /logs/agent; echo 1 > /logs/verifier/reward.txt",
    )
    second = Part(solve="echo b > /logs/agent/second.txt", test=first.test)
    played = play(many_steps(tmp_path, "", first, second))
    assert played.read("steps/one/verifier/test-stdout.txt") == "first.txt\noracle.txt\n"
    assert played.read("steps/two/verifier/test-stdout.txt") == "oracle.txt\nsecond.txt\n"
