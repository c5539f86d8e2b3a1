"""B59: collection never talks to Docker; a broken client cannot make it crash or loop."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from fake_datasets import STEPS_TOML, run, write_task


def test_b59_a_docker_that_crashes_is_never_called(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makeini("[pytest]\n")
    folder = pytester.mkdir("bin")
    called = pytester.path / "docker-was-called"
    for name in ("docker", "docker-compose"):
        program = Path(folder / name)
        program.write_text(f"#!/bin/sh\ntouch {called}\nkill -s SEGV $$\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    for number in range(3):
        write_task(pytester.path / "ds" / f"task-{number}", STEPS_TOML)
    for workers in ((), ("-n2",)):
        result = run(pytester, "--collect-only", "-q", *workers, inside=False)
        assert result.ret == pytest.ExitCode.OK
        result.stdout.fnmatch_lines(["ds/task-2/task.toml::task-2", "3 tests collected*"])
    result = run(pytester, "-n2", "-k", "nothing-of-the-kind")
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    assert not called.exists()
