"""B46, B56: each step is a testcase of its own, and counts are those of the testcases."""

from __future__ import annotations

import pytest
from junit_tools import cases, suite
from played import key_of, play
from sample_job import episode, step, unreached

from pytest_harbor.episode.outcome import Outcome
from pytest_harbor.episode.result import EpisodeResult

FIVE = ["plan", "build", "ship", "tests", "handoff"]


def two_of_five_failed(name: str = "t1") -> EpisodeResult:
    return episode(
        key_of(name),
        steps=[step(each, n, 0.0 if n in (1, 3) else 1.0) for n, each in enumerate(FIVE)],
        outcome=Outcome.FAILED,
        reward=0.6,
    )


def mixed() -> list[EpisodeResult]:
    low = step("a", 0, 0.5, verdict="xfailed", verdict_reason="does not decide")
    return [
        two_of_five_failed("t3"),
        episode(key_of("t1"), steps=[low, step("b", 1)]),
        episode(key_of("t2"), steps=[step("task", implicit=True)]),
        episode(
            key_of("t4"),
            steps=[step("a", 0, 0.0, gate="min_reward 1"), unreached("b", 1)],
            outcome=Outcome.GATE_STOPPED,
            reward=0.0,
        ),
        episode(key_of("t5"), outcome=Outcome.START_FAILED, reward=None),
    ]


def test_b46_two_of_five_steps_fail(pytester: pytest.Pytester) -> None:
    found = cases(play(pytester, [two_of_five_failed()]))
    task = "test_task[t1]"
    assert [(each.name, each.ending) for each in found] == [
        (task, "failure"),
        (f"{task}[plan]", None),
        (f"{task}[build]", "failure"),
        (f"{task}[ship]", None),
        (f"{task}[tests]", "failure"),
        (f"{task}[handoff]", None),
        ("test_of_someone_else", None),
    ]
    assert {each.classname for each in found} == {"test_tasks"}


def test_b46_what_pytest_itself_writes_is_why(pytester: pytest.Pytester) -> None:
    """When this fails, pytest has learned to list subtests: see whether we are still needed."""
    xml = play(pytester, [two_of_five_failed()], raw=True)
    assert suite(xml).get("tests") != str(len(suite(xml).findall("testcase")))


@pytest.mark.parametrize("workers", ["-n2", pytest.param("-n16", marks=pytest.mark.slow)])
def test_b46_in_any_number_of_processes_alike(pytester: pytest.Pytester, workers: str) -> None:
    def rows(*args: str) -> list[object]:
        xml = play(pytester, mixed(), *args)
        ours = [each for each in cases(xml) if each.name != "test_of_someone_else"]
        counts = [suite(xml).get(each) for each in ("tests", "failures", "errors", "skipped")]
        return [counts, [(e.classname, e.name, e.ending, e.message, e.properties) for e in ours]]

    assert rows() == rows(workers)


def test_b46_a_mixed_run(pytester: pytest.Pytester) -> None:
    xml = play(pytester, mixed())
    endings = {each.name.removeprefix("test_task"): each.ending for each in cases(xml)}
    assert endings == {
        "[t1]": None,
        "[t1][a]": "skipped",
        "[t1][b]": None,
        "[t2]": None,
        "[t3]": "failure",
        **{f"[t3][{each}]": "failure" if each in ("build", "tests") else None for each in FIVE},
        "[t4]": "failure",
        "[t4][a]": "failure",
        "[t4][b]": "skipped",
        "[t5]": "error",
        "test_of_someone_else": None,
    }


def test_b56_the_task_follows_the_pass_rule_and_nothing_else(pytester: pytest.Pytester) -> None:
    """A low step that does not decide fails nothing; a passed task counts once."""
    low = step("a", 0, 0.0, verdict="xfailed", verdict_reason="does not decide")
    xml = play(pytester, [episode(key_of("t1"), steps=[low, step("b", 1)])])
    assert suite(xml).get("failures") == "0"
    assert suite(xml).get("tests") == "4"
