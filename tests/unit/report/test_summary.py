"""Totals say their denominators; the table fits the terminal."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_job import episode, fault, step, unreached

from pytest_harbor.episode.outcome import Outcome
from pytest_harbor.report.summary import render_table, render_totals, table, totals, wilson
from pytest_harbor.report.text import width


def one(name: str, outcome: Outcome, reward: float | None, **changes):
    return episode(f"d/{name}/task.toml::{name}", outcome=outcome, reward=reward, **changes)


FIVE = [
    one("a", Outcome.PASSED, 1.0, cost_usd=0.5, tokens=100),
    one("b", Outcome.FAILED, 0.25),
    one("c", Outcome.AGENT_TIMEOUT, 0.0, cost_usd=1.0),
    one("d", Outcome.START_FAILED, None),
    one("e", Outcome.USER_DEGRADED, 1.0, fault=fault(Outcome.USER_DEGRADED)),
]


def test_totals_of_a_mixed_run() -> None:
    sums = totals(FIVE)
    assert (sums.episodes, sums.tasks, sums.resolved, sums.valid) == (5, 5, 1, 3)
    assert sums.excluded == {Outcome.START_FAILED: 1, Outcome.USER_DEGRADED: 1}
    assert sums.mean_over_valid == pytest.approx(1.25 / 3)
    assert sums.mean_over_all == pytest.approx(0.25)
    assert (sums.cost_usd, sums.cost_known, sums.tokens) == (1.5, 2, 100)
    assert sums.seconds == 50.0


def test_an_untrusted_reward_is_in_no_mean() -> None:
    """The degraded user's episode has a reward; nobody can say what it is worth."""
    assert totals(FIVE[4:]).mean_over_valid is None
    assert totals(FIVE[4:]).mean_over_all == 0.0


def test_what_the_recipe_counts_as_zero_is_valid() -> None:
    zero = one("z", Outcome.NO_REWARD, 0.0, verdict="failed")
    assert totals([zero]).valid == 1
    assert totals([zero]).excluded == {}


def test_nothing_is_not_zero() -> None:
    sums = totals([])
    assert sums.mean_over_valid is None
    assert sums.mean_over_all is None
    assert sums.resolve_rate is None
    assert sums.interval is None
    assert render_totals(sums)


def test_attempts_at_one_task_are_one_task() -> None:
    assert totals([FIVE[0], FIVE[0]]).tasks == 1


def test_wilsons_interval() -> None:
    low, high = wilson(20, 75) or (0, 0)
    assert (round(low, 3), round(high, 3)) == (0.18, 0.376)
    assert wilson(0, 10) == (0.0, pytest.approx(0.2775, abs=1e-3))


@given(st.integers(1, 500), st.data())
def test_an_interval_holds_its_share(n: int, data: st.DataObject) -> None:
    hits = data.draw(st.integers(0, n))
    low, high = wilson(hits, n) or (0, 0)
    assert 0 <= low <= hits / n + 1e-9
    assert hits / n - 1e-9 <= high <= 1


def test_totals_in_words_name_every_denominator() -> None:
    assert render_totals(totals(FIVE)) == [
        "1 of 3 graded episodes resolved (33%; 95 % interval 6% to 79%)",
        "2 of 5 not graded: 1 start_failed, 1 user_degraded",
        "mean reward 0.417 over the 3 graded, 0.25 over all 5 (errors as 0)",
        "50 s in episodes, $1.50 (known of 2), 100 tokens",
    ]


STEPS = [
    step("a", 0),
    step("b", 1, 0.5, verdict="xfailed"),
    step("c", 2, 0.0),
    unreached("d", 3),
]


def test_a_table_of_many_step_tasks() -> None:
    rows = table(
        [
            episode("d/t/task.toml::t[gpt]", STEPS, Outcome.FAILED, 0.375, cost_usd=0.012),
            one("u", Outcome.NO_REWARD, None),
        ]
    )
    assert render_table(rows, 80) == [
        "task    outcome    reward  steps        time    cost",
        "t[gpt]  failed      0.375    3/4  ●○✗·  10 s  $0.012",
        "u       no_reward       —               10 s",
    ]


def test_columns_that_say_nothing_are_left_out() -> None:
    lines = render_table(table([one("t", Outcome.PASSED, 1.0)]), 80)
    assert lines == ["task  outcome  reward  time", "t     passed      1.0  10 s"]


@given(
    st.lists(st.text(min_size=1, max_size=60), min_size=1, max_size=4),
    st.integers(50, 120),
)
def test_every_line_fits_whatever_tasks_are_called(names: list[str], columns: int) -> None:
    rows = table(
        episode(f"d/{n}/task.toml::{name}", STEPS, Outcome.FAILED, 0.5)
        for n, name in enumerate(names)
    )
    lines = render_table(rows, columns)
    assert len(lines) == len(rows) + 1
    assert all(width(line) <= max(columns, 60) for line in lines)
    assert not any(unicodedata.category(each) in ("Cc", "Zl", "Zp") for each in "".join(lines))


def test_an_empty_table_is_its_head() -> None:
    assert render_table([], 80) == ["task"]
