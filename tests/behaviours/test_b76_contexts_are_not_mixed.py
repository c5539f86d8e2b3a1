"""B76: BuildKit takes over files of another context that have the same name, size and time."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from groups import a_group, a_spec, an_engine, environment, inside

pytestmark = pytest.mark.docker

DOCKERFILE = "FROM debian:bookworm-slim\nCOPY expected.json /expected.json\n"


def test_two_contexts_that_look_alike_give_two_images(tmp_path: Path) -> None:
    engine = an_engine(tmp_path / "state")
    seen = []
    for answer in ("1", "2"):
        place = environment(
            tmp_path / f"task{answer}",
            **{"Dockerfile": DOCKERFILE, "expected.json": f'{{"answer": {answer}}}'},
        )
        for path in (place / "expected.json", place / "Dockerfile", place):
            os.utime(path, (1_000_000_000, 1_000_000_000))
        with a_group(a_spec(place), engine) as group:
            seen.append(inside(group, "cat /expected.json"))
    assert seen == ['{"answer": 1}', '{"answer": 2}']
