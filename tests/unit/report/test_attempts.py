"""pass@k and pass^k against hand-computed values and against trying all draws."""

from __future__ import annotations

import itertools
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_job import episode

from pytest_harbor.episode.outcome import Outcome
from pytest_harbor.episode.result import EpisodeResult
from pytest_harbor.report.attempts import attempts, pass_at, pass_hat
from pytest_harbor.report.summary import wilson

ENDS = {"p": (Outcome.PASSED, 1.0), "f": (Outcome.FAILED, 0.0), "e": (Outcome.SANDBOX_DIED, None)}


def tried(task: str, ends: str) -> list[EpisodeResult]:
    """Attempts at a task: p passed, f failed, e had no grade."""
    found = []
    for number, letter in enumerate(ends, 1):
        outcome, reward = ENDS[letter]
        tail = f"[attempt{number}]" if len(ends) > 1 else ""
        key = f"d/{task}/task.toml::{task}{tail}"
        found.append(episode(key, outcome=outcome, reward=reward, attempt=number))
    return found


def test_by_hand() -> None:
    # 4 attempts, 1 passed: of the 6 pairs, 3 hold the one that passed, none holds two
    assert pass_at(4, 1, 2) == 0.5
    assert pass_hat(4, 1, 2) == 0.0
    # 5 attempts, 3 passed: of the 10 pairs, 1 has none that passed, 3 have only such
    assert pass_at(5, 3, 2) == 0.9
    assert pass_hat(5, 3, 2) == 0.3
    assert pass_at(5, 3, 1) == pass_hat(5, 3, 1) == 0.6


@pytest.mark.parametrize("n", range(1, 7))
def test_by_trying_all_draws(n: int) -> None:
    for c, k in itertools.product(range(n + 1), range(1, n + 1)):
        draws = list(itertools.combinations([True] * c + [False] * (n - c), k))
        assert pass_at(n, c, k) == pytest.approx(statistics.mean(any(draw) for draw in draws))
        assert pass_hat(n, c, k) == pytest.approx(statistics.mean(all(draw) for draw in draws))


@given(st.integers(1, 2000), st.data())
def test_shares_are_shares_for_any_number_of_attempts(n: int, data: st.DataObject) -> None:
    c, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    assert 0 <= pass_hat(n, c, k) <= c / n + 1e-12
    assert c / n - 1e-12 <= pass_at(n, c, k) <= 1


def test_means_are_over_tasks_and_not_over_attempts() -> None:
    found = attempts([*tried("a", "pf"), *tried("b", "ffffffff")])
    assert found.by_k[0].pass_at.value == 0.25
    assert found.by_k[1].pass_at.value == 0.5
    assert found.by_k[1].pass_hat.value == 0.0


def test_a_task_with_too_few_grades_is_left_out_and_counted() -> None:
    found = attempts([*tried("a", "pfp"), *tried("b", "pef"), *tried("c", "eee")])
    assert (found.episodes, found.graded) == (9, 5)
    assert [(row.k, row.tasks, row.left_out) for row in found.by_k] == [
        (1, 2, 1),
        (2, 2, 1),
        (3, 1, 2),
    ]
    assert found.by_k[0].pass_at.value == pytest.approx((2 / 3 + 1 / 2) / 2)
    assert found.by_k[1].pass_at.value == 1.0
    assert found.by_k[1].pass_hat.value == pytest.approx((1 / 3 + 0) / 2)
    assert found.by_k[2].pass_hat.value == 0.0


def test_nothing_graded_is_no_number() -> None:
    assert attempts(tried("a", "ee")).by_k == ()
    assert attempts([]).series == ()


def test_the_interval_takes_each_task_for_one_draw() -> None:
    found = attempts([*tried("a", "ppff"), *tried("b", "pppp"), *tried("c", "ffff")])
    share = found.by_k[0].pass_at
    assert share.value == 0.5
    # not the one over 12 attempts, which is 0.25 to 0.75
    assert (share.low, share.high) == wilson(1.5, 3)
    assert share.low == pytest.approx(0.1253, abs=1e-4)
    assert share.high == pytest.approx(0.8747, abs=1e-4)


def test_with_one_attempt_each_it_is_the_resolve_rates_interval() -> None:
    share = attempts([each for n, end in enumerate("ppfff") for each in tried(f"t{n}", end)])
    assert (share.by_k[0].pass_at.low, share.by_k[0].pass_at.high) == wilson(2, 5)
    assert not share.several


@pytest.mark.parametrize(
    ("first", "second", "alike"),
    [
        ("t[attempt1]", "t[attempt2]", True),
        ("t[gpt-attempt1]", "t[gpt-attempt2]", True),
        ("t[attempt1-gpt]", "t[attempt2-gpt]", True),
        ("t[gpt-attempt1-x]", "t[gpt-attempt2-x]", True),
        ("t[fast-attempt1]", "t[slow-attempt2]", False),
        ("t[attempt11]", "t[attempt12]", False),  # a parameter of somebody's own
        ("t[attempt1", "t[attempt2", False),
        ("t", "u", False),
    ],
)
def test_what_are_attempts_at_the_same(first: str, second: str, alike: bool) -> None:
    results = [
        episode(f"d/t/task.toml::{name}", attempt=number)
        for number, name in enumerate((first, second), 1)
    ]
    found = attempts(results)
    assert found.several is alike
    assert len(found.series) == (1 if alike else 2)


def test_a_series_is_named_without_its_attempts() -> None:
    results = [
        episode(f"d/t/task.toml::t[gpt-attempt{n}]", attempt=n, outcome=outcome)
        for n, outcome in enumerate((Outcome.PASSED, Outcome.FAILED), 1)
    ]
    [series] = attempts(results).series
    assert (series.task, series.task_path) == ("t[gpt]", "d/t")
    assert (series.episodes, series.graded, series.passed) == (2, 2, 1)
    assert attempts(tried("plain", "pp")).series[0].task == "plain"
    [first] = attempts([episode("d/t/task.toml::t[attempt1-gpt]")]).series
    assert first.task == "t[gpt]"


def test_people_see_powers_of_two_and_the_last() -> None:
    found = attempts(tried("a", "p" * 11))
    assert [row.k for row in found.told()] == [1, 2, 4, 8, 11]
    assert [row.k for row in attempts(tried("a", "p" * 8)).told()] == [1, 2, 4, 8]
