"""What a real CLI does at the edges of a turn: resumed sessions, deadlines, children, faults."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cli_plays import cli
from episodes import GIVES_1, USER, USER_FILES, Part, many_steps, one_step

from pytest_harbor.episode.outcome import Outcome
from pytest_harbor.gateway import Gateway

pytestmark = [pytest.mark.docker, pytest.mark.slow]

THREE = ("codex", "claude-code", "opencode")


@pytest.fixture
def gateway() -> Iterator[Gateway]:
    with Gateway() as gateway:
        yield gateway


def instructed(text: str, solve: str | None = None, test: str = GIVES_1, **more: Any) -> Part:
    return Part(solve, test, files={"instruction.md": f"{text}\n"}, **more)


@pytest.mark.parametrize("agent", THREE)
def test_a_session_goes_on_in_the_next_step(tmp_path: Path, gateway: Gateway, agent: str) -> None:
    """The second step's model hears what was said in the first; each trajectory has its own."""
    parts = (instructed("Learn the word."), instructed("Say the word."))
    task = many_steps(tmp_path, "", *parts)
    rules = (
        {"when": {"user": "Learn the word", "turn": 1}, "shell": "echo the word is walnut"},
        {"when": {"user": "Learn the word"}, "say": "I will not forget walnut."},
        {"when": {"user": "Say the word", "turn": 1}, "shell": "echo asked >/app/asked"},
        {"when": {"user": "Say the word"}, "say": "It was walnut."},
    )
    played = cli(agent, task, gateway, *rules, **{"agent.resume_sessions": True})
    assert played.result.outcome == Outcome.PASSED
    turns = [step.turn for step in played.result.steps]
    assert all(turn is not None and turn.session for turn in turns)
    assert len({turn.session for turn in turns if turn is not None}) == 1
    calls = [json.loads(line) for line in played.read("model-calls.jsonl").splitlines()]
    inputs = {step: max(c["usage"]["input"] for c in calls if c["step"] == step) for step in STEPS}
    assert inputs["two"] > inputs["one"]
    for step, word in (("one", "I will not forget walnut."), ("two", "It was walnut.")):
        trajectory = played.read(f"steps/{step}/agent/trajectory.json")
        assert word in trajectory
        assert ("Learn the word" in trajectory) == (step == "one")


STEPS = ("one", "two")


@pytest.mark.parametrize("agent", THREE)
def test_without_it_each_step_is_a_session_of_its_own(
    tmp_path: Path, gateway: Gateway, agent: str
) -> None:
    task = many_steps(tmp_path, "", instructed("Do."), instructed("Do."))
    played = cli(agent, task, gateway, {"when": {"turn": 1}, "shell": "ls -a"}, {"say": "Done."})
    sessions = [step.turn.session for step in played.result.steps if step.turn is not None]
    assert len(set(sessions)) == 2
    for step in STEPS:
        log = played.folder / "steps" / step / "agent/session"
        assert any(path.is_file() for path in log.rglob("*"))


@pytest.mark.parametrize("agent", THREE)
def test_at_its_deadline_nothing_of_it_is_left_for_grading(
    tmp_path: Path, gateway: Gateway, agent: str
) -> None:
    """B15: the CLI, its tool and the tool's children are gone before test.sh runs."""
    looks = (
        "cat /proc/[0-9]*/cmdline | tr '\\0' ' ' >/logs/verifier/seen; "
        "grep -q -e 'sleep 4711' -e /opt/pytest-harbor /logs/verifier/seen; "
        "echo $? >/logs/verifier/reward.txt; test -e /app/begun"
    )
    seconds = 45 if agent == "opencode" else 15
    task = one_step(tmp_path, f"[agent]\ntimeout_sec = {seconds}\n", test=looks)
    sleeps = "echo yes >/app/begun; (sleep 4711 & sleep 4711); sleep 4711"
    # codex does not wait for a tool to the end, so it is called again and again
    played = cli(agent, task, gateway, {"shell": sleeps}, {"say": "No title needs a tool."})
    (step,) = played.result.steps
    assert step.turn is not None
    assert step.turn.ended == "timeout"
    assert step.reward == 1, played.read("verifier/seen")
    assert step.grade is not None
    assert step.grade.exit_code == 0, "its tool never began"
    assert "sleep 4711" in " ".join(step.hygiene.killed_before_grading)


@pytest.mark.parametrize("agent", ["codex", "claude-code"])
def test_a_child_that_holds_its_output_keeps_nobody(
    tmp_path: Path, gateway: Gateway, agent: str
) -> None:
    task = one_step(tmp_path, "[agent]\ntimeout_sec = 100\n")
    stays = "(setsid sleep 4711 >/proc/$PPID/fd/1 2>&1 &) ; (setsid sleep 4711 >/dev/null 2>&1 &)"
    played = cli(agent, task, gateway, {"when": {"turn": 1}, "shell": stays}, {"say": "Done."})
    (step,) = played.result.steps
    assert step.turn is not None
    assert step.turn.ended == "exited"
    assert step.turn.ran.seconds < 60


@pytest.mark.parametrize("agent", THREE)
def test_a_fault_of_the_provider_is_told_in_its_words(
    tmp_path: Path, gateway: Gateway, agent: str
) -> None:
    task = one_step(tmp_path, test="echo 0 >/logs/verifier/reward.txt")
    fault = {"status": 401, "message": "the key has walked away"}
    played = cli(agent, task, gateway, {"fault": fault})
    (step,) = played.result.steps
    assert step.outcome == Outcome.AGENT_ERROR
    assert step.turn is not None
    assert "the key has walked away" in step.turn.message
    assert step.turn.ran.seconds < 60


SEARCHED = (
    {"call": {"tool": "tool_search", "arguments": {"query": "ask the user a question"}}},
    {"call": {"tool": "ask_user"}},
    {"shell": "echo yes >/app/answered"},
)
CODED = tuple(
    {"call": {"tool": "exec", "arguments": {"input": line}}}
    for line in (
        "text(await tools.mcp__user_server__ask_user({}));",
        "text(await tools.exec_command({cmd: 'echo yes >/app/answered'}));",
    )
)


@pytest.mark.parametrize(
    ("model", "calls", "offered"),
    [("gpt-5.5", SEARCHED, ("ask_user",)), ("gpt-6-sol", CODED, ())],
    ids=["tool search", "code mode"],
)
def test_codex_with_models_that_it_knows(
    tmp_path: Path, gateway: Gateway, model: str, calls: Any, offered: tuple[str, ...]
) -> None:
    """It offers them the user only when they search, or not by name at all; asked it is still."""
    test = "test -e /app/answered && " + GIVES_1
    task = one_step(tmp_path, USER, test=test, **USER_FILES)
    rules = [{"when": {"turn": turn}, **call} for turn, call in enumerate(calls, 1)]
    played = cli("codex", task, gateway, *rules, {"say": "Done."}, **{"agent.model": model})
    assert played.result.outcome == Outcome.PASSED
    (grant,) = played[0].grants
    assert grant.calls == {"ask_user": 1}
    assert grant.offered == offered
    assert "ask_user" in played.read("agent/trajectory.json")
