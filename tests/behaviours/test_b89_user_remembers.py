"""B89: the user is one and the same through all steps; where it is not, nobody is judged."""

from __future__ import annotations

from pathlib import Path

import pytest
from episodes import ASK, USER, USER_FILES, Part, many_steps, play

pytestmark = pytest.mark.docker

ASKS = ASK + "ask > /logs/artifacts/said"
KILLS = ASK + "USER_SERVER_URL=http://user-server:8000/die; ask || true; sleep 1.5"
COMPOSE = "environment/docker-compose.yaml"
RESTARTED = USER_FILES[COMPOSE].replace("init: true", "init: true\n    restart: always")


def test_b89_it_counts_on_across_steps(tmp_path: Path) -> None:
    parts = [Part(solve=ASKS)] * 3
    played = play(many_steps(tmp_path, USER, *parts, **USER_FILES))
    assert played.result.reward == 1
    for number, step in enumerate(("one", "two", "three"), start=1):
        said = played.read(f"steps/{step}/artifacts/logs/artifacts/said")
        assert f"asked {number}" in said


@pytest.mark.parametrize("compose", [USER_FILES[COMPOSE], RESTARTED], ids=["ended", "restarted"])
def test_b89_a_user_that_forgot_is_no_user(tmp_path: Path, compose: str) -> None:
    kill = KILLS.replace("/mcp HTTP", "/die HTTP")
    parts = (Part(solve=ASKS), Part(solve=kill), Part(solve=ASKS))
    played = play(many_steps(tmp_path, USER, *parts, **{**USER_FILES, COMPOSE: compose}))
    result = played.result
    assert (result.outcome, result.verdict) == ("user_lost", "error")
    assert result.fault is not None
    assert result.fault.phase == "settle"  # the turn in which it happened is not graded
    assert "user-server" in result.fault.message
    assert [step.reward for step in result.steps] == [1, None, None]
    assert (result.reward, result.reward_as_harbor) == (None, None)
    assert played.read("steps/two/agent/oracle.txt") is not None
