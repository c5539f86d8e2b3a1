"""Commands, files and facts of a container, against a real engine."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from boxes import a_box, commands, say, soon
from requests import ConnectionError
from requests.adapters import HTTPAdapter

from pytest_harbor.errors import SandboxError
from pytest_harbor.sandbox.container import Container, Entry, Stat, UserIds
from pytest_harbor.sandbox.engine import Engine


@pytest.fixture(scope="module")
def box() -> Iterator[Container]:
    with a_box(config={"environment": {"FROM_IMAGE": "yes", "log": "kept"}}) as box:
        box.put([Entry("/logs", None, 0o777)])
        yield box


class TestRun:
    def test_output_and_exit_code(self, box: Container) -> None:
        ran = box.run("echo out; echo err >&2; exit 3", deadline=soon())
        assert (ran.exit_code, ran.output, ran.output_size) == (3, b"out\nerr\n", 8)
        assert not ran.timed_out
        assert ran.limit == ""
        took = (ran.finished_at - ran.started_at).total_seconds()
        assert 0 < took == pytest.approx(ran.seconds, abs=0.05)

    def test_it_is_bash_without_rc_files(self, box: Container) -> None:
        box.put([Entry("/root/.bashrc", b"echo rc\n"), Entry("/root/.profile", b"echo rc\n")])
        assert say(box, "echo ${BASH_VERSION:+bash}") == "bash\n"

    def test_sh_where_there_is_no_bash(self) -> None:
        with a_box() as other:
            other.run("rm -f /bin/bash", deadline=soon())
            fresh = Container(other.engine, other.id)
            assert say(fresh, "echo ${BASH_VERSION:-none}") == "none\n"

    def test_environment_user_and_folder(self, box: Container) -> None:
        script = 'echo "$FROM_IMAGE $MINE $(id -u) $PWD"'
        env = {"MINE": "a=b $c\n'd'"}
        said = say(box, script, env=env, user="www-data", workdir="/var/tmp")
        assert said == "yes a=b $c\n'd' 33 /var/tmp\n"

    def test_our_own_variables_stay_ours(self, box: Container) -> None:
        box.run_logged("env", log="/logs/env", deadline=soon())
        assert b"log=kept\n" in (box.read("/logs/env") or b"")
        assert b"_ph_" not in (box.read("/logs/env") or b"")
        assert "_ph_" not in say(box, "env")

    def test_long_output_keeps_both_ends_and_says_so(self, box: Container) -> None:
        ran = box.run("seq 200000", deadline=soon(), limit=1000)
        assert ran.output_size == 1288895
        assert ran.output.startswith(b"1\n2\n")
        assert ran.output.endswith(b"199999\n200000\n")
        assert b"[... 1287895 of 1288895 bytes left out here ...]" in ran.output
        assert len(ran.output) < 1100

    def test_a_child_with_its_output_does_not_hold_it_long(self, box: Container) -> None:
        ran = box.run("sleep 300 & echo $! >/pid; echo done", deadline=soon())
        assert (ran.exit_code, ran.output) == (0, b"done\n")
        assert ran.seconds < 6
        say(box, "kill -9 $(cat /pid)")

    def test_closed_output_is_not_the_end(self, box: Container) -> None:
        ran = box.run("exec >&- 2>&-; sleep 0.4; exit 4", deadline=soon())
        assert ran.exit_code == 4
        assert ran.seconds >= 0.4

    def test_silence_longer_than_the_clients_timeout(self) -> None:
        with a_box(engine=Engine(timeout=1)) as box:
            assert say(box, "sleep 2.5; echo awake") == "awake\n"
            box.put([Entry("/logs", None)])
            ran = box.run_logged("sleep 2.5; exit 6", log="/logs/x", deadline=soon())
            assert ran.exit_code == 6

    def test_deadline_kills_its_session(self, box: Container) -> None:
        ran = box.run("sleep 301 & sleep 302; echo no", deadline=soon(0.5))
        assert (ran.exit_code, ran.timed_out) == (None, True)
        assert ran.seconds < 2
        assert not [line for line in commands(box) if "sleep 30" in line]

    def test_endless_output_meets_its_deadline(self, box: Container) -> None:
        ran = box.run("yes", deadline=soon(0.5), limit=100)
        assert ran.timed_out
        assert ran.seconds < 3
        assert not [line for line in commands(box) if line.startswith("yes")]

    def test_what_cannot_start_says_why(self, box: Container) -> None:
        with pytest.raises(SandboxError, match="/nowhere") as caught:
            box.run("true", workdir="/nowhere", deadline=soon())
        assert caught.value.outcome == "setup_failed"
        with pytest.raises(SandboxError, match="unable to find user nobody-here"):
            box.run("true", user="nobody-here", deadline=soon())

    def test_a_script_that_fits_no_argument_is_refused(self, box: Container) -> None:
        with pytest.raises(ValueError, match="put it as a file"):
            box.run("#" * 200_000, deadline=soon())

    def test_many_at_once(self, box: Container) -> None:
        said: list[str] = []
        threads = [
            threading.Thread(target=lambda n=n: said.append(say(box, f"echo {n}")))
            for n in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(said) == [f"{n}\n" for n in range(8)]


class TestRunLogged:
    def test_output_goes_to_a_file_and_input_comes_from_one(self, box: Container) -> None:
        box.put([Entry("/logs/in", b"a prompt\n")])
        ran = box.run_logged(
            ["cat", "-", "/none"], log="/logs/a", stdin="/logs/in", deadline=soon()
        )
        assert (ran.exit_code, ran.output) == (1, b"")
        assert box.read("/logs/a") == b"a prompt\ncat: /none: No such file or directory\n"

    def test_a_child_that_outlives_it_delays_nobody(self, box: Container) -> None:
        script = "(sleep 2; echo late) & setsid sleep 2 & echo early"
        ran = box.run_logged(script, log="/logs/b", deadline=soon())
        assert ran.exit_code == 0
        assert ran.seconds < 1.5

    def test_a_script_may_give_its_place_to_a_program(self, box: Container) -> None:
        ran = box.run_logged("exec sh -c 'sleep 0.3; exit 5'", log="/logs/c", deadline=soon())
        assert ran.exit_code == 5

    def test_deadline_leaves_the_sweep_to_others(self, box: Container) -> None:
        script = "echo $$ >/pid; exec sleep 303"
        ran = box.run_logged(script, log="/logs/d", deadline=soon(0.4))
        assert (ran.exit_code, ran.timed_out) == (None, True)
        assert "sleep 303" in commands(box)
        say(box, "kill -9 $(cat /pid)")

    def test_fragments_around_it(self, box: Container) -> None:
        ran = box.run_logged(
            "echo inside; exit 9", log="/logs/e", deadline=soon(), before="echo b", after="echo a"
        )
        assert (ran.exit_code, ran.output) == (9, b"b\na\n")
        assert box.read("/logs/e") == b"inside\n"

    def test_a_program_that_is_not_there(self, box: Container) -> None:
        ran = box.run_logged(["no-such-program"], log="/logs/f", deadline=soon())
        assert ran.exit_code == 127
        assert b"no-such-program" in (box.read("/logs/f") or b"")

    @pytest.mark.parametrize("how", [{"log": "/none/x"}, {"log": "/logs/x", "stdin": "/none"}])
    def test_files_that_cannot_be_opened(self, box: Container, how: dict[str, str]) -> None:
        with pytest.raises(SandboxError, match=r"cannot open .*/none") as caught:
            box.run_logged("touch /ran", deadline=soon(), **how)
        assert caught.value.outcome == "setup_failed"
        assert box.stat("/ran") is None

    def test_who_takes_the_connection_from_proc_delays_it_little(self, box: Container) -> None:
        script = "exec 3>/proc/$PPID/fd/1; sleep 30 & exit 8"
        ran = box.run_logged(script, log="/logs/g", deadline=soon(15))
        assert ran.exit_code == 8
        assert ran.seconds < 6


class TestUser:
    @pytest.mark.parametrize(
        ("asked", "ids"),
        [
            (None, UserIds("root", 0, 0, "/root")),
            (0, UserIds("root", 0, 0, "/root")),
            ("www-data", UserIds("www-data", 33, 33, "/var/www")),
            (33, UserIds("www-data", 33, 33, "/var/www")),
            ("33:daemon", UserIds("www-data", 33, 1, "/var/www")),
            ("root:daemon", UserIds("root", 0, 1, "/root")),
            ("4711:4712", UserIds("4711", 4711, 4712, "/")),
            (4711, UserIds("4711", 4711, 0, "/")),
        ],
    )
    def test_as_the_engine_finds_it(
        self, box: Container, asked: str | int | None, ids: UserIds
    ) -> None:
        assert box.user(asked) == ids
        assert say(box, "id -u; id -g", user=asked) == f"{ids.uid}\n{ids.gid}\n"

    def test_the_images_own(self) -> None:
        with a_box(config={"user": "daemon"}) as box:
            assert box.user(None) == UserIds("daemon", 1, 1, "/usr/sbin")

    def test_an_unknown_name_tells_who_is_known(self, box: Container) -> None:
        with pytest.raises(SandboxError, match=r"no user 'agent'.*www-data"):
            box.user("agent")

    def test_a_table_behind_a_link(self) -> None:
        with a_box() as box:
            say(box, "mv /etc/passwd /opt/people && ln -s /opt/people /etc/passwd")
            assert box.user("www-data").uid == 33


class TestFiles:
    def test_put_and_get(self, box: Container, tmp_path: Path) -> None:
        source = tmp_path / "big"
        source.write_bytes(b"0123456789" * 500_000)
        source.chmod(0o750)
        box.put(
            [
                Entry("/put", None, 0o750, 33, 33),
                Entry("/put/deep/er/x.sh", b"#!/bin/sh\n", 0o755, 33, 34),
                Entry("/put/big", source),
                Entry("/put/ln", link="big"),
                Entry("/put/" + "n" * 200 + "/ü", b""),
            ]
        )
        said = say(box, "stat -c '%n %a %u %g' /put /put/deep/er/x.sh /put/big; readlink /put/ln")
        assert said.splitlines() == [
            "/put 750 33 33", "/put/deep/er/x.sh 755 33 34", "/put/big 750 0 0", "big",
        ]  # fmt: skip
        got = box.get_tree("/put", tmp_path / "got", limit_bytes=10**8)
        assert (got.found, got.is_folder, got.files, got.skipped) == (True, True, 3, ())
        assert (tmp_path / "got/big").read_bytes() == source.read_bytes()
        assert (tmp_path / "got/ln").readlink() == Path("big")
        assert (tmp_path / "got" / ("n" * 200) / "ü").exists()

    def test_one_file_becomes_the_target(self, box: Container, tmp_path: Path) -> None:
        box.put([Entry("/one/name", b"1")])
        got = box.get_tree("/one/name", tmp_path / "here" / "other", limit_bytes=100)
        assert (got.is_folder, got.files) == (False, 1)
        assert (tmp_path / "here/other").read_bytes() == b"1"

    def test_what_is_not_there(self, box: Container, tmp_path: Path) -> None:
        assert not box.get_tree("/none", tmp_path / "x", limit_bytes=1).found
        assert box.read("/none") is None
        assert box.stat("/none/deeper") is None
        assert box.listing("/none") == ()

    def test_put_of_nothing(self, box: Container) -> None:
        box.put([])

    def test_a_link_at_the_target_is_replaced(self, box: Container) -> None:
        say(box, "mkdir /trap; ln -s /trap /ln1; ln -s /trap/file /ln2; ln -s / /ln3")
        box.put(
            [Entry("/ln1", None), Entry("/ln1/x", b"1"), Entry("/ln2", b"2"), Entry("/ln3", None)]
        )
        assert say(box, "ls -A /trap") == ""
        kinds = [box.stat(path) for path in ("/ln1", "/ln2", "/ln3")]
        assert [stat and stat.kind for stat in kinds] == ["folder", "file", "folder"]

    def test_a_fresh_folder_is_empty_and_another_keeps_what_it_has(self, box: Container) -> None:
        say(box, "mkdir -p /f/a/b /k; touch /f/.h /f/a/b/c /k/x; chmod 0 /f/a")
        box.put([Entry("/f", None, 0o700, 33, 33, fresh=True), Entry("/k", None, 0o711)])
        assert say(box, "ls -A /f; ls -A /k; stat -c '%a %u' /f /k") == "x\n700 33\n711 0\n"

    def test_stat(self, box: Container) -> None:
        say(box, "mkfifo /pipe; ln -s bin /to-bin; touch -d 2001-02-03T04:05:06.789Z /old")
        assert box.stat("/old") == Stat("file", 0, 0o644, 981173106_789000000, "")
        link, pipe, folder = box.stat("/to-bin"), box.stat("/pipe"), box.stat("/tmp")
        assert link is not None
        assert (link.kind, link.target) == ("link", "/usr/bin")
        assert pipe is not None
        assert pipe.kind == "other"
        assert folder is not None
        assert (folder.kind, folder.mode) == ("folder", 0o777)

    def test_read_is_bounded_and_follows_no_link(self, box: Container) -> None:
        say(box, "head -c 3000000 /dev/zero >/zeros; ln -s /etc/passwd /secret")
        assert box.read("/secret") is None
        assert box.read("/tmp") is None
        kept = box.read("/zeros", limit=100)
        assert kept is not None
        assert b"of 3000000 bytes left out" in kept
        assert len(kept) < 200

    def test_listing_is_bounded(self, box: Container) -> None:
        say(box, "mkdir -p /many/sub; cd /many; touch $(seq 50); touch sub/inner")
        assert len(box.listing("/many")) == 51
        assert len(box.listing("/many", limit=5)) == 5

    def test_breaking_off_a_large_answer_leaves_the_client_usable(self, box: Container) -> None:
        for _ in range(5):
            assert box.listing("/usr/bin", limit=2)
            assert box.read("/etc/hostname")

    @pytest.mark.parametrize("path", ["relative", "/a/../b", "/", ""])
    def test_paths_that_make_no_sense(self, box: Container, path: str) -> None:
        with pytest.raises(ValueError, match="absolute path"):
            box.put([Entry(path, b"")])

    def test_a_read_only_container_says_so(self) -> None:
        with a_box(read_only=True) as box, pytest.raises(SandboxError, match="read-only"):
            box.put([Entry("/x", b"")])


class TestTmpfs:
    """The engine's file calls do not see a tmpfs, and do not say so."""

    @pytest.fixture
    def wet(self) -> Iterator[Container]:
        with a_box(tmpfs={"/wet": "exec"}) as wet:
            yield wet

    def test_files_go_in_and_out(self, wet: Container, tmp_path: Path) -> None:
        wet.put([Entry("/wet/a/b", b"content", 0o640, 33, 34), Entry("/dry", b"")])
        assert say(wet, "cat /wet/a/b; stat -c ' %a %u %g' /wet/a/b") == "content 640 33 34\n"
        assert wet.read("/wet/a/b") == b"content"
        assert wet.listing("/wet") == ("a",)
        stat = wet.stat("/wet/a/b")
        assert stat is not None
        assert (stat.kind, stat.size, stat.mode) == ("file", 7, 0o640)
        assert wet.stat("/wet/none") is None
        assert wet.get_tree("/wet/a", tmp_path / "a", limit_bytes=100).files == 1
        assert not wet.get_tree("/wet/none", tmp_path / "n", limit_bytes=100).found

    def test_a_fresh_folder(self, wet: Container) -> None:
        say(wet, "mkdir /wet/f; touch /wet/f/old")
        wet.put([Entry("/wet/f", None, fresh=True), Entry("/wet/f/new", b"")])
        assert wet.listing("/wet/f") == ("new",)


class TestDeath:
    def test_state(self, box: Container) -> None:
        state = box.state()
        assert (state.running, state.exit_code, state.oom_killed) == (True, 0, False)

    def test_a_killed_command_is_not_a_dead_container(self, box: Container) -> None:
        assert box.run("kill -9 $$", deadline=soon()).exit_code == 137

    def test_a_restarted_container_is_a_dead_one(self) -> None:
        with a_box(restart_policy={"Name": "always"}) as box:
            say(box, "true")
            with pytest.raises(SandboxError, match=r"died|started anew") as caught:
                box.run("kill 1; sleep 20", deadline=soon())
            assert caught.value.outcome == "sandbox_died"

    def test_a_removed_container(self) -> None:
        with a_box() as box:
            say(box, "true")
            other = Engine()
            box.engine.api.stop(box.id, timeout=0)
            for attempt in (
                lambda: box.run("true", deadline=soon()),
                lambda: box.run_logged("true", log="/x", deadline=soon()),
            ):
                with pytest.raises(SandboxError, match="exit code") as caught:
                    attempt()
                assert caught.value.outcome == "sandbox_died"
            other.close()

    def test_a_container_that_never_was(self, tmp_path: Path) -> None:
        ghost = Container(Engine(), "0" * 64)
        for attempt in (
            lambda: ghost.run("true", deadline=soon()),
            lambda: ghost.read("/etc/passwd"),
            lambda: ghost.stat("/etc/passwd"),
            lambda: ghost.put([Entry("/x", b"")]),
            lambda: ghost.get_tree("/etc", tmp_path, limit_bytes=1),
        ):
            with pytest.raises(SandboxError, match="gone") as caught:
                attempt()
            assert caught.value.outcome == "sandbox_died"
        ghost.engine.close()

    def test_an_engine_that_is_lost(self, tmp_path: Path) -> None:
        lost = Container(Engine(timeout=1), "0" * 64)
        lost.facts = {"State": {"StartedAt": ""}, "Config": {}, "Mounts": [], "HostConfig": {}}  # type: ignore[misc]
        lost.engine.api.mount("http+docker://", _Lost())
        with pytest.raises(SandboxError, match="engine was lost") as caught:
            lost.read("/etc/passwd")
        assert caught.value.outcome == "sandbox_died"
        lost.engine.close()

    def test_a_command_without_memory_dies_alone(self) -> None:
        with a_box(mem_limit="32m", memswap_limit="32m") as box:
            ran = box.run("exec tail /dev/zero", deadline=soon())
            assert ran.exit_code == 137
            assert say(box, "echo alive") == "alive\n"


class _Lost(HTTPAdapter):
    def send(self, *args: object, **how: object) -> NoReturn:  # type: ignore[override]
        raise ConnectionError("connection refused")
