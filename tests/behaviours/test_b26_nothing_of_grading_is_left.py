"""B26: the next agent finds neither tests nor reward, nor copies that test.sh made of them."""

from __future__ import annotations

import pytest
from boxes import Bench, a_box, soon

pytestmark = pytest.mark.docker

SPY = (
    "cat /tests/* /logs/verifier/* /tmp/* /var/tmp/* /run/* /dev/shm/* /tmp/.[a-z]* 2>/dev/null;"
    "find / -xdev -type f -newer /start 2>/dev/null | xargs grep -l s3cret 2>/dev/null; true"
)


def spied(bench: Bench) -> str:
    assert bench.turn(SPY).exit_code == 0
    return (bench.box.read("/logs/agent/log.txt") or b"").decode("utf-8", "replace")


def test_the_next_turn_finds_nothing() -> None:
    with a_box() as box:
        bench = Bench(box)
        bench.turn("touch /start; echo mine >/tmp/mine")
        bench.grade("echo s3cret-reward >/logs/verifier/reward.txt")
        bench.ground.after_grading(soon(), bench.processes.sweep(soon()))
        assert spied(bench) == "mine\n"


@pytest.mark.parametrize(
    "copying",
    [
        "cp $0 /tmp/copy",
        "cp -p $0 /tmp/.hidden",
        "tar -C / -cf - tests | tar -C /var/tmp -xf -",
        "cat $0 >/dev/shm/x; ln $0 /run/hard 2>/dev/null || cp $0 /run/hard",
        "mkdir -p /tmp/a/b; mv $0 /tmp/a/b/moved",
        "mv /tests /tmp/all",
        "(sleep 0.3; cp /tests/test.sh /tmp/late; sleep 100) & sleep 0.6",
    ],
)
def test_nor_the_copies_that_test_sh_made(copying: str) -> None:
    with a_box() as box:
        bench = Bench(box)
        bench.turn("touch /start; echo mine >/tmp/mine")
        bench.grade(f"# s3cret\n{copying}")
        cleaned = bench.ground.after_grading(soon(), bench.processes.sweep(soon()))
        assert cleaned.removed
        assert spied(bench) == "mine\n"


def test_a_copy_where_the_agent_works_is_at_least_told() -> None:
    with a_box() as box:
        bench = Bench(box)
        bench.grade("cp $0 /root/notes")
        cleaned = bench.ground.after_grading(soon(), bench.processes.sweep(soon()))
        assert cleaned.changed == ("/root/notes",)
