"""B67: an unset variable never becomes an empty one, and a stray ``.env`` changes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from groups import a_group, a_spec, an_engine, an_owner, environment, inside, soon, what_is_left

from pytest_harbor.errors import TaskError
from pytest_harbor.sandbox.group import Group

pytestmark = pytest.mark.docker

COMPOSE = """\
services:
  main:
    image: debian:bookworm-slim
    environment:
      MODEL: ${SIM_USER_MODEL%s}
"""


def refused(tmp_path: Path, compose: str, **files: str) -> str:
    engine = an_engine()
    group = Group(engine, a_spec(environment(tmp_path, compose, **files)), an_owner())
    with pytest.raises(TaskError) as caught:
        group.start(soon())
    assert what_is_left(group.project) == []
    engine.close()
    return str(caught.value)


def test_unset_is_terminal_and_names_file_line_and_variable(tmp_path: Path) -> None:
    said = refused(tmp_path, COMPOSE % "")
    assert f"SIM_USER_MODEL ({tmp_path}/environment/docker-compose.yaml:5)" in said


def test_a_required_variable_keeps_the_authors_own_words(tmp_path: Path) -> None:
    assert "pick a model" in refused(tmp_path, COMPOSE % ":?pick a model")


def test_a_stray_env_file_sets_nothing_and_is_listed(tmp_path: Path) -> None:
    dot_env = {".env": "SIM_USER_MODEL=from-dot-env\n"}
    assert "SIM_USER_MODEL" in refused(tmp_path, COMPOSE % "", **dot_env)
    place = environment(tmp_path, COMPOSE % ":-default", **dot_env)
    with a_group(a_spec(place)) as group:
        assert inside(group, "echo $MODEL") == "default"
        assert any(".env has no effect" in warning for warning in group.warnings)


def test_an_empty_value_is_a_value(tmp_path: Path) -> None:
    place = environment(tmp_path, COMPOSE % "")
    with a_group(a_spec(place, variables={"SIM_USER_MODEL": ""})) as group:
        assert inside(group, "echo [$MODEL]") == "[]"


def test_a_file_that_compose_refuses_is_the_tasks_fault(tmp_path: Path) -> None:
    assert "imgae" in refused(tmp_path, "services: {main: {imgae: x}}")
    assert "docker-compose.yaml" in refused(tmp_path, "services: [")
