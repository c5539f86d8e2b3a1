"""B49: a report of ours can be written as JSON, whatever hangs on it: xdist adds a live object."""

from __future__ import annotations

import json

import pytest
from fake_datasets import EPISODES, STEPS_TOML, run, write_task

REPORT_LOG = """

CONFIG = []  # that of the process which shows the results; what pytest-reportlog does is done there

def pytest_configure(config):
    if not hasattr(config, "workerinput"):
        CONFIG.append(config)

def pytest_runtest_logreport(report):
    for config in CONFIG:
        data = config.hook.pytest_report_to_serializable(config=config, report=report)
        with open("report-log", "a") as file:
            print(json.dumps(data, allow_nan=False), file=file)
"""


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_b49_a_log_of_reports_can_be_written(workers: str, pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\n")
    pytester.makeconftest(EPISODES + REPORT_LOG)
    low = {"name": "plan", "verdict": "failed", "verdict_reason": "low", "reward": float("nan")}
    failed = {"verdict": "failed", "outcome": "failed", "reward": None}
    write_task(pytester.path / "ds" / "low", STEPS_TOML, steps=[low], **failed)
    write_task(pytester.path / "ds" / "breaks", raises="a live exception")
    result = run(pytester, workers)
    result.assert_outcomes(failed=2, errors=1)
    lines = (pytester.path / "report-log").read_text().splitlines()
    reports = [json.loads(line) for line in lines]
    assert len(reports) == 7
    [step] = [report["harbor_step"] for report in reports if "harbor_step" in report]
    assert step["name"] == "plan"
