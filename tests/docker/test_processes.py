"""Who may live in a container, and the end of all others."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from boxes import a_box, commands, say, soon

from pytest_harbor.errors import SandboxError
from pytest_harbor.sandbox.container import Container, Entry
from pytest_harbor.sandbox.processes import Processes

IGNORES_TERM = "trap : TERM INT HUP; while :; do sleep 0.1; done"
SERVER = (
    "sh",
    "-c",
    # starts a worker, and another one whenever that ends; and one detached helper at its start
    "sleep 1001 & while :; do sleep 1002; done",
)


@pytest.fixture
def box() -> Iterator[Container]:
    with a_box(pids_limit=500) as box:
        box.put([Entry("/logs", None)])
        yield box


def started(box: Container) -> Processes:
    time.sleep(0.3)  # until the server of a test has started its own
    processes = Processes(box)
    processes.take_baseline()
    return processes


def leave(box: Container, script: str) -> None:
    assert box.run_logged(script, log="/logs/log", deadline=soon()).exit_code == 0
    time.sleep(0.2)


def test_nothing_to_do_costs_little_and_no_command(box: Container) -> None:
    processes = started(box)
    leave(box, "true")
    calls = count_calls(box)
    assert processes.is_quiet()
    assert processes.sweep(soon()) == ()
    assert calls == ["GET stats", "GET stats"]


def end(pattern: str) -> str:
    """A script that kills those whose whole command line matches."""
    return (
        f"for p in /proc/[0-9]*; do grep -aqx {pattern} $p/cmdline && kill -9 ${{p#/proc/}}; "
        "done 2>/dev/null; true"
    )


def count_calls(box: Container) -> list[str]:
    """Every call to the engine from now on, as 'GET stats'."""
    calls: list[str] = []
    api = box.engine.api
    send = api.send

    def counting(request, **how):  # type: ignore[no-untyped-def]
        calls.append(f"{request.method} {request.path_url.partition('?')[0].rpartition('/')[2]}")
        return send(request, **how)

    api.send = counting  # type: ignore[method-assign]
    return calls


LEFTOVERS = {
    "child": ("sleep 2000 &", ["sleep 2000"]),
    "ignores TERM": (f"sh -c '{IGNORES_TERM}' &", [f"sh -c {IGNORES_TERM}"]),
    "new session": ("setsid sleep 2000 &", ["sleep 2000"]),
    "double fork": ("( ( setsid sleep 2000 & ) & )", ["sleep 2000"]),
    "nohup": ("nohup sleep 2000 & disown -a", ["sleep 2000"]),
    "stopped": ("sleep 2000 & sleep 0.1; kill -STOP $!", ["sleep 2000"]),
    "hostile name": (
        """cp /bin/sleep '/tmp/x) S 1 1 1'; '/tmp/x) S 1 1 1' 2000 &
        perl -e 'open F, ">/proc/self/comm"; print F "a\\n) Z 1"; close F; sleep 2000' &""",
        ["/tmp/x) S 1 1 1 2000", "perl -e"],
    ),
    "of another user": ("perl -e '$< = $> = 33; sleep 2000' &", ["perl -e"]),
    "zombie with a living parent": ("perl -e 'fork or exit; sleep 2000' &", ["perl -e"]),
    "threads": ("perl -e 'fork; fork; sleep 2000' &", ["perl -e"]),
}


@pytest.mark.parametrize("kind", LEFTOVERS)
def test_leftovers_die_and_are_named(box: Container, kind: str) -> None:
    script, expected = LEFTOVERS[kind]
    processes = started(box)
    before = commands(box)
    leave(box, script)
    assert processes.strangers()
    killed = processes.sweep(soon())
    assert commands(box) == before
    assert processes.is_quiet()
    for start in expected:
        assert [line for line in killed if line.startswith(start)], killed


def test_the_groups_own_processes_are_spared() -> None:
    with a_box(SERVER) as box:
        box.put([Entry("/logs", None)])
        processes = started(box)
        assert processes.sweep(soon()) == ()
        leave(box, "sleep 2000 &")
        assert processes.sweep(soon()) == ("sleep 2000",)
        assert {"sleep 1001", "sleep 1002"} <= set(commands(box))


def test_what_a_server_starts_anew_is_its_own_affair() -> None:
    with a_box(SERVER) as box:
        box.put([Entry("/logs", None)])
        processes = started(box)
        # the server starts another worker, which is a stranger until a sweep has ended it once
        leave(box, end("sleep.1002."))
        killed = processes.sweep(soon())
        assert "sleep 1002" in killed
        assert "sleep 1002" in commands(box)


def test_a_server_that_was_still_starting_is_the_groups_own() -> None:
    """Born after the baseline, but before any command of ours: the kernel's clock tells."""
    slow = ("sh", "-c", "sleep 0.4; setsid sleep 1003 & sleep 1004")
    with a_box(slow) as box:
        box.put([Entry("/logs", None)])
        processes = Processes(box)
        processes.take_baseline()
        time.sleep(1)
        leave(box, "sleep 2000 &")
        assert processes.sweep(soon()) == ("sleep 2000",)
        assert {"sleep 1003", "sleep 1004"} <= set(commands(box))
        assert processes.sweep(soon()) == ()


def test_a_detached_server_that_was_still_starting_is_adopted() -> None:
    """Nothing but the kernel's clock vouches for it, and only a helper can be believed on that."""
    slow = ("sh", "-c", "sleep 0.4; (setsid sleep 1003 &); exec sleep 1004")
    with a_box(slow) as box:
        box.put([Entry("/logs", None)])
        processes = Processes(box)
        processes.take_baseline()
        time.sleep(1)
        leave(box, "sleep 2000 &")
        assert processes.sweep(soon()) == ("sleep 2000",)
        assert {"sleep 1003", "sleep 1004"} <= set(commands(box))
        assert processes.strangers() == ()
        assert processes.is_quiet()


def test_a_baseline_waits_for_the_first_command(
    box: Container, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine's init is there a moment before the one command that it is to run."""
    processes = Processes(box)
    look, first = processes._living, box.facts["State"]["Pid"]
    early = [{first: look()[first]}] * 2
    monkeypatch.setattr(processes, "_living", lambda: early.pop() if early else look())
    processes.take_baseline()
    assert not early
    leave(box, "sleep 2000 &")
    assert processes.sweep(soon()) == ("sleep 2000",)


def test_a_killed_server_does_not_hide_a_stranger(box: Container) -> None:
    """Counts alone would be deceived: one of ours less, one of theirs more."""
    with a_box(SERVER) as box:
        box.put([Entry("/logs", None)])
        processes = started(box)
        leave(box, end("sleep.1001.") + "; setsid sleep 2000 &")
        assert "sleep 1001" not in commands(box)
        assert processes.sweep(soon()) == ("sleep 2000",)


def test_without_an_init_zombies_pile_up_and_harm_nobody() -> None:
    with a_box(init=False) as box:
        box.put([Entry("/logs", None)])
        processes = started(box)
        for _ in range(2):
            leave(box, "( sleep 2000 & ) ; ( true & )")
            assert processes.sweep(soon()) == ("sleep 2000",)
        assert processes.strangers() == ()


@pytest.mark.parametrize(
    "bomb",
    [
        "b() { b | b & }; b; sleep 0.2",
        "perl -e 'while (1) { exit if fork; setpgrp(0, 0) }' &",
        "perl -e 'use POSIX; while (1) { exit if fork; POSIX::setsid() }' &",
    ],
    ids=["fork bomb", "hopping groups", "hopping sessions"],
)
def test_fork_bombs(box: Container, bomb: str) -> None:
    processes = started(box)
    box.run_logged(bomb, log="/logs/log", deadline=soon(10))
    begun = time.monotonic()
    assert processes.sweep(soon(20))
    assert time.monotonic() - begun < 15
    assert processes.is_quiet()
    assert say(box, "echo alive") == "alive\n"


def test_a_shell_that_was_replaced_helps_nobody(box: Container) -> None:
    """The listing comes from outside, and the last killer brings its own shell."""
    processes = started(box)
    leave(
        box, "sleep 2000 & cp /bin/true /t1; cp /bin/true /t2; mv /t1 /bin/dash; mv /t2 /bin/bash"
    )
    assert processes.sweep(soon()) == ("sleep 2000",)
    assert not [line for line in commands(box) if "2000" in line]
    label = box.facts["Config"]["Labels"]["pytest-harbor.run"]
    mine = {"label": f"pytest-harbor.run={label}"}
    assert len(box.engine.api.containers(all=True, filters=mine)) == 1, "the helper is still there"


def test_what_cannot_be_killed_stops_the_episode(
    box: Container, monkeypatch: pytest.MonkeyPatch
) -> None:
    processes = started(box)
    leave(box, "sleep 2000 &")
    monkeypatch.setattr("pytest_harbor.sandbox.reap.KILL", "exit 1")
    with pytest.raises(SandboxError, match=r"sleep 2000.*Nothing is graded") as caught:
        processes.sweep(soon())
    assert caught.value.outcome == "cleaning_failed"
    assert box.state().running
    assert say(box, "echo not paused") == "not paused\n"


def test_a_dead_container_is_not_a_clean_one(box: Container) -> None:
    processes = started(box)
    box.engine.api.kill(box.id)
    with pytest.raises(SandboxError) as caught:
        processes.sweep(soon())
    assert caught.value.outcome == "sandbox_died"


def test_the_limit_on_processes_comes_back(box: Container) -> None:
    processes = started(box)
    leave(box, "sleep 2000 &")
    with processes._no_births():
        assert box.engine.api.inspect_container(box.id)["HostConfig"]["PidsLimit"] == 1
    assert box.engine.api.inspect_container(box.id)["HostConfig"]["PidsLimit"] == 500


def test_the_baseline_comes_first(box: Container) -> None:
    with pytest.raises(RuntimeError, match="take_baseline"):
        Processes(box).sweep(soon())


def test_the_healthcheck_of_main_ends_by_itself() -> None:
    """A probe of the engine is not the agent's doing, so it is neither killed nor listed."""
    check = {"test": ["CMD", "sleep", "0.2"], "interval": 4 * 10**8, "timeout": 10**10}
    with a_box(config={"healthcheck": check}) as box:
        box.put([Entry("/logs", None)])
        processes = started(box)
        leave(box, "true")
        seen = 0
        for _ in range(100):
            seen += bool(processes.strangers())
            assert processes.sweep(soon()) == ()
            if seen == 3:
                break
            time.sleep(0.03)
        assert seen == 3
        leave(box, "sleep 1003 & sleep 0.2")
        assert "sleep 1003" in processes.sweep(soon())


def test_an_answer_that_comes_late_makes_nobody_a_stranger(
    box: Container, monkeypatch: pytest.MonkeyPatch
) -> None:
    processes = started(box)
    leave(box, "true")
    api = box.engine.api
    prompt = api.top

    def late(*arguments: object) -> object:
        answer = prompt(*arguments)
        time.sleep(3)
        return answer

    monkeypatch.setattr(api, "top", late)
    assert processes.strangers() == ()
