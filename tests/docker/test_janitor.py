"""What dead processes leave behind is removed: by the watch at once, else by the next run."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from fake_compose import wrapped_compose
from groups import IMAGE, PACKAGE, a_group, a_spec, an_engine, an_owner, soon, what_is_left

from pytest_harbor.sandbox import janitor
from pytest_harbor.sandbox.labels import KEEP, Owner

pytestmark = pytest.mark.docker

CHILD = """
import sys, time
from groups import a_spec, soon
from pytest_harbor.sandbox.engine import Engine
from pytest_harbor.sandbox.group import Group
from pytest_harbor.sandbox.labels import Owner
group = Group(Engine(), a_spec(), Owner.of_this_process(sys.argv[1], "e"))
print(group.project, flush=True)
group.start(soon())
print("up", flush=True)
if sys.argv[2] == "stay":
    time.sleep(600)
group.close(soon())
"""


@contextlib.contextmanager
def a_child(
    run: str, environment: Mapping[str, str], what: str = "stay"
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A process that starts a group; yields it and the project's name, before the group is up."""
    with subprocess.Popen(
        [sys.executable, "-c", CHILD, run, what],
        env={**environment, "PYTHONPATH": f"{PACKAGE}:{PACKAGE / 'tests'}"},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as child:
        assert child.stdout is not None
        try:
            yield child, child.stdout.readline().strip()
        finally:
            child.kill()


def until_up(child: subprocess.Popen[str]) -> None:
    assert child.stdout is not None
    assert child.stdout.readline() == "up\n"


def a_state(folder: Path) -> Mapping[str, str]:
    return {**os.environ, "PYTEST_HARBOR_STATE_DIR": str(folder / "state")}


def watches(folder: Path) -> list[int]:
    """The process ids of watches over a state folder."""
    found = subprocess.run(
        ["pgrep", "-f", f"watch.py {folder}/state "], capture_output=True, text=True, check=False
    )
    return [int(pid) for pid in found.stdout.split()]


def eventually(condition: Callable[[], bool], seconds: float = 30) -> bool:
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        if condition():
            return True
        time.sleep(0.1)
    return condition()


def nothing_is_left(project: str, folder: Path) -> bool:
    return not what_is_left(project) and not watches(folder)


@pytest.mark.parametrize("whole_group", [False, True], ids=["process", "process group"])
def test_a_killed_owner_leaves_nothing(tmp_path: Path, whole_group: bool) -> None:
    with a_child("run-1", a_state(tmp_path)) as (child, project):
        until_up(child)
        assert len(what_is_left(project)) == 2
        assert len(watches(tmp_path)) == 1
        (os.killpg if whole_group else os.kill)(child.pid, signal.SIGKILL)
    assert eventually(lambda: nothing_is_left(project, tmp_path))
    assert list((tmp_path / "state/runs").iterdir()) == []


def test_an_owner_killed_while_compose_works_leaves_nothing(tmp_path: Path) -> None:
    body = f'[ "$word" = up ] && {{ touch {tmp_path}/called; sleep 1; }}'
    environment = wrapped_compose(tmp_path, body)
    with a_child("run-1", environment) as (child, project):
        assert eventually((tmp_path / "called").exists)
        child.kill()
    assert eventually(lambda: not watches(tmp_path))
    time.sleep(2)
    assert what_is_left(project) == []
    assert list((tmp_path / "state/tmp").iterdir()) == []


def test_an_orderly_end_gives_the_watch_nothing_to_do(tmp_path: Path) -> None:
    with a_child("run-1", a_state(tmp_path), "close") as (child, project):
        until_up(child)
        (log,) = (tmp_path / "state/runs").rglob("janitor.log")
        with log.open() as held:
            assert child.wait(30) == 0
            assert eventually(lambda: nothing_is_left(project, tmp_path))
            assert held.read() == ""


def test_only_the_dead_owners_group_is_removed(tmp_path: Path) -> None:
    environment = a_state(tmp_path)
    with a_child("run-1", environment) as (first, one), a_child("run-1", environment) as (_, two):
        until_up(first)
        until_up(_)
        assert len(watches(tmp_path)) == 1
        first.kill()
        assert eventually(lambda: not what_is_left(one))
        assert len(what_is_left(two)) == 2
        assert len(watches(tmp_path)) == 1
    assert eventually(lambda: nothing_is_left(two, tmp_path))


def test_the_watch_itself_killed_is_replaced_and_the_next_run_sweeps(tmp_path: Path) -> None:
    environment = a_state(tmp_path)
    with a_child("run-1", environment) as (child, project):
        until_up(child)
        os.kill(watches(tmp_path)[0], signal.SIGKILL)
        child.kill()
    assert len(what_is_left(project)) == 2
    engine = an_engine(tmp_path / "state")
    swept = janitor.sweep_dead_owners(engine)
    assert swept.containers >= 1
    assert swept.warnings == ()
    assert what_is_left(project) == []
    assert list((tmp_path / "state/runs").iterdir()) == []
    with a_group(a_spec(), engine, Owner.of_this_process("run-1")):
        assert len(watches(tmp_path)) == 1
    engine.close()


@pytest.fixture
def labelled() -> Iterator[Callable[..., str]]:
    """Creates containers that carry these labels over those of this process; removes what stays."""
    engine = an_engine()
    made: list[str] = []

    def create(**changes: str) -> str:
        project = f"labelled-{uuid.uuid4().hex[:8]}"
        changed = {f"pytest-harbor.{name.replace('_', '-')}": v for name, v in changes.items()}
        labels = {"com.docker.compose.project": project, **an_owner().labels(), **changed}
        created: dict[str, str] = engine.api.create_container(IMAGE, "true", labels=labels)
        made.append(created["Id"])
        return project

    yield create
    for container in made:
        with contextlib.suppress(Exception):
            engine.api.remove_container(container, force=True)
    engine.close()


def a_dead_process() -> Owner:
    """The owner that a process was which has ended."""
    with subprocess.Popen(["sleep", "60"]) as process:
        from pytest_harbor.sandbox.labels import birth_of

        owner = an_owner()
        dead = Owner(owner.run_id, "", process.pid, owner.host, birth_of(process.pid) or "")
        process.kill()
    return dead


def test_a_sweep_takes_the_dead_and_the_expired_and_nothing_else(
    labelled: Callable[..., str],
) -> None:
    dead = a_dead_process()
    of_dead = labelled(owner_pid=str(dead.pid), owner_birth=dead.birth)
    expired = labelled(owner_host="elsewhere", expires=str(int(time.time()) - 5))
    spared = {
        "of a living process": labelled(),
        "of another host": labelled(owner_host="elsewhere", owner_pid=str(dead.pid)),
        "not ours": labelled(owner_pid=""),
    }
    recycled = labelled(owner_birth=dead.birth)  # our id, but started at another time
    engine = an_engine()
    janitor.sweep_dead_owners(engine)
    for project in (of_dead, expired, recycled):
        assert what_is_left(project) == []
    for why, project in spared.items():
        assert len(what_is_left(project)) == 1, why
    engine.close()


def test_a_kept_group_stays_until_it_is_cleaned(
    tmp_path: Path, labelled: Callable[..., str]
) -> None:
    dead = a_dead_process()
    project = labelled(owner_pid=str(dead.pid), owner_birth=dead.birth)
    engine = an_engine(tmp_path / "state")
    janitor.keep(engine, project)
    janitor.sweep_dead_owners(engine)
    assert len(what_is_left(project)) == 1
    janitor.clean(engine)
    assert what_is_left(project) == []
    assert list((tmp_path / "state/kept").iterdir()) == []
    engine.close()


def test_keep_leaves_the_group_to_the_operator(tmp_path: Path) -> None:
    code = CHILD.replace("group.close(soon())", "print(group.keep())")
    # the label, for a run with another state may be sweeping on this engine right now
    code = code.replace("a_spec()", f"a_spec(labels={{{KEEP!r}: 'yes'}})")
    done = subprocess.run(
        [sys.executable, "-c", code, "run-1", "end"],
        env={**a_state(tmp_path), "PYTHONPATH": f"{PACKAGE}:{PACKAGE / 'tests'}"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    project, _, command = done.stdout.splitlines()
    assert eventually(lambda: not watches(tmp_path))
    assert len(what_is_left(project)) == 2
    subprocess.run(command.split(), check=True, capture_output=True, timeout=60)
    assert what_is_left(project) == []


def test_removal_is_bounded_and_repeatable(tmp_path: Path) -> None:
    engine = an_engine(tmp_path / "state")
    with a_group(a_spec(), engine) as group:
        assert group.close(soon()) == ()
        assert group.close(soon()) == ()
    engine.close()
