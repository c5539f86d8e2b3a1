"""The ground of grading: fresh before, and nothing of it left behind."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from boxes import ROOT, Bench, a_box, say, soon

from pytest_harbor.errors import SandboxError
from pytest_harbor.sandbox import scratch
from pytest_harbor.sandbox.container import Container, Entry
from pytest_harbor.sandbox.scratch import Cleaned


@pytest.fixture
def bench() -> Iterator[Bench]:
    with a_box() as box:
        say(box, "mkdir /app; echo 1 >/app/code")
        yield Bench(Container(box.engine, box.id, workdir="/app"))


def kind(box: Container, path: str) -> str | None:
    stat = box.stat(path)
    return None if stat is None else f"{stat.kind} {stat.mode:o}"


def execs(box: Container) -> list[None]:
    """Grows by one with every command that is started from now on."""
    started: list[None] = []
    create = box.engine.api.exec_create

    def counting(*args: Any, **how: Any) -> Any:
        started.append(None)
        return create(*args, **how)

    box.engine.api.exec_create = counting  # type: ignore[method-assign]
    return started


class TestLogs:
    def test_folders_for_everybody(self, bench: Bench) -> None:
        for name in ("agent", "verifier", "artifacts"):
            assert kind(bench.box, f"/logs/{name}") == "folder 777"
            say(bench.box, f"touch /logs/{name}/x", user=4711)

    def test_their_time_gives_away_whoever_touches_them(self, bench: Bench) -> None:
        """Even in the second in which they were made."""
        stat = bench.box.stat("/logs/verifier")
        assert stat is not None
        assert stat.mtime_ns / 1e9 < time.time() - 3000

    def test_what_agent_setup_wrote_stays(self, bench: Bench) -> None:
        say(bench.box, "echo x >/logs/agent/setup.log; echo y >/logs/artifacts/y")
        bench.ground.prepare_logs()
        assert bench.box.listing("/logs/agent") == ("setup.log",)
        assert bench.box.listing("/logs/artifacts") == ("y",)


class TestBefore:
    def test_untouched_ground_gives_no_sign(self, bench: Bench) -> None:
        for _ in range(2):
            bench.turn("true")
            _, signs = bench.grade("true")
            assert signs == ()
            bench.ground.after_grading(soon())

    def test_only_the_verifier_may_enter(self, bench: Bench) -> None:
        bench.ground.before_grading(bench.box.user("www-data"))
        assert say(bench.box, "stat -c '%a %u %g' /tests /logs/verifier") == "700 33 33\n" * 2
        assert bench.box.run("ls /tests", user="daemon", deadline=soon()).exit_code

    def test_planted_files_are_gone_and_told(self, bench: Bench) -> None:
        bench.turn(
            "mkdir -p /tests/a; echo x >/tests/conftest.py; echo 1 >/logs/verifier/reward.txt"
        )
        ran, signs = bench.grade("ls -A /tests /logs/verifier")
        assert signs == (
            "/tests held a, conftest.py before grading",
            "/logs/verifier held reward.txt before grading",
        ) or set(signs[0].split()) >= {"a,", "conftest.py"}
        said = bench.box.read("/logs/verifier/test-stdout.txt")
        assert said == b"/logs/verifier:\ntest-stdout.txt\n\n/tests:\ntest.sh\n"
        assert ran.exit_code == 0

    @pytest.mark.parametrize(
        ("plan", "sign"),
        [
            ("ln -s /app /tests", "/tests was a link to /app before grading"),
            ("echo >/tests", "/tests was a file before grading"),
            ("mkfifo /tests", "/tests was no folder before grading"),
            (
                "rm -r /logs/verifier; ln -s /app /logs/verifier",
                "/logs/verifier was a link to /app before grading",
            ),
            ("rm -r /logs; ln -s /app /logs", "/logs was a link to /app before grading"),
            ("mkdir -m 0 /tests; chmod 0 /tests", ""),
        ],
    )
    def test_planted_links_are_not_followed(self, bench: Bench, plan: str, sign: str) -> None:
        say(bench.box, plan)
        _, signs = bench.grade("echo 1 >/logs/verifier/reward.txt")
        assert sign in signs or not sign
        assert bench.box.read("/logs/verifier/reward.txt") == b"1\n"
        assert kind(bench.box, "/logs/verifier") == kind(bench.box, "/tests") == "folder 700"
        assert not {"test.sh", "reward.txt"} & set(bench.box.listing("/app"))

    def test_tests_of_the_image_stay(self) -> None:
        with a_box() as box:
            say(box, "mkdir /tests; echo 'exit 4' >/tests/test.sh")
            bench = Bench(box)
            assert bench.ground.before_grading(ROOT, keep_tests=True) == ()
            ran = bench.ground.run_tests(
                ["sh", "/tests/test.sh"], log="/logs/verifier/o", deadline=soon()
            )
            assert ran.exit_code == 4
            bench.ground.after_grading(soon(), ())
            assert box.listing("/tests") == ("test.sh",)

    def test_a_volume_in_the_place_of_a_folder(self) -> None:
        with a_box(config={"volumes": ["/logs/verifier", "/tests"]}) as box:
            bench = Bench(box)
            bench.turn("echo x >/tests/x; mkdir -p /tests/.h/y; echo 1 >/logs/verifier/reward.txt")
            _, signs = bench.grade("ls -A /tests /logs/verifier")
            assert len(signs) == 2
            assert b"reward" not in (box.read("/logs/verifier/test-stdout.txt") or b"reward")
            assert box.listing("/tests") == ("test.sh",)
            assert kind(box, "/tests") == "folder 700"
            bench.ground.after_grading(soon(), ())
            assert box.listing("/tests") == box.listing("/logs/verifier") == ()


class TestAfter:
    def test_a_tidy_verifier_costs_no_command(self, bench: Bench) -> None:
        bench.turn("echo mine >/tmp/mine; echo x >/logs/agent/trace")
        started = execs(bench.box)
        bench.grade("echo 1 >/logs/verifier/reward.txt; echo >/tmp/t; rm /tmp/t")
        assert len(started) == 1
        assert bench.ground.after_grading(soon(), bench.processes.sweep(soon())) == Cleaned()
        assert len(started) == 1
        for path in ("/tests", "/logs/verifier", "/logs/agent"):
            assert bench.box.listing(path) == ()
        assert kind(bench.box, "/logs/verifier") == kind(bench.box, "/logs/agent") == "folder 777"
        assert bench.box.read("/tmp/mine") == b"mine\n"

    def test_what_is_new_goes_and_what_changed_is_told(self, bench: Bench) -> None:
        bench.turn(
            "echo 1 >/tmp/old; echo 1 >/tmp/same; mkdir /tmp/dir /run/dir; echo 1 >/run/dir/old;"
            "ln -s old /tmp/link; echo 1 >/dev/shm/old; echo 1 >/root/home"
        )
        bench.grade(
            "cp -p $0 /tmp/copy; cp -p $0 /tmp/dir/copy; mkdir -p /run/new/er; touch /run/new/er/x;"
            "echo 2 >/dev/shm/new; echo 2 >>/dev/shm/old; echo 2 >/tmp/old; ln -s / /var/tmp/root;"
            "mkfifo /tmp/pipe; mv $0 /run/dir/moved; echo 2 >/root/home; echo 2 >/app/code;"
            "echo 2 >/app/new; mkdir /app/.git; echo >/app/.git/index; ln -sf new /tmp/link"
        )
        cleaned = bench.ground.after_grading(soon(), ())
        assert cleaned.removed == (
            "/dev/shm/new", "/run/dir/moved", "/run/new", "/tmp/copy", "/tmp/dir/copy",
            "/tmp/pipe", "/var/tmp/root",
        )  # fmt: skip
        assert cleaned.changed == (
            "/app/code", "/app/new", "/dev/shm/old", "/root/home", "/tmp/link", "/tmp/old",
        )  # fmt: skip
        left = say(bench.box, "find /tmp /var/tmp /run /dev/shm ! -type d | sort").split()
        assert left == ["/dev/shm/old", "/run/dir/old", "/tmp/link", "/tmp/old", "/tmp/same"]
        assert bench.box.stat("/bin") is not None

    def test_names_that_break_scripts(self, bench: Bench) -> None:
        bench.turn("cd /tmp; touch -- 'keep\nme' ' keep' -keep")
        bench.grade(
            r"""cd /tmp; touch -- "a
b" ' ' -rf '*' 'keep' "$(printf '\377\376')" 'x" ; rm -rf app #' end; mkdir -- --help"""
        )
        cleaned = bench.ground.after_grading(soon(), ())
        assert set(cleaned.removed) == {
            "/tmp/a\nb", "/tmp/ ", "/tmp/-rf", "/tmp/*", "/tmp/keep", "/tmp/\udcff\udcfe",
            '/tmp/x" ; rm -rf app #', "/tmp/end", "/tmp/--help",
        }  # fmt: skip
        assert set(bench.box.listing("/tmp")) == {"keep\nme", " keep", "-keep"}
        assert bench.box.read("/app/code")

    def test_a_thing_moved_onto_an_old_name_is_told(self, bench: Bench) -> None:
        bench.turn("echo 1 >/tmp/old; touch -d 2001-01-01 /tmp/old")
        bench.grade("touch -d 2000-01-01 $0; mv $0 /tmp/old")
        assert bench.ground.after_grading(soon(), ()) == Cleaned((), ("/tmp/old",))

    def test_a_folder_that_forbids_it(self, bench: Bench) -> None:
        bench.grade("mkdir -p /tmp/ro/x; touch /tmp/ro/x/y; chmod -R 0 /tmp/ro")
        assert bench.ground.after_grading(soon(), ()).removed == ("/tmp/ro",)
        assert bench.box.listing("/tmp") == ()

    def test_a_verifier_that_is_not_root(self, bench: Bench) -> None:
        bench.turn("mkdir -m 733 /tmp/drop; mkdir -m 700 /tmp/private; touch /tmp/private/x")
        bench.grade("touch /tmp/seen /tmp/drop/unseen; id -u", user="www-data")
        cleaned = bench.ground.after_grading(soon(), ())
        assert cleaned.removed == ("/tmp/drop/unseen", "/tmp/seen")
        assert say(bench.box, "ls /tmp/private") == "x\n"

    def test_tmpfs_mounts_are_scratch_too(self) -> None:
        with a_box(tmpfs={"/tmp": "", "/run/inner": ""}) as box:
            bench = Bench(box)
            bench.turn("touch /tmp/old /run/inner/old")
            bench.grade("touch /tmp/new /run/inner/new")
            assert bench.ground.after_grading(soon(), ()).removed == ("/run/inner/new", "/tmp/new")
            assert say(box, "ls /tmp /run/inner").split() == ["/run/inner:", "old", "/tmp:", "old"]

    def test_a_link_to_another_place_is_scratch_too(self, bench: Bench) -> None:
        """An agent may turn /tmp into a link, so that test.sh litters a folder that is kept."""
        bench.turn("rm -r /tmp; mkdir /app/.t; chmod 1777 /app/.t; ln -s /app/.t /tmp")
        bench.grade("cp $0 /tmp/secret")
        assert bench.ground.after_grading(soon(), ()).removed == ("/tmp/secret",)
        assert bench.box.listing("/app/.t") == ()

    def test_a_working_directory_in_tmp_is_not_scratch(self) -> None:
        with a_box() as box:
            say(box, "mkdir -p /tmp/work")
            bench = Bench(Container(box.engine, box.id, workdir="/tmp/work"))
            bench.turn("echo 1 >made")
            bench.grade("touch built /tmp/new")
            cleaned = bench.ground.after_grading(soon(), ())
            assert cleaned == Cleaned(("/tmp/new",), ("/tmp/work/built",))

    def test_what_leftovers_write_after_the_end(self, bench: Bench) -> None:
        bench.grade("(sleep 0.3; touch /tmp/late; sleep 100) & true")
        say(bench.box, "sleep 0.5")
        killed = bench.processes.sweep(soon())
        assert killed
        assert bench.ground.after_grading(soon(), killed).removed == ("/tmp/late",)

    def test_a_verifier_out_of_time(self, bench: Bench) -> None:
        ran, _ = bench.grade("touch /tmp/x; sleep 100", seconds=1)
        assert ran.timed_out
        killed = bench.processes.sweep(soon())
        assert bench.ground.after_grading(soon(), killed).removed == ("/tmp/x",)

    def test_the_clock_of_files_may_stand_still(self, bench: Bench) -> None:
        """What is made in the tick in which the moment was taken is new all the same."""
        fragment = f"{scratch._BEFORE}rm -f /tmp/x; : >/tmp/x\nfind /tmp/x -newerct @$_ph_time"
        said = say(bench.box, f"for turn in $(seq 500); do {fragment} -printf 'new\\n'; done")
        assert said.count("new\n") == 500

    def test_nobody_knows_of_leftovers(self, bench: Bench) -> None:
        started = execs(bench.box)
        bench.grade("true")
        assert bench.ground.after_grading(soon()) == Cleaned()
        assert len(started) == 2

    @pytest.mark.parametrize("tool", ["busybox", "none"])
    def test_without_the_usual_find(self, bench: Bench, tool: str) -> None:
        """An other find has no -newerct; a bare image has none at all."""
        busybox = r"""#!/bin/sh
for word in "$@"; do case $word in -newer*|-printf) exit 1;; esac; done
exec /usr/bin/gnufind "$@"
"""
        say(bench.box, "mv /usr/bin/find /usr/bin/gnufind")
        if tool == "busybox":
            bench.box.put([Entry("/usr/bin/find", busybox.encode(), 0o755)])
        bench.turn("echo 1 >/tmp/old; mkdir /tmp/.dir; touch '/tmp/.dir/a b' '/tmp/a\nb'")
        bench.grade("touch /tmp/new /tmp/.dir/..new /tmp/.new; mkdir -p /run/x/y; echo 2 >/tmp/old")
        cleaned = bench.ground.after_grading(soon(), ())
        assert cleaned.removed == ("/run/x", "/tmp/.dir/..new", "/tmp/.new", "/tmp/new")
        assert set(bench.box.listing("/tmp")) == {"old", ".dir", "a\nb"}

    def test_changes_are_bounded(self, bench: Bench) -> None:
        bench.grade("cd /app; for n in $(seq 5000); do echo > file-with-a-long-name-$n; done")
        cleaned = bench.ground.after_grading(soon(), ())
        assert len(cleaned.changed) == 200
        assert all(path.startswith("/app/file-with-a-long-name-") for path in cleaned.changed)


class TestCannot:
    @pytest.mark.parametrize("tool", ["rm", "xargs"])
    def test_tools_that_do_nothing(self, bench: Bench, tool: str) -> None:
        bench.turn(f"cp /bin/true /t && mv /t $(command -v {tool})")
        bench.grade("touch /tmp/secret")
        with pytest.raises(SandboxError, match="/tmp/secret") as caught:
            bench.ground.after_grading(soon(), ())
        assert caught.value.outcome == "cleaning_failed"

    def test_a_shell_that_does_nothing(self, bench: Bench) -> None:
        bench.grade("touch /tmp/x; cp /bin/true /t && mv /t /bin/dash")
        with pytest.raises(SandboxError):
            bench.ground.after_grading(soon(), ("something",))

    def test_a_lost_listing(self, bench: Bench) -> None:
        bench.ground.before_grading(ROOT)
        with pytest.raises(SandboxError, match="no listing") as caught:
            bench.ground.after_grading(soon(), ())
        assert caught.value.outcome == "cleaning_failed"

    def test_a_deadline(self, bench: Bench) -> None:
        bench.grade("touch /tmp/x")
        slow = b"#!/bin/sh\nsleep 30\n"
        bench.box.put([Entry("/usr/bin/find", slow, 0o755)])
        with pytest.raises(SandboxError, match="the patience of cleaning, after 1 s") as caught:
            bench.ground.after_grading(soon(1, "the patience of cleaning"), ())
        assert caught.value.outcome == "cleaning_failed"

    def test_a_dead_container(self, bench: Bench) -> None:
        bench.grade("touch /tmp/x")
        bench.box.engine.api.kill(bench.box.id)
        with pytest.raises(SandboxError) as caught:
            bench.ground.after_grading(soon(), ())
        assert caught.value.outcome == "sandbox_died"
