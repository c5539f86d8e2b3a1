"""What script/setup promises on a machine that is set up: nothing to do, images that build."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def base_images() -> list[str]:
    lines = (ROOT / "script/base-images").read_text().splitlines()
    return [line.split()[0] for line in lines if line.strip() and not line.startswith("#")]


def test_a_second_setup_has_nothing_to_do() -> None:
    if not (ROOT / ".venv/.setup-stamp").exists():
        pytest.skip("this machine was not set up by script/setup")
    began = time.monotonic()
    result = run("bash", "script/setup")
    assert result.returncode == 0, result.stderr
    assert "up to date" in result.stdout
    assert "installing" not in result.stdout
    assert "stand-in" not in result.stdout
    # under a second alone; room for a machine that runs other tests meanwhile
    assert time.monotonic() - began < 20


def test_the_local_model_is_compiled_once() -> None:
    if not (ROOT / ".venv/.setup-stamp").exists():
        pytest.skip("this machine was not set up by script/setup")
    if not os.environ.get("PYTEST_HARBOR_REQUIRE_LOCAL_MODEL"):
        pytest.skip("nobody asked script/setup for the local model")
    began = time.monotonic()
    result = run("bash", "script/setup", "--local-model")
    assert result.returncode == 0, result.stderr
    assert "local model: there" in result.stdout
    assert time.monotonic() - began < 30


def test_setup_refuses_what_it_does_not_know() -> None:
    result = run("bash", "script/setup", "--local-modal")
    assert result.returncode == 1
    assert "script/setup knows no --local-modal" in result.stderr


def test_setup_names_an_engine_that_does_not_answer(tmp_path: Path) -> None:
    if not (ROOT / ".venv/.setup-stamp").exists():
        pytest.skip("this machine was not set up by script/setup")
    result = run("bash", "script/setup", DOCKER_HOST=f"unix://{tmp_path}/nobody.sock")
    assert result.returncode == 1
    assert "FAILED: no Docker engine answers at DOCKER_HOST=" in result.stderr
    assert "installing" not in result.stdout


@pytest.mark.parametrize("image", base_images())
def test_base_images_say_what_they_are(image: str) -> None:
    label = '{{index .Config.Labels "pytest-harbor.stand-in"}}'
    result = run("docker", "image", "inspect", "--format", label, image)
    assert result.returncode == 0, result.stderr
    release = run("docker", "run", "--rm", "--network=none", image, "cat", "/etc/os-release").stdout
    if result.stdout.strip() == "true":
        assert "Debian" in release
    elif image.startswith("ubuntu:"):
        assert "Ubuntu" in release
