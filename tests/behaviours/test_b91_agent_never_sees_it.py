"""B91: the top-level instruction of a task with steps reaches the agent by no way."""

from __future__ import annotations

from pathlib import Path

import pytest
from episodes import USER, USER_FILES, Part, many_steps, play

from pytest_harbor.agents.command import CommandAgent

pytestmark = pytest.mark.docker

# The needle is put together, lest the search finds itself.
SEARCH = """
needle=CANARY; needle=$needle-4711
cat > /logs/artifacts/stdin
cp $HARBOR_INSTRUCTION_FILE $HARBOR_MCP_FILE /logs/artifacts
{
    grep -rl --exclude-dir=proc --exclude-dir=sys -e $needle / 2>/dev/null
    for process in /proc/[0-9]*; do
        cat $process/environ $process/cmdline 2>/dev/null | tr '\\0' '\\n' | grep -e $needle
    done
    env | grep -e $needle
    grep -e $needle /logs/artifacts/*
} > /logs/artifacts/found
"""


def test_b91_the_secret_of_the_user(tmp_path: Path) -> None:
    canary = "<!-- harbor-canary GUID 0123 -->\n"
    secret = {"instruction.md": "The user wants CANARY-4711.\n"}
    files = USER_FILES | secret
    task = many_steps(tmp_path, USER, Part(), Part(), **files)
    (task / "steps/two/instruction.md").write_text(
        f"{canary}Ask the user, verbatim: $HOME `x` \\n\n"
    )
    played = play(task, CommandAgent(SEARCH))
    assert played.result.reward == 1
    for name, text in (("one", "Do one.\n"), ("two", "Ask the user, verbatim: $HOME `x` \\n\n")):
        place = f"steps/{name}/artifacts/logs/artifacts"
        assert played.read(f"{place}/found") == ""
        assert played.read(f"{place}/stdin") == text
        assert played.read(f"{place}/instruction.md") == text
        assert played.json(f"{place}/mcp.json") == {
            "mcpServers": {"user-server": {"type": "http", "url": "http://user-server:8000/mcp"}}
        }
    assert "CANARY" not in played.everything
