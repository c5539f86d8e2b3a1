"""B104: names of steps that some file system takes for one, or cannot hold, are refused.

That accepted names give safe node ids is tested with the plugin.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from task_folders import write_steps, write_task

from pytest_harbor.errors import TaskError
from pytest_harbor.task.load import load_task


def quoted(*names: str) -> str:
    return "".join(f'[[steps]]\nname = "{name}"\n' for name in names)


@pytest.mark.parametrize(
    ("one", "other"), [("Plan", "plan"), ("\\u00e9", "e\\u0301"), ("STRASSE", "stra\\u00dfe")]
)
def test_twins(tmp_path: Path, one: str, other: str) -> None:
    with pytest.raises(TaskError, match=r"task\.toml: steps: .* are one folder on some file sys"):
        load_task(write_task(tmp_path, quoted(one, "between", other)))


@pytest.mark.parametrize(
    "name",
    [
        "a::b",
        "a/b",
        "..",
        "",
        "CON",
        "nul.txt",
        "end.",
        "end ",
        "tab\\t",
        "x" * 256,
        "\\u00e9" * 128,
    ],
)
def test_what_no_folder_can_be_called_everywhere(tmp_path: Path, name: str) -> None:
    with pytest.raises(TaskError, match=r"task\.toml: \[\[steps\]\] .* name: "):
        load_task(write_task(tmp_path, quoted(name)))


@pytest.mark.parametrize("name", ["a b", "a[1]", "task", "\u00e9t\u00e9", "x" * 255, "-rf", "100%"])
def test_what_a_folder_may_be_called(tmp_path: Path, name: str) -> None:
    [step] = load_task(write_steps(tmp_path, name)).steps
    assert (step.name, step.implicit) == (name, False)
    assert step.instruction == f"Do {name}.\n"
