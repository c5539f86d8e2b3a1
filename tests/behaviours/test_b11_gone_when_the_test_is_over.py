"""B11: a group goes when its test is over, also when somebody keeps every object of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from live_runs import SIDECAR, Dataset, live

pytestmark = pytest.mark.docker

KEEPS_ALL = """
import json, subprocess
import pytest

HELD = []
LEFT = {}

@pytest.fixture(autouse=True)
def hold(request, harbor_compose, harbor_episode):
    group = harbor_compose.group
    HELD.append((request.node, harbor_compose, harbor_episode, group, group.container("main")))
    LEFT[request.node.nodeid] = None
    yield

def pytest_runtest_logfinish(nodeid):
    name = nodeid.rpartition("::")[2]
    LEFT[nodeid] = sum((
        subprocess.check_output(["docker", *words, "--filter", f"name={name}"], text=True).split()
        for words in (["ps", "-aq"], ["network", "ls", "-q"], ["volume", "ls", "-q"])
    ), [])

def pytest_unconfigure(config):
    (config.rootpath / "left.json").write_text(json.dumps([len(HELD), LEFT]))
"""


def test_b11_references_keep_nothing_alive(tmp_path: Path) -> None:
    dataset = Dataset(tmp_path / "dataset")
    tasks = [dataset.task("one", compose=SIDECAR), dataset.task("two")]
    dataset.conftest(KEEPS_ALL)
    with live(dataset) as run:
        assert run.end() == pytest.ExitCode.OK, run.printed
        held, left = json.loads((dataset.folder / "left.json").read_text())
        assert held == 2
        assert left == {f"{task}/task.toml::{task}": [] for task in tasks}
        run.assert_nothing_left()
