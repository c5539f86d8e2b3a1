"""B94: a byte order mark or a syntax error never makes a task disappear.

How the plugin collects such a file is tested with the plugin; here is what it has to show.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from task_folders import write_task

from pytest_harbor.errors import TaskError
from pytest_harbor.task.load import load_task
from pytest_harbor.task.outline import read_outline

GOOD = "[agent]\ntimeout_sec = 5\n[metadata]\ndifficulty = 'easy'\n"


def test_a_byte_order_mark_loads_and_is_mentioned(tmp_path: Path) -> None:
    folder = write_task(tmp_path, GOOD.encode("utf-8-sig"))
    task = load_task(folder)
    assert task.steps[0].agent_timeout.seconds == 5
    assert "byte order mark" in task.warnings[0]
    outline = read_outline(folder / "task.toml")
    assert outline.error is None
    assert outline.metadata == {"difficulty": "easy"}


@pytest.mark.parametrize(
    ("toml", "place"),
    [
        ("[agent\n", "line 1, column 7"),
        (GOOD + "[agent]\n", "line 5, column 7"),
        (GOOD + "x = 'open\n", "line 6, column 1 (end of file)"),
        ("\ufeff\n[agent\n", "line 2, column 7"),
    ],
)
def test_a_syntax_error_names_line_and_column(tmp_path: Path, toml: str, place: str) -> None:
    folder = write_task(tmp_path, toml)
    with pytest.raises(TaskError) as caught:
        load_task(folder)
    outline = read_outline(folder / "task.toml")
    assert f"({folder}):\n  task.toml, {place}: " in str(caught.value)
    assert f"{folder}/task.toml, {place}: " in str(outline.error)
    for message in (str(caught.value), str(outline.error)):
        assert message.endswith("; fix the TOML syntax there")
