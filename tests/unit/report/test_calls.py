"""How often the user was asked: who counted, and what it comes to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from sample_job import START, episode, interval, step, unreached, write

from pytest_harbor.episode.result import EpisodeResult, GradeRecord, GrantRecord, TurnRecord
from pytest_harbor.report.calls import CallStats, call_stats, user_calls

GRANT = GrantRecord(name="user", mode="required", reachable=True, tools=("ask_user",))


def line(second: float | None, question: str = "q") -> str:
    at = None if second is None else START.timestamp() + second
    return json.dumps({"time": at, "question": question, "answer": "a"})


def granted(name: str, index: int, *, log: bool = False, **turn: Any):
    more: dict[str, Any] = {"grants": (GRANT,)}
    if log:
        path = f"steps/{name}/verifier/test-stdout.txt"
        more["grade"] = GradeRecord(ran=interval(0.1), log=path)
    if turn:
        more["turn"] = TurnRecord(ran=interval(1.0), ended="exited", **turn)
    return step(name, index, **more)


def chat(*tools: str) -> str:
    calls = [{"tool_call_id": "1", "function_name": tool, "arguments": {}} for tool in tools]
    return json.dumps({"steps": [{"source": "agent", "message": "", "tool_calls": calls}]})


def count(tmp_path: Path, result: EpisodeResult, files: dict[str, str]) -> dict[int, int]:
    return user_calls(result, write(tmp_path, result, files))


LOG = "steps/b/verifier/user-server/ask-user.jsonl"


def test_the_users_log_counts_for_every_step_before_it(tmp_path: Path) -> None:
    result = episode(steps=[granted("a", 0), granted("b", 1, log=True), unreached("c", 2)])
    text = "\n".join([line(0.5), line(1.0), line(3.0)])
    assert count(tmp_path, result, {LOG: text}) == {0: 2, 1: 1}
    assert count(tmp_path, result, {LOG: ""}) == {0: 0, 1: 0}


def test_the_users_log_is_believed_before_the_transcript(tmp_path: Path) -> None:
    result = episode(steps=[granted("b", 0, log=True, trajectory="t.json")])
    files = {LOG: line(0.5), "t.json": chat("ask_user", "ask_user", "ask_user")}
    assert count(tmp_path, result, files) == {0: 1}


def test_a_step_after_the_log_was_taken_is_not_in_it(tmp_path: Path) -> None:
    """It was never graded, so nobody fetched the log again: unknown, not silent."""
    late = step("c", 2, grade=None, grants=(GRANT,))
    result = episode(steps=[granted("a", 0), granted("b", 1, log=True), late])
    assert count(tmp_path, result, {LOG: line(0.5)}) == {0: 1, 1: 0}


def test_questions_without_a_time_make_a_log_worthless_for_steps(tmp_path: Path) -> None:
    result = episode(steps=[granted("a", 0), granted("b", 1, log=True)])
    assert count(tmp_path, result, {LOG: f"{line(0.5)}\n{line(None)}"}) == {}


def test_transcripts_and_agents_count_where_there_is_no_log(tmp_path: Path) -> None:
    result = episode(
        steps=[
            granted("a", 0, trajectory="t.json"),
            granted("b", 1, extra={"mcp_calls": {"ask_user": 4}}),
            granted("c", 2, trajectory="gone.json"),
            granted("d", 3),
        ]
    )
    files = {"t.json": chat("mcp__user__ask_user", "Bash")}
    assert count(tmp_path, result, files) == {0: 1, 1: 4}


def test_a_step_without_a_grant_asks_nobody_and_is_not_counted(tmp_path: Path) -> None:
    turn = TurnRecord(ran=interval(1.0), ended="exited", trajectory="t.json")
    assert count(tmp_path, episode(steps=[step("a", turn=turn)]), {"t.json": chat("Bash")}) == {}


THREE = [
    (episode("d/x/task.toml::x", steps=[step("a", 0), step("b", 1)]), {0: 1, 1: 0}),
    (episode("d/y/task.toml::y", steps=[step("a", 0), step("b", 1)]), {0: 4, 1: 3}),
    (episode("d/z/task.toml::z", steps=[step("a", 0), unreached("b", 1)]), {0: 0}),
]


def test_least_median_most_and_silence() -> None:
    found = call_stats(THREE)
    assert found is not None
    assert found.by_step == {
        "a": CallStats(episodes=3, least=0, median=1, most=4, silent=1),
        "b": CallStats(episodes=2, least=0, median=1.5, most=3, silent=1),
    }
    assert list(found.by_step) == ["a", "b"]
    assert found.whole == CallStats(episodes=3, least=0, median=1, most=7, silent=1)


def test_an_episode_with_an_uncounted_step_has_no_sum() -> None:
    found = call_stats([(THREE[0][0], {0: 2})])
    assert found is not None
    assert list(found.by_step) == ["a"]
    assert found.whole is None


def test_what_nobody_counted_is_not_zero() -> None:
    assert call_stats([(THREE[0][0], {})]) is None
    assert call_stats([]) is None


@pytest.mark.parametrize("known", [{}, {0: 5}])
def test_the_page_and_the_sums_count_alike(tmp_path: Path, known: dict[int, int]) -> None:
    from pytest_harbor.report.facts import step_chips
    from pytest_harbor.report.transcript import read_transcript

    (tmp_path / "t.json").write_text(chat("ask_user", "ask_user"))
    one = granted("a", 0)
    chips = step_chips(one, read_transcript(tmp_path / "t.json"), known.get(0))
    assert [each.text for each in chips] == [f"ask_user: {known.get(0, 2)} calls"]
