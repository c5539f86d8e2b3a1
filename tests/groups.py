"""Groups for tests: small environments, written and started in one line, removed in any case."""

from __future__ import annotations

import contextlib
import os
import subprocess
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pytest_harbor.sandbox.engine import Engine
from pytest_harbor.sandbox.group import Group, GroupSpec
from pytest_harbor.sandbox.labels import Owner
from pytest_harbor.task.timeouts import Deadline

IMAGE = "debian:bookworm-slim"
PACKAGE = Path(__file__).parents[1]


def never_built() -> str:
    """A Dockerfile that no earlier run of the tests has built."""
    return f"FROM {IMAGE}\nENV ONCE={uuid.uuid4().hex}\n"


def an_engine(state: Path | None = None) -> Engine:
    """The engine; with a state folder of its own, nothing that other runs know is known."""
    given = {} if state is None else {"PYTEST_HARBOR_STATE_DIR": str(state)}
    return Engine({**os.environ, **given})


def an_owner() -> Owner:
    """This process, in a run that no other test has."""
    return Owner.of_this_process(f"test-{uuid.uuid4().hex[:8]}", "episode")


def soon(seconds: float = 60) -> Deadline:
    return Deadline.after(seconds, "a test's patience")


def environment(folder: Path, compose: str | None = None, **files: str) -> Path:
    """Write ``environment/`` with a Compose file and others (``Dockerfile="FROM ..."``)."""
    place = folder / "environment"
    place.mkdir(parents=True, exist_ok=True)
    if compose is not None:
        files["docker-compose.yaml"] = compose
    for name, text in files.items():
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return place


def a_spec(place: Path | None = None, **changes: Any) -> GroupSpec:
    """A group as a task with this ``environment/`` would ask for it."""
    values: dict[str, Any] = {"name": "a-task", "key": uuid.uuid4().hex, "environment_dir": place}
    if place is not None:
        compose = place / "docker-compose.yaml"
        values["compose_file"] = compose if compose.exists() else None
        values["dockerfile"] = (place / "Dockerfile").exists()
    if not values.get("dockerfile") and values.get("compose_file") is None:
        values["docker_image"] = IMAGE
    return GroupSpec(**{**values, **changes})


@contextlib.contextmanager
def a_group(
    spec: GroupSpec, engine: Engine | None = None, owner: Owner | None = None
) -> Iterator[Group]:
    """A started group, and nothing of it afterwards."""
    made = engine or an_engine()
    group = Group(made, spec, owner or an_owner())
    try:
        group.start(soon())
        yield group
    finally:
        warnings = group.close(soon(30))
        assert what_is_left(group.project) == []
        assert warnings == ()
        if engine is None:
            made.close()


def what_is_left(project: str, label: str = "com.docker.compose.project") -> list[str]:
    """Everything of a project that the engine still has, asked in another way than ours."""
    chosen = ("--filter", f"label={label}={project}")
    found: list[str] = []
    for kind, words in (
        ("container", ("ps", "-a", "--format", "{{.Names}}")),
        ("network", ("network", "ls", "--format", "{{.Name}}")),
        ("volume", ("volume", "ls", "--format", "{{.Name}}")),
    ):
        done = subprocess.run(
            ["docker", *words, *chosen], capture_output=True, text=True, check=True, timeout=30
        )
        found += [f"{kind} {name}" for name in done.stdout.split()]
    return found


def inside(group: Group, command: str, service: str = "main") -> str:
    """What a shell command in a container prints, by the docker client."""
    done = subprocess.run(
        ["docker", "exec", group.container_id(service), "sh", "-c", command],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return done.stdout.strip()


def program_environment(**further: str) -> Mapping[str, str]:
    """The environment of a child that uses the package from this checkout."""
    return {**os.environ, "PYTHONPATH": str(PACKAGE), **further}
