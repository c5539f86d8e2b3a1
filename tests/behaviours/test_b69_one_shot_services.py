"""B69: an init service that ended with 0 is no failure; one that ended otherwise is."""

from __future__ import annotations

from pathlib import Path

import pytest
from groups import a_group, a_spec, an_engine, an_owner, environment, inside, soon, what_is_left

from pytest_harbor.errors import SandboxError
from pytest_harbor.sandbox.group import Group

pytestmark = pytest.mark.docker

COMPOSE = """
services:
  main:
    image: debian:bookworm-slim
    depends_on: {init: {condition: service_completed_successfully}}
    volumes: [shared:/shared]
  init:
    image: debian:bookworm-slim
    command: sh -c "sleep 0.5; echo done >/shared/mark; exit CODE"
    volumes: [shared:/shared]
volumes: {shared: {}}
"""


def test_a_one_shot_service_has_done_its_work_when_the_group_is_up(tmp_path: Path) -> None:
    with a_group(a_spec(environment(tmp_path, COMPOSE.replace("CODE", "0")))) as group:
        assert inside(group, "cat /shared/mark") == "done"
        assert group.state("init").exit_code == 0


def test_its_failure_is_told_with_its_last_words(tmp_path: Path) -> None:
    compose = COMPOSE.replace("CODE", "7").replace("echo done", "echo no disk >&2; echo done")
    engine = an_engine()
    group = Group(engine, a_spec(environment(tmp_path, compose)), an_owner())
    with pytest.raises(SandboxError, match="init ended with exit code 7") as caught:
        group.start(soon())
    assert caught.value.outcome == "start_failed"
    assert "no disk" in str(caught.value)
    assert what_is_left(group.project) == []
    engine.close()


def test_main_must_stay(tmp_path: Path) -> None:
    place = environment(
        tmp_path, 'services: {main: {image: "debian:bookworm-slim", command: "true"}}'
    )
    with (
        pytest.raises(SandboxError, match=r"service main (ended|died) with exit code 0"),
        a_group(a_spec(place)) as group,  # sees the end, if it was there when it looked
    ):
        group.container().run("sleep 30", deadline=soon())
