"""Instructions, canaries, and which paths may be read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_harbor.errors import TaskError
from pytest_harbor.task.files import inside, read_bytes, read_instruction, strip_canary

CANARY = "<!-- harbor-canary GUID 1234 -->\n"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Do it.\n", "Do it.\n"),
        ("\n\nDo it.", "\n\nDo it."),
        (CANARY + "Do it.\n", "Do it.\n"),
        (CANARY + "\n  \n\nDo it.\n", "Do it.\n"),
        ("# a CANARY line\nDo it.\n", "Do it.\n"),
        ("#canary\nDo it.", "Do it."),
        ("  <!-- Canary -->  \nDo it.", "Do it."),
        (CANARY + "\n# canary two\n\nDo it.", "Do it."),
        (CANARY.replace("\n", "\r\n") + "\r\nDo it.\r\n", "Do it.\r\n"),
        (CANARY, ""),
        # only a leading block
        ("Do it.\n" + CANARY, "Do it.\n" + CANARY),
        ("\n" + CANARY + "Do it.", "\n" + CANARY + "Do it."),
        (CANARY + "Do it.\n# canary\n", "Do it.\n# canary\n"),
        # not a canary
        ("# Title\nDo it.", "# Title\nDo it."),
        ("<!-- note -->\nDo it.", "<!-- note -->\nDo it."),
        ("Release the canary.\n", "Release the canary.\n"),
        ("<!-- canary --> Do it.\n", "<!-- canary --> Do it.\n"),
        ("", ""),
    ],
)
def test_canary(text: str, left: str) -> None:
    assert strip_canary(text) == left


@given(st.text())
def test_what_is_left_is_the_end_of_what_there_was(text: str) -> None:
    left = strip_canary(text)
    assert text.endswith(left)
    assert strip_canary(left) == left or not left.strip()


@given(st.text().filter(lambda text: "canary" not in text.casefold()))
def test_without_a_canary_nothing_is_touched(text: str) -> None:
    assert strip_canary(text) == text


def instruction(folder: Path, data: bytes) -> str:
    (folder / "instruction.md").write_bytes(data)
    return read_instruction(folder / "instruction.md", folder)


def test_an_instruction_is_verbatim(tmp_path: Path) -> None:
    text = "  Zeile eins\r\n\ttwo\n\n“quoted” \U0001f600\n\n"
    assert instruction(tmp_path, text.encode()) == text


def test_a_byte_order_mark_is_no_text(tmp_path: Path) -> None:
    assert instruction(tmp_path, b"\xef\xbb\xbf" + CANARY.encode() + b"Do it.") == "Do it."


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"ok\ncaf\xe9\n", "instruction.md, line 2: byte 0xe9 is not UTF-8; save the file as UT"),
        ("Do it.".encode("utf-16"), "instruction.md: the file is UTF-16 or binary; save it as"),
        (b"", "instruction.md is empty; write what the agent shall do"),
        (b" \n\t\n", "instruction.md is empty"),
        (CANARY.encode(), "instruction.md is empty"),
    ],
)
def test_an_instruction_that_says_nothing(tmp_path: Path, data: bytes, words: str) -> None:
    with pytest.raises(TaskError) as caught:
        instruction(tmp_path, data)
    assert str(caught.value).startswith(words)


class TestInside:
    @pytest.fixture
    def task(self, tmp_path: Path) -> Path:
        task = tmp_path / "task"
        (task / "a").mkdir(parents=True)
        (task / "a/file").write_text("x")
        (tmp_path / "secret").write_text("s")
        return task

    def test_a_plain_file(self, task: Path) -> None:
        assert inside(task / "a/file", task) == (task / "a/file").resolve()

    def test_a_link_within_the_task(self, task: Path) -> None:
        (task / "link").symlink_to("a/file")
        assert read_bytes(task / "link", task) == b"x"

    def test_a_task_that_is_a_link_itself(self, task: Path) -> None:
        (task.parent / "other").symlink_to(task)
        assert read_bytes(task.parent / "other/a/file", task.parent / "other") == b"x"

    @pytest.mark.parametrize("target", ["../secret", "/etc/passwd", "a/../../secret", ".."])
    def test_a_link_out_of_the_task(self, task: Path, target: str) -> None:
        (task / "link").symlink_to(target)
        with pytest.raises(TaskError, match=r"^link leads out of the task, to /.*; copy the file"):
            inside(task / "link", task)

    def test_a_link_by_way_of_another(self, task: Path) -> None:
        (task / "up").symlink_to("..")
        (task / "link").symlink_to("up/secret")
        with pytest.raises(TaskError, match="leads out of the task"):
            read_bytes(task / "link", task)

    def test_a_neighbour_whose_name_starts_alike(self, task: Path) -> None:
        (task.parent / "task2").mkdir()
        (task / "link").symlink_to("../task2")
        with pytest.raises(TaskError, match="leads out of the task"):
            inside(task / "link", task)

    def test_a_link_to_nothing(self, task: Path) -> None:
        (task / "link").symlink_to("gone")
        with pytest.raises(TaskError, match="symlink to 'gone', which cannot be followed"):
            inside(task / "link", task)

    def test_links_in_a_circle(self, task: Path) -> None:
        (task / "one").symlink_to("two")
        (task / "two").symlink_to("one")
        with pytest.raises(TaskError, match="symlink to 'two', which cannot be followed"):
            inside(task / "one", task)

    def test_no_such_file(self, task: Path) -> None:
        with pytest.raises(TaskError, match="gone cannot be read: No such file"):
            inside(task / "gone", task)

    def test_a_folder_is_no_file(self, task: Path) -> None:
        with pytest.raises(TaskError, match="a is not a file; put a plain file there"):
            read_bytes(task / "a", task)

    def test_a_pipe_is_not_waited_for(self, task: Path) -> None:
        os.mkfifo(task / "pipe")
        with pytest.raises(TaskError, match="pipe is not a file"):
            read_bytes(task / "pipe", task)

    def test_an_unreadable_file(self, task: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(path: Path) -> bytes:
            raise PermissionError(13, "Permission denied", str(path))

        monkeypatch.setattr(Path, "read_bytes", refuse)  # tests may run as root
        with pytest.raises(TaskError, match="a/file cannot be read: Permission denied"):
            read_bytes(task / "a/file", task)
