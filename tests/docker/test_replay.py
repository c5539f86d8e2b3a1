"""A trajectory is played again in a fresh group: all the same, or said where it is not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from episodes import USER, USER_FILES, Part, many_steps, one_step, play

from pytest_harbor.gateway import Gateway
from pytest_harbor.trajectory import load

pytestmark = pytest.mark.docker

RULES = """
rules:
  - {when: {turn: 1}, call: {tool: ask_user, arguments: {question: 'What?'}}}
  - {when: {turn: 2}, shell: 'date; echo line >> /app/made; wc -l < made; mktemp'}
  - {when: {turn: 3}, shell: 'exit 3'}
  - {say: Done.}
"""
CHECK = "test $(wc -l < /app/made) = {n}; echo $((1 - $?)) > /logs/verifier/reward.txt"


@pytest.fixture
def gateway() -> Iterator[Gateway]:
    with Gateway(environment={}) as gateway:
        yield gateway


def test_a_run_folder_is_played_again_step_by_step(tmp_path: Path, gateway: Gateway) -> None:
    parts = [Part(test=CHECK.format(n=n)) for n in (1, 2)]
    task = many_steps(tmp_path, USER, *parts, **USER_FILES)
    (tmp_path / "rules.yaml").write_text(RULES)
    policy = {"provider": "script", "rules": str(tmp_path / "rules.yaml"), "model": "m"}
    recipe = {f"model_servers.policy.{key}": value for key, value in policy.items()}
    first = play(task, "model-loop", recipe=recipe, gateway=gateway)
    assert first.result.reward == 1
    again = play(
        task, "replay", recipe={"agent.trajectories": str(first.folder.parent)}, gateway=gateway
    )
    assert again.result.reward == 1
    for step in again.result.steps:
        assert step.turn is not None
        assert step.turn.ended == "exited", step.turn.message
        assert step.turn.message == "3 calls replayed, 0 that only look left out"
        assert step.grants[0].calls == {"ask_user": 1}
        assert step.turn.extra["diverged"] == []
        assert step.turn.extra["trajectory_of"] == "model-loop"
        told = load(again.folder / f"steps/{step.name}/agent/trajectory.json")
        assert told.steps[-1].message == "Done."


def step(number: int, name: str, content: str, /, **arguments: Any) -> dict[str, Any]:
    call = {"tool_call_id": f"c{number}", "function_name": name, "arguments": arguments}
    result = {"source_call_id": f"c{number}", "content": content}
    return {
        "step_id": number,
        "source": "agent",
        "message": "",
        "tool_calls": [call],
        "observation": {"results": [result]},
    }


PATCH = """*** Begin Patch
*** Add File: new.txt
+2
*** Update File: notes.txt
@@ one
-2
*** Update File: new.txt
*** Move to: moved.txt
 2
+3
*** End Patch
"""


def test_it_says_where_it_diverged(tmp_path: Path, gateway: Gateway) -> None:
    steps = [
        step(1, "Write", "written", file_path="notes.txt", content="one\ntwo\n"),
        step(2, "Edit", "edited", file_path="/app/notes.txt", old_string="two", new_string="2"),
        step(3, "Bash", "one\n2", command="cat notes.txt"),
        step(4, "Read", "one\n2", file_path="notes.txt"),
        step(5, "Bash", "one\nTWO", command="cat notes.txt"),
        step(6, "Bash", "fine", command="exit 4"),
        step(7, "Edit", "edited", file_path="notes.txt", old_string="no such", new_string="x"),
        step(8, "write_stdin", "y", chars="y"),
        step(9, "apply_patch", "Done!", input=PATCH),
        step(10, "Bash", "one\n2\n3", command="cat notes.txt moved.txt"),
        step(11, "Edit", "created", file_path="born.txt", old_string="", new_string="x\n"),
        step(12, "Bash", "x", command="cat born.txt"),
    ]
    path = tmp_path / "other.json"
    agent = {"name": "claude-code", "version": "1"}
    path.write_text(json.dumps({"schema_version": "ATIF-v1.6", "agent": agent, "steps": steps}))
    check = 'test "$(cat notes.txt)" = one && test ! -e new.txt'
    task = one_step(tmp_path, test=f"{check}; echo $((1 - $?)) > /logs/verifier/reward.txt")
    played = play(task, "replay", recipe={"agent.trajectories": str(path)}, gateway=gateway)
    assert played.result.reward == 1
    turn = played[0].turn
    assert turn is not None
    assert turn.extra["diverged"] == [
        "trajectory step 5 (Bash): line 2: 'TWO', now '2'",
        "trajectory step 6 (Bash): exit code 0, now 4: ''",
        "trajectory step 7 (Edit): the text to be replaced is not in notes.txt",
    ]
    assert turn.extra["not_replayable"] == [
        "trajectory step 8 (write_stdin): it is not known what this tool does"
    ]
    assert (turn.extra["replayed"], turn.extra["looked"]) == (10, 1)
    assert "3 diverged, the first at trajectory step 5" in turn.message


def test_what_is_not_there_is_named(tmp_path: Path, gateway: Gateway) -> None:
    task = one_step(tmp_path)
    nowhere = {"agent.trajectories": str(tmp_path)}
    played = play(task, "replay", recipe=nowhere, gateway=gateway)
    assert played.result.fault is not None
    assert played.result.reward is None
    assert f"{tmp_path}/agent/trajectory.json" in played.result.fault.message
