"""B96, B97, B81: scripts run with Windows line ends, without an exec bit, without a first line, on
a file system without execution, as any user; and where the task says."""

from __future__ import annotations

from pathlib import Path

import pytest
from episodes import GIVES_1, Part, many_steps, one_step, play

pytestmark = pytest.mark.docker


def test_b96_windows_line_ends(tmp_path: Path) -> None:
    crlf = "#!/bin/bash\r\nset -e\r\necho done > /app/work\r\n"
    test = (
        "#!/bin/bash\r\nif [ -e /app/work ]; then\r\n  echo 1 > /logs/verifier/reward.txt\r\nfi\r\n"
    )
    step = Part(None, None, files={"workdir/setup.sh": "touch /app/was-set-up\r\n"})
    task = many_steps(tmp_path, "", step, step)
    for script in ("solution/solve.sh", "tests/test.sh"):
        path = task / script
        path.parent.mkdir()
        path.write_bytes((crlf if "solve" in script else test).encode())
    played = play(task)
    assert played.result.reward == 1
    assert played["one"].turn is not None
    assert played["one"].turn.exit_code == 0


def test_b97_no_exec_bit_no_first_line_another_user(tmp_path: Path) -> None:
    task = one_step(
        tmp_path,
        '[verifier]\nuser = 1000\n[agent]\nuser = 1000\n[environment]\nworkdir = "/srv/deep/work"',
        solve="#",  # replaced below
        test="#",
    )
    (task / "solution/solve.sh").write_text(
        "pwd > /logs/artifacts/agent; id -u >> /logs/artifacts/agent\n"
    )
    (task / "tests/test.sh").write_text(
        "pwd; id -u; touch /tests/mine /logs/verifier/mine\n" + GIVES_1
    )
    for name in ("solution/solve.sh", "tests/test.sh"):
        (task / name).chmod(0o644)
    played = play(task)
    assert (played.result.outcome, played.result.reward) == ("passed", 1)
    assert played.read("artifacts/logs/artifacts/agent") == "/srv/deep/work\n1000\n"
    assert played.read("verifier/test-stdout.txt") == "/srv/deep/work\n1000\n"
    assert (played.folder / "verifier/mine").exists()


def test_b97_folders_without_execution(tmp_path: Path) -> None:
    compose = "services: {main: {tmpfs: [/tests, /solution]}}\n"
    files = {"environment/docker-compose.yaml": compose}
    first = Part("echo solved > /app/x", "mount | grep /tests; cat /app/x && " + GIVES_1)
    played = play(many_steps(tmp_path, "", first, first, **files))
    assert "noexec" in played.read("steps/two/verifier/test-stdout.txt")
    assert (played.result.outcome, played.result.reward) == ("passed", 1)


def test_b97_an_interpreter_is_respected(tmp_path: Path) -> None:
    perl = "#!/usr/bin/perl\nopen my $f, '>', '/logs/verifier/reward.txt'; print $f 0.5 + 0.5;\n"
    assert play(one_step(tmp_path, test=perl)).result.reward == 1
