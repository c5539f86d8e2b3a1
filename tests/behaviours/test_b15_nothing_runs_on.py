"""B15: what has timed out is ended inside, and nothing is graded next to it."""

from __future__ import annotations

import pytest
from boxes import Bench, a_box, commands, soon

pytestmark = pytest.mark.docker

COUNT = "grep -al '[l]ooping-forever' /proc/[0-9]*/cmdline | wc -l"
LOOPS = {
    "loop": "exec -a looping-forever bash -c 'while :; do sleep 0.05; done'",
    "children": "for n in 1 2 3; do (exec -a looping-forever sleep 1000) & done; wait",
    "detached": "setsid bash -c 'exec -a looping-forever sleep 1000' & sleep 1000",
    "TERM ignored": "trap '' TERM INT HUP; exec -a looping-forever sleep 1000",
}


@pytest.mark.parametrize("kind", LOOPS)
def test_no_process_of_the_turn_is_there_when_test_sh_runs(kind: str) -> None:
    with a_box() as box:
        bench = Bench(box)
        assert bench.turn(LOOPS[kind], seconds=0.7).timed_out
        assert [line for line in commands(box) if "looping-forever" in line]
        killed = bench.processes.sweep(soon())
        assert [line for line in killed if "looping-forever" in line]
        bench.grade(f"{COUNT} >/logs/verifier/count")
        assert box.read("/logs/verifier/count") == b"0\n"


def test_an_ordinary_end_leaves_nothing_either() -> None:
    with a_box() as box:
        bench = Bench(box)
        assert bench.turn("(exec -a looping-forever sleep 1000) & sleep 0.2").exit_code == 0
        assert bench.processes.sweep(soon()) == ("looping-forever 1000",)
        bench.grade(f"{COUNT} >/logs/verifier/count")
        assert box.read("/logs/verifier/count") == b"0\n"
