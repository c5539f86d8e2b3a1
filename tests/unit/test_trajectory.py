"""Trajectories: our rules are Harbor's, no laxer and no stricter; errors say where."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from harbor_beside import ask_harbor, needs_harbor
from pydantic import ValidationError

from pytest_harbor.agents.readers.base import find_reader
from pytest_harbor.errors import RecipeError, TrajectoryError
from pytest_harbor.trajectory import VERSION, Trajectory, dump, load, numbered

FULL: dict[str, Any] = {
    "schema_version": "ATIF-v1.8",
    "session_id": "s",
    "trajectory_id": "t",
    "agent": {
        "name": "codex",
        "version": "1",
        "model_name": "m",
        "tool_definitions": [{"type": "function", "function": {"name": "sh"}}],
        "extra": {"a": None},
    },
    "steps": [
        {
            "step_id": 1,
            "timestamp": "2026-01-02T03:04:05Z",
            "source": "user",
            "message": [
                {"type": "text", "text": "look"},
                {"type": "image", "source": {"media_type": "image/png", "path": "a.png"}},
                {
                    "type": "audio",
                    "source": {"media_type": "audio/wav", "path": "a.wav", "duration_sec": 1.5},
                },
            ],
            "is_copied_context": True,
        },
        {
            "step_id": 2,
            "timestamp": "2026-01-02T03:04:06.123+02:00",
            "source": "agent",
            "model_name": "m",
            "reasoning_effort": "high",
            "message": "",
            "reasoning_content": "hm",
            "tool_calls": [
                {
                    "tool_call_id": "c1",
                    "function_name": "sh",
                    "arguments": {"cmd": "ls", "deep": {"x": [1, None, 2.5]}},
                    "extra": {},
                },
            ],
            "observation": {
                "results": [
                    {"source_call_id": "c1", "content": "out", "extra": {"exit": 0}},
                    {
                        "content": None,
                        "subagent_trajectory_ref": [{"trajectory_id": "sub", "session_id": "s"}],
                    },
                ],
            },
            "metrics": {
                "prompt_tokens": 5,
                "completion_tokens": 6,
                "cached_tokens": 1,
                "cost_usd": 0.1,
                "prompt_token_ids": [1],
                "completion_token_ids": [2],
                "logprobs": [-0.5],
                "extra": {"x": 1},
            },
            "llm_call_count": 1,
            "extra": {"k": "v"},
        },
        {"step_id": 3, "source": "system", "message": "note", "observation": {"results": []}},
    ],
    "notes": "n",
    "final_metrics": {
        "total_prompt_tokens": 5,
        "total_completion_tokens": 6,
        "total_cached_tokens": 1,
        "total_cost_usd": 0.1,
        "total_steps": 3,
        "extra": {},
    },
    "continued_trajectory_ref": "next.json",
    "extra": {"e": []},
    "subagent_trajectories": [
        {
            "trajectory_id": "sub",
            "agent": {"name": "b", "version": "2"},
            "steps": [{"step_id": 1, "source": "user", "message": "x"}],
        }
    ],
}


def change(path: str, value: object) -> Callable[[dict[str, Any]], None]:
    """Set what stands at a path like ``steps.1.extra``."""

    def apply(data: dict[str, Any]) -> None:
        *way, last = [int(key) if key.isdigit() else key for key in path.split(".")]
        place: Any = data
        for key in way:
            place = place[key]
        place[last] = value

    return apply


WRONG = {
    "unknown version": change("schema_version", "ATIF-v9.9"),
    "unknown key": change("colour", "red"),
    "unknown key in a step": change("steps.0.colour", "red"),
    "unknown key in a call": change("steps.1.tool_calls.0.colour", "red"),
    "unknown key in a result": change("steps.1.observation.results.0.colour", "red"),
    "no steps": change("steps", []),
    "no version": change("agent", {"name": "x"}),
    "a gap in step ids": change("steps.1.step_id", 3),
    "step ids from zero": change("steps.0.step_id", 0),
    "no time": change("steps.0.timestamp", "yesterday"),
    "unknown source": change("steps.0.source", "tool"),
    "a user's model": change("steps.0.model_name", "m"),
    "a user's effort": change("steps.0.reasoning_effort", 1.0),
    "a user's reasoning": change("steps.0.reasoning_content", "m"),
    "a user's calls": change("steps.0.tool_calls", []),
    "the system's metrics": change("steps.2.metrics", {}),
    "metrics of no call": change("steps.1.llm_call_count", 0),
    "fewer than no calls": change("steps.1.llm_call_count", -1),
    "a stranger's result": change("steps.1.observation.results.0.source_call_id", "c9"),
    "a result without call": change("steps.2.observation.results", [{"source_call_id": "c1"}]),
    "arguments as text": change("steps.1.tool_calls.0.arguments", "{}"),
    "a text without text": change("steps.0.message.0", {"type": "text"}),
    "a text with source": change(
        "steps.0.message.0.source", {"media_type": "image/png", "path": "a"}
    ),
    "an image without source": change("steps.0.message.1", {"type": "image"}),
    "an image with text": change("steps.0.message.1.text", "x"),
    "an image that sounds": change("steps.0.message.1.source.media_type", "audio/wav"),
    "an image that lasts": change("steps.0.message.1.source.duration_sec", 1.0),
    "a tiff": change("steps.0.message.1.source.media_type", "image/tiff"),
    "a lead to nowhere": change(
        "steps.1.observation.results.1.subagent_trajectory_ref", [{"session_id": "s"}]
    ),
    "a nameless sub-agent": change("subagent_trajectories.0.trajectory_id", None),
    "a sub-agent twice": change(
        "subagent_trajectories", [FULL["subagent_trajectories"][0]] * 2
    ),
    "fewer than no steps": change("final_metrics.total_steps", -1),
}  # fmt: skip

RIGHT: dict[str, Callable[[dict[str, Any]], None]] = {
    "all there is": lambda data: None,
    "an old version": change("schema_version", "ATIF-v1.0"),
    "an effort as a number": change("steps.1.reasoning_effort", 0.5),
    "a deterministic step": change(
        "steps.1", {"step_id": 2, "source": "agent", "message": "", "llm_call_count": 0}
    ),
    "a system that called": change("steps.2.llm_call_count", 0),
}


def changed(apply: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    data = copy.deepcopy(FULL)
    apply(data)
    return data


@pytest.mark.parametrize("apply", WRONG.values(), ids=WRONG)
def test_what_breaks_a_rule_is_refused(apply: Callable[[dict[str, Any]], None]) -> None:
    with pytest.raises(ValidationError):
        Trajectory.model_validate(changed(apply))


@pytest.mark.parametrize("apply", RIGHT.values(), ids=RIGHT)
def test_what_keeps_the_rules_comes_back_as_it_was(
    apply: Callable[[dict[str, Any]], None], tmp_path: Path
) -> None:
    data = changed(apply)
    first = tmp_path / "first.json"
    first.write_text(json.dumps(data))
    trajectory = load(first)
    again = tmp_path / "again.json"
    again.write_text(dump(trajectory))
    assert load(again) == trajectory
    written = json.loads(again.read_text())
    assert written["steps"][1].get("tool_calls") == data["steps"][1].get("tool_calls")
    assert written["schema_version"] == data["schema_version"]


@needs_harbor
def test_harbor_says_the_same() -> None:
    """Every rule of ours is asked of Harbor's own model, and what we write is fed to it."""
    written = {
        name: json.loads(dump(Trajectory.model_validate(changed(apply))))
        for name, apply in RIGHT.items()
    }
    wrong = {name: changed(apply) for name, apply in WRONG.items()}
    verdicts = ask_harbor(ACCEPTS, {**written, **wrong})
    assert {name for name, accepted in verdicts.items() if accepted} == set(RIGHT)


ACCEPTS = """
from harbor.models.trajectories import Trajectory
answer = {}
for name, data in given.items():
    try:
        Trajectory.model_validate(data)
        answer[name] = True
    except ValueError:
        answer[name] = False
"""


def test_the_newest_version_is_written() -> None:
    data = {key: FULL[key] for key in ("agent", "steps")}
    assert json.loads(dump(Trajectory.model_validate(data)))["schema_version"] == VERSION


def test_a_null_in_data_stays_and_what_is_unknown_goes() -> None:
    written = json.loads(dump(Trajectory.model_validate(FULL)))
    assert written["agent"]["extra"] == {"a": None}
    assert "content" not in written["steps"][1]["observation"]["results"][1]


def test_steps_are_numbered_anew() -> None:
    steps = Trajectory.model_validate(FULL).steps
    assert [step.step_id for step in numbered(steps[1:] + steps[:1])] == [1, 2, 3]


@pytest.mark.parametrize("text", ['{"agent"', "[]", '{"steps": [{"step_id": 1}]}', "\xff"])
def test_a_file_that_is_none_is_named_with_the_place(text: str, tmp_path: Path) -> None:
    path = tmp_path / "odd.json"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(TrajectoryError, match=r"odd\.json is no ATIF trajectory"):
        load(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(TrajectoryError, match=r"gone\.json cannot be read: No such file"):
        load(tmp_path / "gone.json")


def test_the_place_of_a_fault_is_named(tmp_path: Path) -> None:
    path = tmp_path / "odd.json"
    path.write_text(json.dumps(changed(change("steps.1.tool_calls.0.arguments", "{}"))))
    with pytest.raises(TrajectoryError, match=r"steps\.1\.tool_calls\.0\.arguments: "):
        load(path)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("codx", "there is no reader 'codx'; known: aider, "),
        ("no.such.module:READER", "cannot be loaded: No module"),
        ("json:nothing", "cannot be loaded: "),
        ("json:dumps", "is no reader"),
    ],
)
def test_a_reader_that_is_none_is_refused(name: str, words: str) -> None:
    with pytest.raises(RecipeError, match=words):
        find_reader(name)
