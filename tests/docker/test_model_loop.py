"""The agent of our own around a scripted model: it works in main, asks the user, and is stopped."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from episodes import USER, USER_FILES, Part, Played, many_steps, one_step, play

from pytest_harbor.gateway import Gateway
from pytest_harbor.trajectory import load

pytestmark = pytest.mark.docker

NAMES = ("one", "two", "three", "four", "five")
RULES = """
model: scripted-1
rules:
  - when: {turn: 1}
    say: I ask first.
    call: {tool: ask_user, arguments: {question: 'What shall be in it?'}}
  - {when: {turn: 2, user: 'Do one', tool: 'asked 1'}, shell: 'echo one > /app/made'}
  - {when: {turn: 2, tool: 'asked [2-5]'}, shell: 'echo more >> /app/made; whoami; false'}
  - {when: {turn: 3, user: 'Do one', tool: '^\\(no output\\)$'}, say: Done.}
  - {when: {turn: 3, tool: 'root\\n\\[exit code 1\\]$'}, say: Done.}
"""
CHECK = (
    "test $(wc -l < /app/made) = {n} && echo 1 > /logs/verifier/reward.txt "
    "|| echo 0 > /logs/verifier/reward.txt"
)


@pytest.fixture
def gateway() -> Iterator[Gateway]:
    with Gateway(environment={}) as gateway:
        yield gateway


def looped(task: Path, gateway: Gateway, rules: str, **more: Any) -> Played:
    path = task.parent / "rules.yaml"
    path.write_text(rules)
    policy = {"provider": "script", "rules": str(path), "model": "scripted-1"}
    recipe = {f"model_servers.policy.{key}": value for key, value in policy.items()}
    recipe |= {key.replace("__", "."): value for key, value in more.items()}
    return play(task, "model-loop", recipe=recipe, gateway=gateway)


def test_five_steps_with_a_user(tmp_path: Path, gateway: Gateway) -> None:
    parts = [Part(test=CHECK.format(n=n)) for n in range(1, 6)]
    played = looped(many_steps(tmp_path, USER, *parts, **USER_FILES), gateway, RULES)
    assert played.result.fault is None
    assert played.result.reward == 1
    for number, name in enumerate(NAMES, 1):
        step = played[name]
        assert step.turn is not None
        assert step.turn.ended == "exited", step.turn.message
        assert step.grants[0].calls == {"ask_user": 1}
        trajectory = load(played.folder / f"steps/{name}/agent/trajectory.json")
        assert [each.source for each in trajectory.steps] == ["user", "agent", "agent", "agent"]
        assert trajectory.steps[0].message == f"Do {name}.\n"
        asked, ran = trajectory.steps[1:3]
        assert asked.tool_calls is not None
        assert asked.observation is not None
        assert asked.tool_calls[0].function_name == "ask_user"
        assert asked.observation.results[0].content == f"asked {number}"
        assert ran.tool_calls is not None
        assert ran.tool_calls[0].function_name == "bash"
        assert step.turn.input_tokens
        assert step.turn.extra["model_calls"] == 3
    whole = load(played.folder / "trajectory.json")
    calls = [call for each in whole.steps for call in each.tool_calls or ()]
    asked = [call for call in calls if call.function_name == "ask_user"]
    assert [(call.extra or {}).get("relay", {}).get("server") for call in asked] == [  # type: ignore[union-attr]
        "user-server"
    ] * 5


def test_a_deadline_kills_the_command_that_runs(tmp_path: Path, gateway: Gateway) -> None:
    rules = "rules: [{when: {turn: 1}, shell: 'echo begun; sleep 1000'}]"
    played = looped(one_step(tmp_path), gateway, rules, timeouts__agent__seconds=3)
    turn = played[0].turn
    assert turn is not None
    assert (turn.ended, turn.ran.seconds < 10) == ("timeout", True)
    assert not played[0].hygiene.killed_before_grading
    assert load(played.folder / "agent/trajectory.json").steps[1].tool_calls


def test_a_slow_command_is_killed_and_the_turn_goes_on(tmp_path: Path, gateway: Gateway) -> None:
    rules = """
    rules:
      - {when: {turn: 1}, shell: 'echo begun; sleep 1000'}
      - {when: {turn: 2, tool: 'begun\\s+\\[killed after 1 s\\]'}, say: Too slow.}
    """
    played = looped(one_step(tmp_path), gateway, rules, agent__loop__command_seconds=1.0)
    turn = played[0].turn
    assert turn is not None
    assert turn.ended == "exited", turn.message


def test_a_session_goes_on_in_the_next_step(tmp_path: Path, gateway: Gateway) -> None:
    rules = """
    rules:
      - {when: {user: 'Do one', call: 1}, shell: 'echo the secret is 7'}
      - {when: {call: 2, tool: 'secret is 7'}, say: I remember it.}
      - {when: {call: 3, user: 'Do two', tool: 'secret is 7'}, say: I still know it.}
    """
    task = many_steps(tmp_path, "", Part(), Part())
    played = looped(task, gateway, rules, agent__resume_sessions=True)
    turns = [step.turn for step in played.result.steps]
    assert [turn.ended for turn in turns if turn] == ["exited", "exited"]
    assert len({turn.session for turn in turns if turn}) == 1
