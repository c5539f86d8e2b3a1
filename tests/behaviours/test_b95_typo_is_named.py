"""B95: a misspelt key or table is named, with what was probably meant.

That ``--harbor-strict`` makes an error of it is tested with the plugin.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from task_folders import write_task

from pytest_harbor.task.load import load_task


@pytest.mark.parametrize(
    ("toml", "place", "meant"),
    [
        ("[agent]\ntimeout_secs = 5\n", "[agent] timeout_secs", "'timeout_sec'"),
        ("[verifer]\ntimeout_sec = 5\n", "[verifer]", "'verifier'"),
        ("[enviroment]\ncpus = 1\n", "[enviroment]", "'environment'"),
        ("[environment]\nmemory_md = 1\n", "[environment] memory_md", "'memory_mb'"),
        ("[environment]\ndocker-image = 'x'\n", "[environment] docker-image", "'docker_image'"),
        ("multistep_reward_strategy = 'mean'\n", "multistep_reward_strategy", "'multi_step_reward"),
        ("[environment]\nmcp_server = []\n", "[environment] mcp_server", "'mcp_servers'"),
    ],
)
def test_a_typo(tmp_path: Path, toml: str, place: str, meant: str) -> None:
    [warning] = load_task(write_task(tmp_path, toml)).warnings
    assert warning.startswith(f"task.toml: {place}: unknown key, ignored; did you mean ")
    assert meant in warning


def test_two_typos_are_two_warnings(tmp_path: Path) -> None:
    toml = "[agent]\ntimeout_secs = 5\n[verifer]\ntimeout_sec = 5\n"
    assert len(load_task(write_task(tmp_path, toml)).warnings) == 2


def test_metadata_is_free(tmp_path: Path) -> None:
    toml = "[metadata]\ntimeout_secs = 5\nverifer = {x = 1}\n"
    assert load_task(write_task(tmp_path, toml)).warnings == ()
