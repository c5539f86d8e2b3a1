"""Volumes of installed tools, on the real engine: filled once, never used half."""

from __future__ import annotations

import subprocess
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from groups import IMAGE, a_group, a_spec, an_engine, inside, soon

from pytest_harbor.errors import SandboxError
from pytest_harbor.sandbox import janitor
from pytest_harbor.sandbox.engine import Engine
from pytest_harbor.sandbox.tools import Filling, fill_once
from pytest_harbor.sandbox.transfer import Entry
from pytest_harbor.task.timeouts import Deadline

pytestmark = pytest.mark.docker

COUNTS = "date +%s%N >> /tools/times; echo here >/tools/tool; "


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    engine = an_engine(tmp_path / "state")
    yield engine
    for volume in engine.api.volumes(filters={"label": "pytest-harbor.tools=a-test"})["Volumes"]:
        engine.api.remove_volume(volume["Name"])
    engine.close()


def a_filling(script: str = "", **more: object) -> Filling:
    return Filling("a-test", IMAGE, f"{COUNTS}{script} # {uuid.uuid4().hex}", **more)  # type: ignore[arg-type]


def look(volume: str, command: str) -> str:
    done = subprocess.run(
        ["docker", "run", "--rm", "-v", f"{volume}:/tools", IMAGE, "sh", "-c", command],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    return done.stdout.strip()


def test_many_fill_it_once_and_main_can_only_read_it(engine: Engine, tmp_path: Path) -> None:
    filling = a_filling("sleep 0.5")
    # one state folder, as the workers of a run; another one, as another user of the engine
    engines = [engine, an_engine(tmp_path / "state"), an_engine(tmp_path / "elsewhere")]
    found: list[str] = []

    def work(own: Engine) -> None:
        found.append(fill_once(own, filling, soon()))

    threads = [threading.Thread(target=work, args=(own,)) for own in engines]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 3
    (volume,) = set(found)
    assert look(volume, "wc -l </tools/times") == "1"
    with a_group(a_spec(tools={"/opt/x/tool": volume})) as group:
        assert inside(group, "cat /opt/x/tool/tool; touch /opt/x/tool/mine 2>&1 || true") == (
            "here\ntouch: cannot touch '/opt/x/tool/mine': Read-only file system"
        )
    assert look(volume, "cat /tools/tool") == "here"
    for own in engines[1:]:
        own.close()


def test_what_a_killed_helper_left_is_never_used(engine: Engine) -> None:
    filling = a_filling()
    volume = filling.volume(engine.facts.platform)
    engine.api.create_volume(volume, labels={"pytest-harbor.tools": "a-test"})
    look(volume, "touch /tools/half /tools/tool")
    assert fill_once(engine, filling, soon()) == volume
    assert look(volume, "wc -l </tools/times; ls /tools; cat /tools/tool") == "1\ntimes\ntool\nhere"
    # a volume of the same name that somebody else has made is another one
    engine.api.remove_volume(volume)
    engine.api.create_volume(volume, labels={"pytest-harbor.tools": "a-test"})
    fill_once(engine, filling, soon())
    assert look(volume, "cat /tools/tool") == "here"


def test_a_failure_is_told_and_leaves_nothing(engine: Engine) -> None:
    filling = a_filling("[ -e /here ] || { echo no such luck; exit 3; }")
    with pytest.raises(
        SandboxError, match=r"a-test could not be installed \(exit code 3\):\n.*luck"
    ):
        fill_once(engine, filling, soon())
    assert not engine.api.volumes(filters={"label": "pytest-harbor.tools=a-test"})["Volumes"]
    better = Filling(filling.name, filling.image, filling.script, files=(Entry("/here", b""),))
    assert look(fill_once(engine, better, soon()), "cat /tools/tool") == "here"


def test_it_ends_at_its_deadline(engine: Engine) -> None:
    with pytest.raises(SandboxError, match="not in time, patience"):
        fill_once(engine, a_filling("sleep 1000"), Deadline.after(1.5, "patience"))
    assert not engine.api.containers(filters={"label": "pytest-harbor.episode=a-test"})


def test_it_is_a_cache_that_no_sweep_takes(engine: Engine) -> None:
    volume = fill_once(engine, a_filling(), soon())
    janitor.sweep_dead_owners(engine)
    assert look(volume, "cat /tools/tool") == "here"


def test_the_environment_reaches_only_the_helper(engine: Engine) -> None:
    filling = a_filling('echo "$REGISTRY" >/tools/where', env={"REGISTRY": "http://mine"})
    volume = fill_once(engine, filling, soon())
    assert look(volume, "cat /tools/where; env | grep -c REGISTRY || true") == "http://mine\n0"
