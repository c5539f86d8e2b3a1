"""B91: the instruction at the top of a task with steps is the simulated user's secret."""

from __future__ import annotations

from pathlib import Path

import pytest
from task_folders import write_steps, write_task

from pytest_harbor.task.load import load_task
from pytest_harbor.task.outline import read_outline
from pytest_harbor.task.trees import upload_tree

SECRET = "TOP-LEVEL-SECRET-4711"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files = {
        "instruction.md": f"The user wants {SECRET}.\n",
        "tests/lib.sh": "x",
        "solution/solve.sh": "x",
        "steps/one/workdir/data": "x",
        "steps/two/solution/solve.sh": "x",
    }
    return write_steps(tmp_path, "one", "two", **files)


def test_no_step_holds_it(folder: Path) -> None:
    task = load_task(folder)
    assert [step.instruction for step in task.steps] == ["Do one.\n", "Do two.\n"]
    assert SECRET not in repr(task)
    assert SECRET not in repr(read_outline(folder))


def test_no_uploaded_tree_holds_it(folder: Path) -> None:
    for step in load_task(folder).steps:
        for tree in (*step.test_trees, step.workdir, step.solution):
            for file in upload_tree(tree) if tree else ():
                assert SECRET.encode() not in file.source.read_bytes()


def test_it_is_not_even_opened(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = Path.read_bytes

    def refuse(path: Path) -> bytes:
        assert path != folder / "instruction.md"
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", refuse)
    load_task(folder)


@pytest.mark.parametrize("content", [None, "", b"\xff\xfe"])
def test_whatever_it_holds_the_task_loads(folder: Path, content: str | bytes | None) -> None:
    (folder / "instruction.md").unlink()
    if content is not None:
        write_steps(folder, "one", "two", **{"instruction.md": content})
    assert load_task(folder).warnings == ()


def test_it_does_not_stand_in_for_a_steps_own(folder: Path) -> None:
    (folder / "steps/two/instruction.md").unlink()
    with pytest.raises(Exception, match=r"steps/two/instruction\.md is missing"):
        load_task(folder)


def test_of_a_single_step_task_it_is_the_instruction(tmp_path: Path) -> None:
    [step] = load_task(write_task(tmp_path, **{"instruction.md": SECRET})).steps
    assert step.instruction == SECRET
