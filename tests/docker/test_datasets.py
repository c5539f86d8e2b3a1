"""Our own datasets, as a user runs them: the oracle earns everything, nop nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DATASETS = ("datasets/hello", "datasets/swe_interact")
STEPS = ["01_plan", "02_implement", "03_handoff", "04_write_tests", "05_test_handoff"]


@pytest.fixture(scope="module", params=["oracle", "nop"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    """A finished run of all our tasks: agent, exit status, junit, results by task."""
    folder = tmp_path_factory.mktemp(request.param)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", *DATASETS, "-n", "4", "-q", "-p", "no:cacheprovider"),
            *("--harbor-agent", request.param, "--harbor-jobs-dir", str(folder)),
            *("--harbor-job-name", "job", "--junitxml", str(folder / "junit.xml")),
        ],
        cwd=ROOT,
        env={k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    results = [json.loads(path.read_text()) for path in folder.glob("job/*/result.json")]
    by_task = {result["task_name"]: result for result in results}
    return request.param, done, ET.parse(folder / "junit.xml").getroot(), by_task, folder / "job"


def test_the_oracle_earns_everything_and_nop_nothing(run) -> None:
    agent, done, _, results, _ = run
    assert {
        name: result["pytest_harbor"]["reward"] for name, result in results.items()
    } == dict.fromkeys(results, 1.0 if agent == "oracle" else 0.0), done.stdout + done.stderr
    assert len(results) == sum(len(list((ROOT / each).glob("*/task.toml"))) for each in DATASETS)
    assert done.returncode == (0 if agent == "oracle" else 1), done.stdout + done.stderr


def test_junit_has_a_row_for_each_task_and_declared_step(run) -> None:
    agent, _, junit, results, _ = run
    names = [case.get("name") for case in junit.iter("testcase")]
    for task, result in results.items():
        steps = [s["name"] for s in result["pytest_harbor"]["steps"] if not s["implicit"]]
        assert [name for name in names if name.startswith(task)] == [
            task,
            *(f"{task}[{step}]" for step in steps),
        ]
    suite = next(junit.iter("testsuite"))
    assert int(suite.get("tests")) == len(names)
    assert int(suite.get("errors")) == 0
    assert int(suite.get("failures")) == len(list(junit.iter("failure")))
    assert (int(suite.get("failures")) == 0) == (agent == "oracle")


def test_the_user_was_asked_and_its_logs_are_kept(run) -> None:
    agent, _, _, results, job = run
    for name, result in results.items():
        ours = result["pytest_harbor"]
        if not (ROOT / "datasets/swe_interact" / name).is_dir():
            continue
        assert [step["name"] for step in ours["steps"]] == STEPS
        assert ours["steps"][0]["grants"][0]["tools"] == ["ask_user"]
        exported = job / ours["episode"] / "steps/05_test_handoff/verifier/user-server"
        asked = len((exported / "ask-user.jsonl").read_text().splitlines())
        assert (asked > 3) == (agent == "oracle"), name
        assert (job / ours["episode"] / "services/user-server.log").is_file()


def test_the_report_is_there_and_names_every_task(run) -> None:
    _, _, _, results, job = run
    text = (job / "report.html").read_text()
    assert all(name in text for name in results)


def test_files_that_tasks_share_are_the_same() -> None:
    script = ROOT / "datasets/swe_interact/_shared/sync.py"
    done = subprocess.run(
        [sys.executable, script, "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
