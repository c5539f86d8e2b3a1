from __future__ import annotations

import os
import stat
import threading
import time
from pathlib import Path

import pytest

from pytest_harbor.errors import SandboxError
from pytest_harbor.sandbox.state import State, read_json, write_json
from pytest_harbor.task.timeouts import Deadline


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"PYTEST_HARBOR_STATE_DIR": "{}/own", "HOME": "{}"}, "{}/own"),
        ({"XDG_STATE_HOME": "{}/xdg", "HOME": "{}"}, "{}/xdg/pytest-harbor"),
        ({"HOME": "{}"}, "{}/.local/state/pytest-harbor"),
    ],
)
def test_where_it_is(tmp_path: Path, environment: dict[str, str], expected: str) -> None:
    made = State.of({name: value.format(tmp_path) for name, value in environment.items()})
    assert str(made.root) == expected.format(tmp_path)


def test_without_a_home_it_is_private_below_tmp() -> None:
    assert State.of({}).root.name == f"pytest-harbor-{os.getuid()}"
    assert State.of({"XDG_STATE_HOME": "relative"}).root.is_absolute()


def test_folders_are_closed_to_others(tmp_path: Path) -> None:
    made = State(tmp_path / "state").folder("a", "b")
    for folder in (made, made.parent, made.parent.parent):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_folder_that_cannot_be_made_says_what_to_set(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SandboxError, match="PYTEST_HARBOR_STATE_DIR"):
        State(tmp_path / "file").folder("a")


def test_a_lock_excludes_threads_too(tmp_path: Path) -> None:
    state = State(tmp_path)
    inside: list[str] = []

    def hold() -> None:
        with state.lock("x", Deadline.after(5, "test")):
            inside.append("in")
            time.sleep(0.05)
            inside.append("out")

    threads = [threading.Thread(target=hold) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert inside == ["in", "out"] * 3


def test_waiting_for_a_lock_ends(tmp_path: Path) -> None:
    state = State(tmp_path)
    with (
        state.lock("x", Deadline.after(5)),
        pytest.raises(SandboxError, match=r"x\.lock.*my limit"),
    ):
        state.lock("x", Deadline.after(0.05, "my limit")).__enter__()
    with state.lock("x", Deadline.after(5)):
        pass


def test_files_are_whole_and_private(tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    write_json(path, {"a": 1})
    assert read_json(path) == {"a": 1}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(TypeError):
        write_json(path, {"a": object()})
    assert read_json(path) == {"a": 1}
    assert list(tmp_path.iterdir()) == [path]


def test_damage_reads_as_nothing(tmp_path: Path) -> None:
    assert read_json(tmp_path / "none") is None
    (tmp_path / "torn").write_text('{"a"')
    assert read_json(tmp_path / "torn") is None
