"""B16: a deadline holds, and so does the time to clean up after it."""

from __future__ import annotations

import time

import pytest
from boxes import Bench, a_box, soon

pytestmark = pytest.mark.docker

STUBBORN = {
    "ignores every signal": "trap '' TERM INT HUP QUIT; while :; do sleep 0.1; done",
    "floods its output": "yes",
    "floods from a child": "yes & sleep 1000",
    "stopped": "kill -STOP $$",
    "breeds": "while :; do sleep 1000 & sleep 0.02; done",
}


@pytest.mark.parametrize("kind", STUBBORN)
def test_a_turn_ends_within_budget_and_grace(kind: str) -> None:
    with a_box(pids_limit=300) as box:
        bench = Bench(box)
        begun = time.monotonic()
        ran = bench.turn(STUBBORN[kind], seconds=1)
        bench.processes.sweep(soon())
        assert ran.timed_out
        assert time.monotonic() - begun < 8
        assert bench.processes.is_quiet()


def test_a_small_command_is_ended_at_its_deadline() -> None:
    with a_box() as box:
        begun = time.monotonic()
        assert box.run("trap '' TERM; while :; do sleep 0.1; done", deadline=soon(1)).timed_out
        assert time.monotonic() - begun < 4
        assert Bench(box).processes.is_quiet()
