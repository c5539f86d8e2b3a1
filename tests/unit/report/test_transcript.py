"""Trajectories as conversations; odd and hostile ones too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_harbor.report import transcript
from pytest_harbor.report.transcript import is_call_of, read_transcript


def read(folder: Path, steps: Any, **options: Any):
    path = folder / "trajectory.json"
    path.write_text(json.dumps({"schema_version": "ATIF-v1.8", "steps": steps}))
    return read_transcript(path, **options)


CALLS = {
    "step_id": 2,
    "timestamp": "2026-11-03T14:03:11+00:00",
    "source": "agent",
    "message": [
        {"type": "text", "text": "Look:"},
        {"type": "image", "source": {"media_type": "image/png", "path": "a.png"}},
    ],
    "reasoning_content": "hm",
    "tool_calls": [
        {"tool_call_id": "1", "function_name": "Bash", "arguments": {"command": "ls", "n": 3}},
        {
            "tool_call_id": "2",
            "function_name": "mcp__user-server__ask_user",
            "arguments": {"question": "why?"},
        },
    ],
    "observation": {
        "results": [
            {"source_call_id": "2", "content": "because"},
            {"source_call_id": "1", "content": "\x1b[34msrc\x1b[0m"},
            {"content": "loose"},
        ]
    },
    "metrics": {"prompt_tokens": 12_345, "completion_tokens": 8, "cost_usd": 0.02},
}
FIRST = {
    "step_id": 1,
    "timestamp": "2026-11-03T14:02:07Z",
    "source": "user",
    "message": "Do it.",
}


def test_messages_calls_and_answers_find_each_other(tmp_path: Path) -> None:
    found = read(tmp_path, [FIRST, CALLS], to_user=["ask_user"])
    assert found is not None
    assert found.messages == (
        {"who": "user", "at": "0:00", "text": "Do it."},
        {
            "who": "agent",
            "at": "1:04",
            "text": "Look:\n[image: image/png a.png]",
            "think": "hm",
            "calls": [
                {
                    "name": "Bash",
                    "talk": False,
                    "args": [["command", "ls"], ["n", "3"]],
                    "results": ["src"],
                },
                {
                    "name": "mcp__user-server__ask_user",
                    "talk": True,
                    "args": [["question", "why?"]],
                    "results": ["because"],
                },
            ],
            "results": ["loose"],
            "note": "12.3k in, 8 out, $0.02",
        },
    )
    assert found.calls == {"Bash": 1, "mcp__user-server__ask_user": 1}
    assert found.title == "2 messages, 2 tool calls"


def test_b62_copied_context_is_left_out_and_counted(tmp_path: Path) -> None:
    found = read(tmp_path, [{**CALLS, "is_copied_context": True}, FIRST])
    assert found is not None
    assert (len(found.messages), found.total, found.copied) == (1, 1, 1)
    assert not found.calls


def test_a_long_text_keeps_head_and_tail(tmp_path: Path) -> None:
    found = read(tmp_path, [{**FIRST, "message": "a" * 10_000 + "z" * 10_000}])
    assert found is not None
    text = found.messages[0]["text"]
    assert text.startswith("aaa")
    assert text.endswith("zzz")
    assert "12,000 characters not shown" in text
    assert len(text) < 8_100


def test_a_long_conversation_keeps_head_and_tail(tmp_path: Path) -> None:
    steps = [{**FIRST, "message": f"{n} " + "x" * 7000} for n in range(200)]
    found = read(tmp_path, steps)
    assert found is not None
    texts = [each.get("text", "gap")[:3] for each in found.messages]
    assert texts[0] == "0 x"
    assert texts[-1] == "199"
    assert texts.count("gap") == 1
    gap = next(each["gap"] for each in found.messages if "gap" in each)
    assert gap == f"{200 - (len(texts) - 1)} messages not shown"
    assert len(json.dumps(found.messages)) < transcript.TOTAL_LIMIT * 1.1
    assert found.total == 200


def test_secrets_go_before_the_cut(tmp_path: Path) -> None:
    text = "x" * 5300 + "hunter22" + "y" * 9000
    found = read(tmp_path, [{**FIRST, "message": text}], redact=lambda t: t.replace("hunter22", ""))
    assert found is not None
    assert "hunter" not in found.messages[0]["text"]


@pytest.mark.parametrize(
    "body",
    [b"", b"{}", b"[]", b"null", b'{"steps": 3}', b"\xff\xfe", b"[" * 100_000, b'{"steps": null}'],
)
def test_what_is_no_trajectory_is_none(tmp_path: Path, body: bytes) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(body)
    assert read_transcript(path) is None
    assert read_transcript(tmp_path / "gone.json") is None


def test_a_file_too_large_is_not_parsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcript, "FILE_LIMIT", 10)
    assert read(tmp_path, [FIRST]) is None


KEYS = (
    *("source", "message", "timestamp", "tool_calls", "tool_call_id", "function_name"),
    *("arguments", "observation", "results", "source_call_id", "content", "metrics"),
    *("cost_usd", "prompt_tokens", "type", "text", "is_copied_context"),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(st.lists(JSON, max_size=4))
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_json_is_read_into_plain_data(tmp_path: Path, steps: list[Any]) -> None:
    found = read(tmp_path, steps)
    assert found is not None
    json.dumps(found.messages)


@pytest.mark.parametrize(
    ("name", "same"),
    [
        ("ask_user", True),
        ("mcp__user-server__ask_user", True),
        ("user-server.ask_user", True),
        ("user-server__ask_user", True),
        ("ask_user_not", False),
        ("task_user", False),
    ],
)
def test_granted_tools_under_their_other_names(name: str, same: bool) -> None:
    assert is_call_of(name, ["ask_user"]) is same
