"""Single containers for tests, without Compose: started in one line, removed in any case."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator, Sequence
from typing import Any

from pytest_harbor.sandbox.container import Container, Ran, UserIds
from pytest_harbor.sandbox.engine import Engine
from pytest_harbor.sandbox.processes import Processes
from pytest_harbor.sandbox.scratch import Ground
from pytest_harbor.task.timeouts import Deadline

IMAGE = "debian:bookworm-slim"
ROOT = UserIds("root", 0, 0, "/root")


def soon(seconds: float = 20, what: str = "a test's patience") -> Deadline:
    return Deadline.after(seconds, what)


@contextlib.contextmanager
def a_box(
    command: Sequence[str] = ("sleep", "infinity"),
    *,
    engine: Engine | None = None,
    workdir: str | None = None,
    config: dict[str, Any] | None = None,
    **host: Any,
) -> Iterator[Container]:
    """A running container as a group would have it; ``host`` goes to its host config."""
    engine = engine or Engine()
    api = engine.api
    name = api.create_container(
        IMAGE,
        command=list(command),
        labels={"pytest-harbor.run": f"test-{uuid.uuid4().hex[:8]}"},
        host_config=api.create_host_config(**{"init": True, **host}),
        **(config or {}),
    )["Id"]
    try:
        api.start(name)
        yield Container(engine, name, workdir=workdir)
    finally:
        engine.api.remove_container(name, force=True, v=True)
        engine.close()


def say(box: Container, script: str, **how: Any) -> str:
    """What a script prints that must succeed."""
    ran = box.run(script, **{"deadline": soon(), **how})
    assert ran.exit_code == 0, ran.output
    return ran.output.decode()


def commands(box: Container) -> list[str]:
    """Command lines of all that lives in a box, asked from outside."""
    return [row[-1] for row in box.engine.api.top(box.id, "-o pid,args")["Processes"] or ()]


class Bench:
    """A box on which turns are taken and graded, as an episode does it."""

    def __init__(self, box: Container) -> None:
        self.box = box
        self.ground = Ground(box)
        self.ground.prepare_logs()
        self.processes = Processes(box)
        self.processes.take_baseline()

    def turn(self, script: str, *, seconds: float = 20, user: str | int | None = None) -> Ran:
        return self.box.run_logged(
            script, log="/logs/agent/log.txt", user=user, deadline=soon(seconds)
        )

    def grade(
        self, script: str, *, user: str | int | None = None, seconds: float = 20, **how: Any
    ) -> tuple[Ran, tuple[str, ...]]:
        from pytest_harbor.sandbox.container import Entry

        owner = self.box.user(user)
        entry = Entry("/tests/test.sh", f"#!/bin/sh\n{script}\n".encode(), 0o755, owner.uid)
        signs = self.ground.before_grading(owner, entries=[entry])
        log = "/logs/verifier/test-stdout.txt"
        ran = self.ground.run_tests(
            "/tests/test.sh", log=log, user=user, deadline=soon(seconds), **how
        )
        return ran, signs
