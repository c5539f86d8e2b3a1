"""B05, B06: a group that comes half-way is removed, for it was registered before it existed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from fake_compose import wrapped_compose
from groups import a_spec, an_engine, an_owner, environment, soon, what_is_left

from pytest_harbor.errors import SandboxError
from pytest_harbor.sandbox.engine import Engine
from pytest_harbor.sandbox.group import Group

pytestmark = pytest.mark.docker

HALF = """
services:
  main: {image: "debian:bookworm-slim"}
  broken: {image: "debian:bookworm-slim", command: /no/such/program}
  other: {image: "debian:bookworm-slim", command: sleep infinity, volumes: ["kept:/kept"]}
volumes: {kept: {}}
"""


def test_what_up_made_before_it_failed_is_removed(tmp_path: Path) -> None:
    engine = an_engine()
    group = Group(engine, a_spec(environment(tmp_path, HALF)), an_owner())
    with pytest.raises(SandboxError, match="/no/such/program"):
        group.start(soon())
    assert what_is_left(group.project) == []
    assert group.close(soon()) == ()
    engine.close()


def test_the_project_is_on_record_when_compose_is_first_called(tmp_path: Path) -> None:
    look = f"find {tmp_path}/state/runs >{tmp_path}/seen; exit 1"
    engine = Engine(wrapped_compose(tmp_path, f'[ "$word" = up ] && {{ {look}; }}'))
    group = Group(engine, a_spec(), an_owner())
    with pytest.raises(SandboxError):
        group.start(soon())
    assert f"projects/{group.project}\n" in (tmp_path / "seen").read_text()
    assert not list((tmp_path / "state/runs").rglob(group.project))  # it is gone, and forgotten
    engine.close()


def test_documents_with_values_are_private_and_gone_afterwards(tmp_path: Path) -> None:
    look = f"ls -lR {tmp_path}/state/tmp >{tmp_path}/seen"
    found = wrapped_compose(tmp_path, f'[ "$word" = up ] && {{ {look}; }}')
    engine = Engine(found)
    group = Group(engine, a_spec(main_env={"KEY": "secret"}), an_owner())
    group.start(soon())
    assert group.close(soon()) == ()
    seen = (tmp_path / "seen").read_text()
    assert "-rw-------" in seen
    assert "drwx------" in seen
    assert list((tmp_path / "state/tmp").iterdir()) == []
    state = [path for path in (tmp_path / "state").rglob("*") if path.is_file()]
    assert not any(b"secret" in path.read_bytes() for path in state)
    engine.close()


def test_everything_made_carries_the_labels(tmp_path: Path) -> None:
    place = environment(
        tmp_path,
        'services: {main: {image: "debian:bookworm-slim", volumes: ["data:/d"]}}\n'
        "volumes: {data: {}}",
    )
    owner = an_owner()
    engine = an_engine()
    group = Group(engine, a_spec(place, labels={"further": "one"}), owner)
    group.start(soon())
    try:
        left = what_is_left(owner.run_id, label="pytest-harbor.run")
        assert len(left) == 3
        labels = engine.api.volumes(filters={"label": f"pytest-harbor.run={owner.run_id}"})
        found = labels["Volumes"][0]["Labels"]
        assert found["pytest-harbor.owner-pid"] == str(os.getpid())
        assert found["pytest-harbor.episode"] == "episode"
        assert int(found["pytest-harbor.expires"]) > 0
        assert found["further"] == "one"
    finally:
        assert group.close(soon()) == ()
        engine.close()
