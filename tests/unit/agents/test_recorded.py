"""What eight CLIs' tool calls mean, and what they got to see: alike, whatever they are called."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_harbor.agents.readers.base import find_reader
from pytest_harbor.agents.recorded import (
    Call,
    Edit,
    Look,
    Seen,
    Shell,
    Unknown,
    Write,
    meaning,
    seen,
)
from pytest_harbor.trajectory import Result, ToolCall, Trajectory

LOGS = Path(__file__).parent / "logs"
OFFERED = {"user-server": ["ask_user"]}
CLIS = (
    "claude-code",
    "codex",
    "gemini-cli",
    "kimi-code",
    "mini-swe-agent",
    "opencode",
    "qwen-code",
)


def trajectory(cli: str) -> Trajectory:
    folder = LOGS / cli / "first"
    reading = find_reader(cli).read(
        folder / "logs",
        stdout=folder / "stdout.jsonl",
        exit_code=0,
        instruction="Do it.",
        agent_name=cli,
        agent_version="1",
        model="m",
    )
    assert reading.trajectory is not None
    return reading.trajectory


@pytest.mark.parametrize("cli", CLIS)
def test_every_clis_calls_are_understood(cli: str) -> None:
    pairs = []
    for step in trajectory(cli).steps:
        results = (
            {r.source_call_id: r for r in step.observation.results} if step.observation else {}
        )
        for call in step.tool_calls or ():
            pairs.append((meaning(call, OFFERED), seen(results.get(call.tool_call_id))))
    if cli != "mini-swe-agent":  # it has no MCP
        asked, answer = pairs.pop(0)
        assert asked == Call("user-server", "ask_user", {"question": "What shall the file hold?"})
        assert answer is not None
        assert (answer.text.strip(), answer.exit_code) == ("The user says: write 'blue' in it.", 0)
    written, output = pairs[0]
    assert isinstance(written, Shell)
    assert written.command.startswith("printf 'blue\\n' > hello.txt")
    assert output is not None
    assert (output.text.split(), output.exit_code) == (["blue", "oops"], 0)
    assert pairs[1] == (Shell("exit 3"), Seen("", 3))
    assert [pair[1] for pair in pairs[2:]] in ([], [None])  # mini-swe-agent's last word


def call(name: str, **arguments: Any) -> ToolCall:
    return ToolCall(tool_call_id="c", function_name=name, arguments=arguments)


@pytest.mark.parametrize(
    ("made", "meant"),
    [
        (call("shell", command=["bash", "-lc", "ls | wc"]), Shell("ls | wc")),
        (call("shell", command=["ls", "a b"], workdir="/x"), Shell("ls 'a b'", "/x")),
        (call("Bash", command="srv", run_in_background=True), Shell("( srv\n) >/dev/null 2>&1 &")),
        (call("Write", file_path="/a", content="x"), Write("/a", "x")),
        (
            call("Edit", file_path="a", old_string="x", new_string="y", replace_all=True),
            Edit("a", (("x", "y", True),)),
        ),
        (
            call("MultiEdit", file_path="a", edits=[{"old_string": "x", "new_string": "y"}]),
            Edit("a", (("x", "y", False),)),
        ),
        (call("Read", file_path="a"), Look()),
        (call("bash"), Unknown("its arguments hold no command")),
        (call("Write", file_path="a"), Unknown("its arguments hold no path or no content")),
        (call("mcp__other__x"), Unknown("no such tool is granted here")),
        (call("write_stdin", chars="y"), Unknown("it is not known what this tool does")),
    ],
)
def test_arguments_as_clis_write_them(made: ToolCall, meant: object) -> None:
    assert meaning(made, OFFERED) == meant


@pytest.mark.parametrize(
    ("content", "extra", "is_seen"),
    [
        ("a\n[exit code 2]", None, Seen("a", 2)),
        ("(no output)", {"exit_code": 1}, Seen("", 1)),
        ("(Bash completed with no output)", None, Seen("", 0)),
        ("broken", {"is_error": True}, Seen("broken", None)),
        ("a\nb\n[... 900 characters left out here ...]\nz", None, Seen("a\nb\n", 0, is_cut=True)),
    ],
)
def test_frames_and_marks_are_taken_off(content: str, extra: Any, is_seen: Seen) -> None:
    assert seen(Result(content=content, extra=extra)) == is_seen


def test_what_is_not_told_is_not_seen() -> None:
    assert seen(None) is None
    assert seen(Result()) is None
