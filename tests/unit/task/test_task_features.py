"""What loads and is refused before it runs, by name."""

from __future__ import annotations

from pathlib import Path

import pytest
from task_folders import write_files, write_steps, write_task

from pytest_harbor.task.load import load_task, unsupported_features

STEP = "[[steps]]\nname = 'a'\n"


def features(folder: Path) -> tuple[str, ...]:
    return unsupported_features(load_task(folder))


@pytest.mark.parametrize(
    "toml",
    [
        "",
        "[environment]\nnetwork_mode = 'public'\nallow_internet = true\ngpus = 0\n",
        "[agent]\nnetwork_mode = 'public'\n",
        "[verifier]\nenvironment_mode = 'shared'\n",
        "[environment]\nstorage_mb = 10240\ncpus = 0.5\nworkdir = '/app'\n",
        "[[environment.mcp_servers]]\nname='u'\ntransport='stdio'\ncommand='x'\n",
    ],
)
def test_runs(tmp_path: Path, toml: str) -> None:
    assert features(write_task(tmp_path, toml)) == ()


@pytest.mark.parametrize(
    ("toml", "feature"),
    [
        ("[environment]\nallow_internet = false\n", '([environment] network_mode = "no-network")'),
        ("[environment]\nnetwork_mode = 'allowlist'\nallowed_hosts = ['a.com']\n", "allowlist"),
        ("[agent]\nnetwork_mode = 'no-network'\n", '([agent] network_mode = "no-network")'),
        ("[verifier]\nnetwork_mode = 'no-network'\n", '([verifier] network_mode = "no-network")'),
        ("[environment]\ngpus = 2\n", "GPUs ([environment] gpus = 2)"),
        ("[environment.tpu]\ntype = 'v6e'\ntopology = '2x4'\n", "TPUs ([environment.tpu])"),
        ("[environment]\nskills_dir = '/skills'\n", "skills ([environment] skills_dir = '/sk"),
        ("[verifier]\nenvironment_mode = 'separate'\n", "a verifier in a container of its own"),
        ("[verifier.environment]\ncpus = 1\n", "a verifier in a container of its own ([verifier])"),
    ],
)
def test_is_named(tmp_path: Path, toml: str, feature: str) -> None:
    [named] = features(write_task(tmp_path, toml))
    assert feature in named


@pytest.mark.parametrize(
    ("toml", "feature"),
    [
        ("[steps.agent]\nnetwork_mode = 'no-network'\n", '([[steps]] a [agent] network_mode = "no'),
        ("[steps.verifier]\nenvironment_mode = 'separate'\n", "of its own ([[steps]] a)"),
        ("[steps.verifier.environment]\ncpus = 1\n", "of its own ([[steps]] a)"),
    ],
)
def test_of_a_step(tmp_path: Path, toml: str, feature: str) -> None:
    [named] = features(write_steps(tmp_path, "a", toml=STEP + toml))
    assert feature in named


@pytest.mark.parametrize(
    ("task", "step", "separate"),
    [
        ("", "", False),
        ("environment_mode = 'separate'", "", True),
        ("environment_mode = 'separate'", "environment_mode = 'shared'", False),
        ("environment = {cpus = 1}", "environment_mode = 'shared'", False),
        ("environment_mode = 'shared'", "environment = {cpus = 1}", True),
    ],
)
def test_the_step_decides_before_the_task(
    tmp_path: Path, task: str, step: str, separate: bool
) -> None:
    toml = f"[verifier]\n{task}\n{STEP}[steps.verifier]\n{step}\n"
    [loaded] = load_task(write_steps(tmp_path, "a", toml=toml)).steps
    assert loaded.separate_verifier is separate


def test_windows(tmp_path: Path) -> None:
    files = {"tests/test.bat": "x"}
    folder = write_task(tmp_path, "[environment]\nos = 'windows'\n", **files)
    assert features(folder) == ('Windows containers ([environment] os = "windows")',)


def test_a_prior_session(tmp_path: Path) -> None:
    single = write_task(tmp_path / "single", **{"trajectory.json": "{}"})
    assert features(single) == ("a prior session (trajectory.json)",)

    many = write_steps(tmp_path / "many", "a", "b", **{"steps/a/trajectory.json": "{}"})
    assert features(many) == ("a prior session (steps/a/trajectory.json)",)

    ignored = write_steps(tmp_path / "ignored", "a", "b", **{"trajectory.json": "{}"})
    write_files(ignored, {"steps/b/trajectory.json": "{}"})
    assert features(ignored) == ()


def test_several_at_once(tmp_path: Path) -> None:
    toml = "[environment]\ngpus = 1\nskills_dir = '/s'\nnetwork_mode = 'no-network'\n"
    assert len(features(write_task(tmp_path, toml))) == 3
