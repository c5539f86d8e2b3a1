"""What a plan refuses before anything is created."""

from __future__ import annotations

from pathlib import Path

import pytest
from task_folders import write_files

from pytest_harbor.agents.nop import NopAgent
from pytest_harbor.agents.oracle import OracleAgent
from pytest_harbor.episode.plan import make_plan
from pytest_harbor.errors import TaskError
from pytest_harbor.recipe import make_recipe
from pytest_harbor.task.load import load_task

FILES = {
    "task.toml": "",
    "instruction.md": "x",
    "tests/test.sh": "true",
    "environment/Dockerfile": "FROM x\n",
}


def test_an_oracle_needs_something_to_play(tmp_path: Path) -> None:
    write_files(tmp_path, FILES)
    with pytest.raises(TaskError, match=r"has no solution for the agent oracle to play"):
        make_plan(load_task(tmp_path), make_recipe([]), OracleAgent(), {})
    make_plan(load_task(tmp_path), make_recipe([]), NopAgent(), {})
    write_files(tmp_path, {"solution/solve.sh": "true"})
    make_plan(load_task(tmp_path), make_recipe([]), OracleAgent(), {})
