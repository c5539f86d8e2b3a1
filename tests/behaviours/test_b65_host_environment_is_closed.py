"""B65: what a task's Compose file asks of the host's environment is refused, not handed out."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from groups import a_group, a_spec, an_engine, an_owner, environment, inside, soon, what_is_left

from pytest_harbor.errors import TaskError
from pytest_harbor.sandbox.engine import Engine
from pytest_harbor.sandbox.group import Group

pytestmark = pytest.mark.docker

SECRET = "hunter2-from-the-host"


@pytest.mark.parametrize(
    ("asks", "line"),
    [
        ('services: {main: {image: "debian:bookworm-slim",\n environment: {S: "${MY_TOKEN}"}}}', 2),
        ('services: {main: {image: "debian:bookworm-slim"}}\nx-note: "$MY_TOKEN"', 2),
        (
            "services:\n  main: {image: debian:bookworm-slim, secrets: [t]}\n"
            "secrets:\n  t:\n    environment: MY_TOKEN\n",
            5,
        ),
    ],
    ids=["value", "extension", "secret"],
)
def test_a_host_variable_stops_the_task_before_anything_exists(
    tmp_path: Path, asks: str, line: int
) -> None:
    engine = Engine({**os.environ, "MY_TOKEN": SECRET})
    place = environment(tmp_path, asks)
    group = Group(engine, a_spec(place), an_owner())
    with pytest.raises(TaskError) as caught:
        group.start(soon())
    assert f"MY_TOKEN ({place}/docker-compose.yaml:{line})" in str(caught.value)
    assert "compose_variables" in str(caught.value)
    assert SECRET not in str(caught.value)
    assert what_is_left(group.project) == []
    engine.close()


@pytest.mark.parametrize("name", ["HOME", "PATH", "HTTPS_PROXY", "DOCKER_HOST"])
def test_not_even_what_the_client_needs_is_visible(tmp_path: Path, name: str) -> None:
    engine = Engine({**os.environ, "HTTPS_PROXY": "http://user:pass@proxy"})
    place = environment(
        tmp_path, f'services: {{main: {{image: "debian:bookworm-slim", hostname: "x${{{name}}}"}}}}'
    )
    with pytest.raises(TaskError, match=name):
        Group(engine, a_spec(place), an_owner()).start(soon())
    engine.close()


def test_a_variable_passed_through_without_a_value_stays_unset(tmp_path: Path) -> None:
    engine = Engine({**os.environ, "MY_TOKEN": SECRET, "NO_PROXY": "host-only"})
    place = environment(
        tmp_path,
        "services:\n  main:\n    image: debian:bookworm-slim\n"
        "    environment: [MY_TOKEN, NO_PROXY, GIVEN]\n",
    )
    spec = a_spec(place, variables={"GIVEN": "by the recipe"})
    with a_group(spec, engine) as group:
        assert inside(group, "env | grep -E 'MY_TOKEN|NO_PROXY|GIVEN'") == "GIVEN=by the recipe"
    engine.close()


def test_declared_variables_and_our_own_names_are_visible(tmp_path: Path) -> None:
    place = environment(
        tmp_path,
        "services:\n  main:\n    image: debian:bookworm-slim\n    environment:\n"
        '      SEEN: "${MODEL} ${CONTEXT_DIR} ${CPUS} ${MEMORY} ${MORE:-default}"\n',
    )
    spec = a_spec(place, variables={"MODEL": "m$1", "CPUS": "99"}, cpus=1.5, memory_mb=512)
    with a_group(spec, an_engine()) as group:
        assert inside(group, 'echo "$SEEN"') == f"m$1 {place} 1.5 512M default"
