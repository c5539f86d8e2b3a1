"""B75: several attempts in several processes build a context once, whatever the project's name."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from fake_compose import calls, wrapped_compose
from groups import PACKAGE, a_group, a_spec, an_owner, environment, never_built

from pytest_harbor.sandbox.engine import Engine

pytestmark = pytest.mark.docker

ATTEMPT = """
import sys
from pathlib import Path
from groups import a_group, a_spec
from pytest_harbor.sandbox.engine import Engine
with a_group(a_spec(Path(sys.argv[1]), name=sys.argv[2]), Engine()) as group:
    print(group.images["main"])
"""


def test_three_attempts_in_three_processes_build_once(tmp_path: Path) -> None:
    place = environment(tmp_path, Dockerfile=never_built() + "RUN sleep 0.5\n")
    found = dict(wrapped_compose(tmp_path))
    found["PYTHONPATH"] = f"{PACKAGE}:{PACKAGE / 'tests'}"
    attempts = [
        subprocess.Popen(
            [sys.executable, "-c", ATTEMPT, str(place), f"attempt{number}"],
            env=found,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(3)
    ]
    images = {attempt.communicate(timeout=60)[0] for attempt in attempts}
    assert [attempt.returncode for attempt in attempts] == [0, 0, 0]
    assert len(images) == 1
    assert calls(tmp_path).count("build") == 1
    assert calls(tmp_path).count("up") >= 3  # again where another run took the subnet


def test_another_content_is_another_image_and_a_lost_record_is_found_again(
    tmp_path: Path,
) -> None:
    engine = Engine(wrapped_compose(tmp_path))
    place = environment(tmp_path, Dockerfile=never_built() + "COPY a /a\n", a="1")
    spec = a_spec(place)
    with a_group(spec, engine) as group:
        first = group.images["main"]
    (place / "a").write_text("2")
    with a_group(spec, engine) as group:
        second = group.images["main"]
    assert first != second
    for record in (tmp_path / "state" / "images").rglob("*.json"):
        record.write_text("{ torn")
    with a_group(spec, engine) as group:
        assert group.images["main"] == second
    assert calls(tmp_path).count("build") == 2
    engine.api.remove_image(second, force=True)
    with a_group(spec, engine):
        pass
    assert calls(tmp_path).count("build") == 3
    engine.close()


def test_force_builds_once_in_a_run(tmp_path: Path) -> None:
    engine = Engine(wrapped_compose(tmp_path))
    place = environment(tmp_path, Dockerfile=never_built())
    spec = a_spec(place, force_build=True, docker_image="debian:bookworm-slim")
    for _ in range(2):
        owner = an_owner()
        for _ in range(2):
            with a_group(spec, engine, owner):
                pass
    assert calls(tmp_path).count("build") == 2
    engine.close()
