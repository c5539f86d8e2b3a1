"""What collection reads: quickly, without pydantic, and never with an exception."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_harbor.task.outline import Outline, read_outline


def outline(folder: Path, toml: str | bytes) -> Outline:
    (folder / "task.toml").write_bytes(toml if isinstance(toml, bytes) else toml.encode())
    return read_outline(folder / "task.toml")


def test_an_empty_file(tmp_path: Path) -> None:
    # One step, no limit for the agent.
    assert outline(tmp_path, "") == Outline(tmp_path.name, timeout_hint=None)


def test_the_folder_will_do(tmp_path: Path) -> None:
    assert outline(tmp_path, "steps = []\n") == read_outline(tmp_path)


def test_names_and_steps(tmp_path: Path) -> None:
    toml = "[task]\nname = 'a/b'\n[[steps]]\nname = 'z'\n[[steps]]\nname = 'a'\n"
    found = outline(tmp_path, toml)
    assert (found.name_hint, found.steps) == ("a/b", ("z", "a"))


def test_metadata(tmp_path: Path) -> None:
    toml = """
        [metadata]
        difficulty = "hard"
        expert-time = 30.5
        retired = false
        runs = 3
        since = 2026-01-31
        at = 09:30:00
        tags = ["Multi Step", "C++", "go", "--", 7]
        people = ["x"]
        self = "cannot be a keyword argument"
        [metadata.deep]
        a = 1
    """
    found = outline(tmp_path, toml)
    assert found.tags == ("Multi Step", "C++", "go", "--")
    assert found.metadata == {
        "difficulty": "hard",
        "expert_time": 30.5,
        "retired": False,
        "runs": 3,
        "since": "2026-01-31",
        "at": "09:30:00",
        "tag_multi_step": True,
        "tag_c": True,
        "tag_go": True,
    }
    pytest.mark.slow(**found.metadata)  # as the plugin will put it on a mark of its own


@pytest.mark.parametrize(
    ("toml", "seconds"),
    [
        ("[agent]\ntimeout_sec = 100\n", 700),
        ("[agent]\ntimeout_sec = 100\n[verifier]\ntimeout_sec = 50\n", 150),
        ("[agent]\ntimeout_sec = '100'\n", 700),
        ("[agent]\ntimeout_sec = 0\n", None),
        ("[agent]\ntimeout_sec = true\n", None),
        ("[agent]\ntimeout_sec = nan\n", None),
        ("agent = 5\n", None),
        (
            "[agent]\ntimeout_sec = 100\n[verifier]\ntimeout_sec = 5\n[[steps]]\nname = 'a'\n"
            "[[steps]]\nname = 'b'\n[steps.agent]\ntimeout_sec = 10\n",
            100 + 5 + 10 + 5,
        ),
    ],
)
def test_how_long_it_may_take(tmp_path: Path, toml: str, seconds: float | None) -> None:
    assert outline(tmp_path, toml).timeout_hint == seconds


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"[agent\n", "line 1, column 7"),
        (b"a = 1\nb = \xff\n", "line 2: byte 0xff is not UTF-8"),
        ("a = 1".encode("utf-16"), "UTF-16"),
        (b"[metadata]\ntags = [" + b"[" * 9000, "cannot be parsed"),
        (b"a = " + b"1" * 9000, "cannot be parsed"),
    ],
)
def test_a_broken_file(tmp_path: Path, data: bytes, words: str) -> None:
    found = outline(tmp_path, data)
    assert found.error is not None
    assert found.error.startswith(f"{tmp_path}/task.toml")
    assert words in found.error
    assert found == Outline(tmp_path.name, error=found.error)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    assert "cannot be read: No such file" in str(read_outline(tmp_path / "task.toml").error)
    assert "cannot be read: No such file" in str(read_outline(tmp_path).error)


@pytest.mark.parametrize(
    "toml",
    [
        "steps = 5\n",
        "steps = [1, 'a', {}]\n",
        "steps = [{name = 3}]\n",
        "metadata = 'x'\n",
        "metadata = {tags = 'x'}\n",
        "task = []\n",
        "task = {name = 1}\n",
        "[steps]\nname = 'x'\n",
    ],
)
def test_odd_shapes_are_for_load_task_to_refuse(tmp_path: Path, toml: str) -> None:
    found = outline(tmp_path, toml)
    assert (found.error, found.steps, found.name_hint) == (None, (), tmp_path.name)


@pytest.fixture(scope="module")
def one_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("task")


@given(data=st.binary() | st.text().map(str.encode))
def test_it_never_raises(one_folder: Path, data: bytes) -> None:
    assert isinstance(outline(one_folder, data), Outline)


def test_nothing_heavy_is_imported() -> None:
    code = (
        "import sys, pytest_harbor.task.outline\n"
        "heavy = {'pydantic', 'pathspec', 'docker', 'mcp', 'jinja2', 'yaml', 'httpx'}\n"
        "print(*heavy & set(sys.modules))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "", "")


def test_thousands_in_seconds(tmp_path: Path) -> None:
    toml = (
        "version = '1.0'\n[metadata]\ndifficulty = 'easy'\ntags = ['a', 'b']\n"
        "[agent]\ntimeout_sec = 600.0\n[verifier]\ntimeout_sec = 600.0\n"
        "[environment]\nbuild_timeout_sec = 600.0\ncpus = 1\nmemory_mb = 2048\n"
    )
    outline(tmp_path, toml)
    start = time.process_time()
    for _ in range(500):
        read_outline(tmp_path / "task.toml")
    assert time.process_time() - start < 1, "5,000 tasks would take more than ten seconds"
