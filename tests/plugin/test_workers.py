"""Tasks under pytest-xdist: the same items everywhere, the longest first, durations kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fake_datasets import EPISODES, run, write_task


@pytest.fixture
def dataset(pytester: pytest.Pytester) -> Path:
    """Tasks whose time limits grow with their number, beside an ordinary test."""
    pytester.makeini("[pytest]\n")
    pytester.makeconftest(
        EPISODES + "\n"
        "def pytest_collection_finish(session):\n"
        "    import os\n"
        "    name = os.environ.get('PYTEST_XDIST_WORKER', 'main')\n"
        "    with open(f'{name}.json', 'w') as file:\n"
        "        json.dump([item.nodeid for item in session.items], file)\n"
    )
    pytester.makepyfile(test_own="def test_own(): pass\n")
    folder = pytester.path / "ds"
    for number in range(5):
        toml = f"[agent]\ntimeout_sec = {number + 1}\n[verifier]\ntimeout_sec = 1\n"
        write_task(folder / f"task-{number}", toml)
    return folder


def test_the_longest_start_first_and_are_remembered(
    pytester: pytest.Pytester, dataset: Path
) -> None:
    result = run(pytester, "-n2", "-v")
    result.assert_outcomes(passed=6)
    result.stdout.fnmatch_lines(["scheduling tests via LongestFirst"])
    first: dict[str, str] = {}
    for line in result.outlines:  # [gw0] [ 16%] PASSED ds/task-4/task.toml::task-4
        if line.startswith("[gw") and " PASSED " in line:
            first.setdefault(line.split("]")[0], line.split()[-1])
    assert set(first.values()) == {f"ds/task-{n}/task.toml::task-{n}" for n in (4, 3)}
    [kept] = (pytester.path / ".pytest_cache").rglob("harbor/durations")
    assert len(json.loads(kept.read_text())) == 5


@pytest.mark.parametrize("workers", [4, pytest.param(16, marks=pytest.mark.slow)])
def test_all_workers_collect_the_same(
    workers: int, pytester: pytest.Pytester, dataset: Path
) -> None:
    (dataset / "conftest.py").write_text(
        "import pytest\n"
        "@pytest.fixture(params=['claude', 'gpt'], scope='session', autouse=True)\n"
        "def harbor_agent(request): ...\n"
    )
    run(pytester, f"-n{workers}", "--harbor-attempts=2").assert_outcomes(passed=21)
    assert run(pytester, "--harbor-attempts=2", "--collect-only").ret == pytest.ExitCode.OK
    expected = json.loads((pytester.path / "main.json").read_text())
    assert len(expected) == 21
    for number in range(workers):
        assert json.loads((pytester.path / f"gw{number}.json").read_text()) == expected


def test_a_chosen_mode_and_a_dead_worker(pytester: pytest.Pytester, dataset: Path) -> None:
    result = run(pytester, "-n2", "--dist=worksteal", "-v")
    result.stdout.fnmatch_lines(["scheduling tests via WorkStealingScheduling"])
    (dataset / "conftest.py").write_text(
        "import os\n"
        "def pytest_runtest_call(item):\n"
        "    if item.name == 'task-4':\n        os._exit(3)\n"
    )
    result = run(pytester, "-n2")
    result.assert_outcomes(passed=5, errors=1)
    result.stdout.fnmatch_lines(["*worker 'gw?' crashed while running*task-4*"])
