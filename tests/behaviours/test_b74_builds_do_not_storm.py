"""B74: many trials at once must not build all at once."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from fake_compose import calls, wrapped_compose
from groups import a_group, a_spec, environment, never_built

from pytest_harbor.sandbox.engine import Engine

pytestmark = pytest.mark.docker


@pytest.mark.parametrize("slots", [1, 2])
def test_no_more_builds_at_once_than_there_are_slots(tmp_path: Path, slots: int) -> None:
    engine = Engine(wrapped_compose(tmp_path, '[ "$word" = build ] && sleep 0.3'))

    def build(number: int) -> None:
        place = environment(tmp_path / str(number), Dockerfile=never_built())
        with a_group(a_spec(place, build_slots=slots), engine):
            pass

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(build, range(4)))
    engine.close()
    steps = {"build": 1, "end-build": -1}
    overlap = list(itertools.accumulate(steps.get(word, 0) for word in calls(tmp_path)))
    assert calls(tmp_path).count("build") == 4
    assert max(overlap) == slots
