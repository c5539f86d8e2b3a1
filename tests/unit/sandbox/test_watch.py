from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from pytest_harbor.sandbox import watch
from pytest_harbor.sandbox.labels import birth_of

IDLE = [sys.executable, "-c", "import time; time.sleep(60)"]


def test_compose_commands_of_dead_owners_are_ended_and_no_others() -> None:
    commands = [
        subprocess.Popen([*IDLE, "--project-name", "mine-1", "up"]),
        subprocess.Popen([*IDLE, "--project-name", "mine-11", "up"]),
        subprocess.Popen([*IDLE, "mine-1", "--project-name"]),
    ]
    try:
        watch.end_compose(["mine-1", "mine-2"])
        assert commands[0].wait(10) == -signal.SIGKILL
        assert [command.poll() for command in commands[1:]] == [None, None]
    finally:
        for command in commands:
            command.kill()
            command.wait()


def test_it_reads_a_birth_as_labels_do() -> None:
    ours = birth_of(os.getpid())
    assert ours is not None
    assert watch._birth(os.getpid()) == ours.rpartition(":")[2]


def test_a_process_that_is_over_has_none() -> None:
    with subprocess.Popen(["true"]) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # ended, but not collected
        assert watch._birth(process.pid) is None
        assert birth_of(process.pid) is None
    assert birth_of(process.pid) is None


def test_it_runs_as_a_plain_script_without_the_package(tmp_path: Path) -> None:
    for name in ("runs/r/owners", "runs/r/projects", "locks"):
        (tmp_path / name).mkdir(parents=True)
    os.mkfifo(tmp_path / "runs/r/bell")
    command = [sys.executable, "-S", "-E", "-I", watch.__file__, tmp_path, tmp_path / "runs/r"]
    done = subprocess.run(command, capture_output=True, check=True, timeout=20)
    assert done.stderr == b""
    assert not (tmp_path / "runs/r").exists()
