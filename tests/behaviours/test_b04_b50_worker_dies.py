"""B04, B50: a worker dies hard in the middle of an episode, and the run goes on.

Its group goes at once, its finished steps stay, and the attempt has one outcome in every report.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from live_runs import CLEAN_WITHIN, SIDECAR, SLEEPS, Dataset, LiveRun, endings, live
from page_tools import read_page

pytestmark = pytest.mark.docker

UNTIL_TOLD = "until [ -e /tmp/go-on ]; do sleep 0.2; done"


ORDERS = {
    "": ("dies", "lives", "later", "last"),
    # xdist has nothing else to do for the other worker: it is given the episode at once
    "loadgroup": ("a", "d", "b", "c", "e"),
    # the episode is back in the queue when the worker is dead
    "loadfile": ("b", "c", "a", "d"),
}
"""Names of the tasks that dies, that lives, and of others, by ``--dist``; xdist takes them in
alphabetical order."""


@dataclass
class Crash:
    """A finished run of some tasks, in which the worker at the third step of one was killed."""

    run: LiveRun
    dies: str
    others: tuple[str, ...]


@pytest.fixture(scope="module", params=ORDERS)
def crash(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Crash]:
    dataset = Dataset(tmp_path_factory.mktemp("b04") / "dataset")
    names = ORDERS[request.param]
    dies = dataset.task(names[0], "true", "true", SLEEPS, minutes=50, compose=SIDECAR)
    lives = dataset.task(names[1], UNTIL_TOLD, minutes=60)
    later = [dataset.task(name, minutes=1) for name in names[2:]]
    words = ("--dist", request.param) if request.param else ()
    with live(dataset, "-n", "2", *words) as run:
        run.until_works(dies, step="three")
        run.until_works(lives)
        os.kill(run.owner(dies), signal.SIGKILL)
        run.until(lambda: not any(dies in name for name in dataset.left()), CLEAN_WITHIN)
        assert run.outcome(lives) == "interrupted"  # so far: it is at work
        run.inside(lives, "touch /tmp/go-on")
        assert run.end() == pytest.ExitCode.TESTS_FAILED
        run.assert_nothing_left()
        yield Crash(run, dies, (lives, *later))


def test_b04_the_others_are_not_touched(crash: Crash) -> None:
    for task in crash.others:
        assert crash.run.result(task)["verdict"] == "passed"


def test_b04_the_attempt_has_one_outcome_and_it_is_an_error(crash: Crash) -> None:
    printed = crash.run.printed
    assert f"= {len(crash.others)} passed, 1 error in" in printed
    assert printed.count(f"] ERROR {crash.dies}/task.toml::{crash.dies}") == 1
    assert printed.count(f"INTERRUPTED {crash.dies}  reward —  2/3 steps") == 1
    assert len(list(crash.run.job.glob(f"{crash.dies}__*"))) == 1
    assert "WARNING" not in printed


def test_b50_junit_has_the_finished_steps_and_one_error(crash: Crash) -> None:
    assert endings(crash.run.junit) == {
        **dict.fromkeys(crash.others),
        crash.dies: "error",
        f"{crash.dies}[one]": None,
        f"{crash.dies}[two]": None,
        f"{crash.dies}[three]": "skipped",
    }
    assert "crashed while running" in crash.run.junit.read_text()


def test_b50_so_have_the_result_and_the_page(crash: Crash) -> None:
    result = crash.run.result(crash.dies)
    shown = (result["outcome"], result["verdict"], result["reward"])
    assert shown == ("interrupted", "error", None)
    assert [step["reward"] for step in result["steps"]] == [1.0, 1.0, None]
    page = read_page(crash.run.job / "report.html").text
    assert f"{crash.dies} interrupted" in page
    assert "one: passed, reward 1.0" in page
    assert "two: passed, reward 1.0" in page
    assert "three: not reached" in page
