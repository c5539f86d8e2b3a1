"""A finished episode shown as a test: subtests per step, verdicts, errors, records on reports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fake_datasets import EPISODES, STEPS_TOML, run, write_task

REPORTS = '''

def pytest_runtest_logreport(report):
    """What arrives where the results are shown: under xdist, in the controller."""
    import os
    if "PYTEST_XDIST_WORKER" in os.environ:
        return
    line = {
        "id": report.nodeid, "when": report.when, "outcome": report.outcome,
        "duration": report.duration, "start": report.start,
        "step": getattr(report, "harbor_step", None),
        "episode": getattr(report, "harbor_episode", None),
        "properties": report.user_properties,
    }
    with open("reports.jsonl", "a") as file:
        print(json.dumps(line), file=file)
'''


def step(name: str, verdict: str = "passed", reason: str = "", **more: Any) -> dict[str, Any]:
    """One step of a fake episode."""
    return {"name": name, "verdict": verdict, "verdict_reason": reason, **more}


PLAN, BUILD = step("plan"), step("build")
LOW = step("test", "failed", "reward 0 < 1", reward=0.0, outcome="failed")
FAILED: dict[str, Any] = {
    "outcome": "failed",
    "verdict": "failed",
    "verdict_reason": "failed: reward 0.5 < 1",
    "reward": 0.5,
}
ERROR: dict[str, Any] = {
    "outcome": "sandbox_died",
    "verdict": "error",
    "verdict_reason": "sandbox_died (agent): main is gone",
    "reward": None,
}


@pytest.fixture
def dataset(pytester: pytest.Pytester) -> Path:
    """A dataset whose conftest.py fakes episodes and notes reports."""
    pytester.makeini("[pytest]\n")
    pytester.makeconftest(EPISODES + REPORTS)
    return pytester.path / "ds"


def reports(pytester: pytest.Pytester) -> list[dict[str, Any]]:
    """The reports that arrived, in order."""
    text = (pytester.path / "reports.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def test_each_declared_step_is_a_subtest(pytester: pytest.Pytester, dataset: Path) -> None:
    steps = [PLAN, step("build", "xfailed", "reward 0.5 < 1; does not decide"), LOW]
    write_task(dataset / "many", STEPS_TOML, steps=steps, **FAILED)
    write_task(dataset / "one", steps=[step("task", implicit=True)])
    unreached = [step("plan", "failed", "gate: 0 < 1"), step("build", "skipped", "gate in plan")]
    write_task(dataset / "short", STEPS_TOML, steps=unreached, **FAILED)
    result = run(pytester, "-v", "-rsx")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [
            "ds/many/task.toml::many SUBPASSED[[]plan]*",
            "ds/many/task.toml::many SUBXFAIL[[]build]*",
            "ds/many/task.toml::many SUBFAILED[[]test]*",
            "ds/many/task.toml::many FAILED*",
            "ds/one/task.toml::one PASSED*",
            "ds/short/task.toml::short SUBFAILED[[]plan]*",
            "ds/short/task.toml::short SUBSKIPPED[[]build]*",
            "ds/short/task.toml::short FAILED*",
            "*reward 0 < 1",
            "*failed: reward 0.5 < 1",
            "SUBSKIPPED[[]build]*ds/short/task.toml:1: gate in plan",
        ]
    )
    result.stdout.no_fnmatch_line("*Traceback*")
    result.stdout.no_fnmatch_line("*items.py*")


@pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["serial", "n2"])
def test_records_arrive_with_the_reports(
    workers: tuple[str, ...], pytester: pytest.Pytester, dataset: Path
) -> None:
    write_task(dataset / "many", STEPS_TOML, steps=[PLAN, LOW | {"seconds": 7}], **FAILED)
    write_task(dataset / "one", steps=[step("task", implicit=True)])
    run(pytester, *workers)
    of_many = [each for each in reports(pytester) if each["id"] == "ds/many/task.toml::many"]
    steps = [each for each in of_many if each["step"]]
    assert [each["step"]["name"] for each in steps] == ["plan", "test"]
    assert [each["duration"] for each in steps] == [1.5, 7]
    assert steps[1]["step"]["reward"] == 0.0
    assert steps[1]["start"] == 1767323045.0
    phases = [each for each in of_many if not each["step"]]
    assert [each["when"] for each in phases] == ["setup", "call", "teardown"]
    episode = phases[1]["episode"]
    assert episode["folder"] == "jobs/job/many"
    assert (episode["reward"], episode["verdict"], episode["attempt"]) == (0.5, "failed", 1)
    assert phases[2]["episode"] == episode
    assert phases[0]["episode"] == {"folder": None}


@pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["serial", "n2"])
def test_an_infrastructure_fault_is_an_error(
    workers: tuple[str, ...], pytester: pytest.Pytester, dataset: Path
) -> None:
    dead = step("build", "error", "sandbox_died: main is gone", outcome="sandbox_died")
    write_task(dataset / "dies", STEPS_TOML, steps=[PLAN, dead, step("test", "skipped")], **ERROR)
    write_task(dataset / "one-dies", steps=[step("task", "error", implicit=True)], **ERROR)
    write_task(dataset / "breaks", raises="a bug of ours")
    result = run(pytester, "-v", *workers)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(errors=4, skipped=1)
    for line in ("*SUBERROR[[]build]*", "*::dies*", "*sandbox_died (agent): main is gone*"):
        result.stdout.fnmatch_lines([line])
    result.stdout.fnmatch_lines(["*RuntimeError: a bug of ours"])
    result.stdout.no_fnmatch_line("*FAILED*")


def test_a_step_that_failed_fails_its_episode(pytester: pytest.Pytester, dataset: Path) -> None:
    """Should the two ever disagree, the run must not end well."""
    write_task(dataset / "odd", STEPS_TOML, steps=[LOW])
    result = run(pytester)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*the episode passed, yet these steps did not: test"])


@pytest.mark.parametrize("workers", [(), ("-n1",)], ids=["serial", "n1"])
def test_maxfail_counts_tasks(
    workers: tuple[str, ...], pytester: pytest.Pytester, dataset: Path
) -> None:
    steps = [step(name, "failed", "low") for name in ("plan", "build", "test")]
    for name in ("a", "b", "c", "d", "e", "f", "g"):
        write_task(dataset / name, STEPS_TOML, steps=steps, **FAILED)
    result = run(pytester, "--maxfail=4", *workers)
    result.stdout.fnmatch_lines(["*stopping after 4 failures*"])
    seen = [each["step"]["name"] for each in reports(pytester) if each["step"]]
    waiting = len(workers)  # an xdist worker finishes what it was given to run next
    assert len(seen) in (12, 12 + 3 * waiting), "every step of an episode is shown"
    assert seen == ["plan", "build", "test"] * (len(seen) // 3)


def test_what_others_put_on_a_report_cannot_stop_the_run(
    pytester: pytest.Pytester, dataset: Path
) -> None:
    odd = "half a pair: \ud83d"
    write_task(dataset / "odd", STEPS_TOML, steps=[step("pl\ud83dan", "failed", odd)], **FAILED)
    write_task(dataset / "next")
    write_task(dataset / "nowhere", outcome="passed", verdict="skipped", verdict_reason=odd)
    pytester.makeconftest(
        EPISODES + REPORTS + "\n"
        "@pytest.fixture(autouse=True)\n"
        "def note(request):\n"
        "    from pathlib import Path\n"
        "    request.node.user_properties.append(('where', Path('/x')))\n"
        "    request.node.user_properties.append(('odd', '\\ud83d'))\n"
        "    request.node.add_report_section('call', 'odd', '\\ud83d')\n"
    )
    result = run(pytester, "-n1", "-rs", "--junitxml=junit.xml")
    result.assert_outcomes(failed=2, passed=1, skipped=1)
    properties = [each["properties"] for each in reports(pytester) if each["when"] == "call"]
    assert properties[-1] == [["where", "/x"], ["odd", "?"]]
    names = [each["step"]["name"] for each in reports(pytester) if each["step"]]
    assert names == ["pl?an"]


def test_hooks_see_what_finished(pytester: pytest.Pytester, dataset: Path) -> None:
    """Hooks of a dataset's conftest.py are called for its tasks, and for no others."""
    write_task(dataset / "many", STEPS_TOML, steps=[PLAN, LOW], **FAILED)
    write_task(pytester.path / "other" / "one", steps=[step("task", implicit=True)])
    (dataset / "conftest.py").write_text(
        "def note(*words):\n"
        "    with open('hooks', 'a') as file:\n"
        "        print('HOOK', *words, file=file)\n"
        "def pytest_itemcollected(item):\n    note('collected', item.name)\n"
        "def pytest_runtest_setup(item):\n    note('setup', item.name)\n"
        "def pytest_runtest_makereport(item, call):\n    note('report', item.name, call.when)\n"
        "def pytest_harbor_step_finished(result):\n    note('step', result.name)\n"
        "def pytest_harbor_episode_finished(result):\n    note('episode', result.reward)\n"
    )
    run(pytester)
    assert (pytester.path / "hooks").read_text().splitlines() == [
        "HOOK collected many",
        "HOOK setup many",
        "HOOK report many setup",
        "HOOK step plan",
        "HOOK step test",
        "HOOK episode 0.5",
        "HOOK report many call",
        "HOOK report many call",
        "HOOK report many call",
        "HOOK report many teardown",
    ]


def test_pytests_own_options_work(pytester: pytest.Pytester, dataset: Path) -> None:
    write_task(dataset / "good")
    write_task(dataset / "low", STEPS_TOML, steps=[PLAN, LOW], **FAILED)
    run(pytester).assert_outcomes(failed=2, passed=1)
    run(pytester, "--lf").assert_outcomes(failed=2)
    run(pytester, "-x", "--ff").assert_outcomes(failed=2)
    shown = run(pytester, "--fixtures-per-test", "-k", "good")
    shown.stdout.fnmatch_lines(["*fixtures used by good*", "harbor_attempt*"])
    plan = run(pytester, "--setup-plan", "-k", "good")
    plan.stdout.fnmatch_lines(["*SETUP*F harbor_attempt", "*SETUP*F harbor_episode*"])
    durations = run(pytester, "--durations=5", "-vv", "-k", "low")
    durations.stdout.fnmatch_lines(["1.50s call*ds/low/task.toml::low"])


def test_a_name_that_cannot_be_an_id_is_an_error_with_a_remedy(
    pytester: pytest.Pytester, dataset: Path
) -> None:
    for name in ("we ird[1]", "we ird_1_", "a::b", "back\\slash", "new\nline", "bad\udcff", "ok"):
        write_task(dataset / name)
    result = run(pytester, "-v", "-n2")
    result.assert_outcomes(errors=5, passed=2)
    for line in (
        "*ERROR ds/we ird_1_-??????/task.toml::we ird_1_-??????*",
        "*PASSED ds/we ird_1_/task.toml::we ird_1_*",
        "*/ds/we ird[[]1]' cannot be part of a test's name*Rename the folder*",
    ):
        result.stdout.fnmatch_lines([line])


def test_a_hook_that_raises_is_no_low_score(pytester: pytest.Pytester, dataset: Path) -> None:
    write_task(dataset / "good")
    (dataset / "conftest.py").write_text(
        "def pytest_harbor_episode_finished(result):\n    raise OSError('disk full')\n"
    )
    result = run(pytester)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*OSError: disk full"])
