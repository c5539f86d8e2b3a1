"""B14: an agent that kills its container is told as that, and is not a low score."""

from __future__ import annotations

import pytest
from boxes import Bench, a_box, say, soon

from pytest_harbor.errors import SandboxError

pytestmark = pytest.mark.docker

CHATTY = ("sh", "-c", "echo the last words of the server; while :; do sleep 0.2; done")


def test_exit_code_memory_flag_and_last_words() -> None:
    with a_box(CHATTY) as box:
        bench = Bench(box)
        with pytest.raises(SandboxError) as caught:
            bench.turn("kill 1; sleep 20")
    assert caught.value.outcome == "sandbox_died"
    said = str(caught.value)
    assert "died with exit code 143" in said
    assert "out of memory: no" in said
    assert "the last words of the server" in said


def test_a_container_that_ran_out_of_memory_says_so() -> None:
    hungry = ("perl", "-e", "sleep 1; $x .= 'x' x 1e6 while 1")
    with a_box(hungry, init=False, mem_limit="64m", memswap_limit="64m") as box:
        with pytest.raises(SandboxError, match="out of memory: yes") as caught:
            Bench(box).turn("sleep 20")
        assert caught.value.outcome == "sandbox_died"


def test_a_process_that_was_killed_alone_is_no_dead_container() -> None:
    with a_box() as box:
        ran = Bench(box).turn("kill -9 $$")
        assert ran.exit_code == 137
        assert say(box, "echo alive") == "alive\n"


def test_a_wrapper_that_was_killed_is_no_dead_container() -> None:
    with a_box() as box:
        ran = Bench(box).turn("kill -9 $PPID; sleep 20")
        assert ran.exit_code == 137
        assert box.state().running


def test_a_container_that_dies_between_two_commands() -> None:
    with a_box() as box:
        bench = Bench(box)
        bench.turn("(sleep 1; kill 1) & true")
        say(box, "true")
        while box.state().running:
            pass
        for attempt in (
            lambda: box.run("true", deadline=soon()),
            lambda: bench.processes.sweep(soon()),
            lambda: bench.ground.run_tests("true", log="/logs/x", deadline=soon()),
        ):
            with pytest.raises(SandboxError, match="exit code") as caught:
                attempt()
            assert caught.value.outcome == "sandbox_died"
