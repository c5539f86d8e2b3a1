"""B72: every task name gives a legal project name, and no two tasks the same one."""

from __future__ import annotations

import re

import pytest
from groups import a_group, a_spec
from hypothesis import given
from hypothesis import strategies as st

from pytest_harbor.sandbox.names import project_name

NAMES = ["My.Task", "my-task", "Über Task", "x" * 200, "my_task_", "日本語", "-", "", "a/b", "🙂"]


def test_all_are_different_and_legal() -> None:
    made = [project_name(name, "run", f"/tasks/{name}") for name in NAMES]
    assert len(set(made)) == len(NAMES)
    for name in made:
        assert re.fullmatch(r"[a-z0-9][a-z0-9-]{0,61}[a-z0-9]", name)


def test_the_name_can_be_read() -> None:
    assert project_name("Über Task", "run", "key").startswith("uber-task-")


def test_run_and_key_tell_apart_and_the_same_is_the_same() -> None:
    made = {project_name("t", run, key) for run in ("1", "2") for key in ("a", "b")}
    assert len(made) == 4
    assert project_name("t", "1", "a") == project_name("t", "1", "a")
    assert project_name("t", "1", "2a") != project_name("t", "12", "a")


@given(st.text(), st.text())
def test_any_name_is_legal(name: str, key: str) -> None:
    assert re.fullmatch(r"[a-z0-9][a-z0-9-]{0,61}[a-z0-9]", project_name(name, key))


@pytest.mark.docker
@pytest.mark.parametrize("name", ["Über Task_", "x" * 200])
def test_the_engine_takes_it(name: str) -> None:
    with a_group(a_spec(name=name)) as group:
        assert group.services == ("main",)
