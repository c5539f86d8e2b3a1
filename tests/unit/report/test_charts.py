"""The numbers behind the charts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_job import episode, interval, step, unreached

from pytest_harbor.episode.outcome import Outcome
from pytest_harbor.report.charts import ladder, shares, skyline, timeline


@given(st.dictionaries(st.sampled_from(list(Outcome)), st.integers(1, 500), min_size=1))
def test_shares_lie_end_to_end_and_fill_the_bar(outcomes: dict[Outcome, int]) -> None:
    found = shares(outcomes)
    end = 0.0
    for share in found:
        assert share.start == pytest.approx(end, abs=0.01)
        end = share.start + share.length
    assert end == pytest.approx(100, abs=0.01)


def test_errors_share_a_colour() -> None:
    tones = [each.tone for each in shares({Outcome.PASSED: 1, Outcome.INTERNAL: 1})]
    assert tones == ["passed", "error"]


def test_the_skyline_falls_and_the_ungraded_come_last() -> None:
    results = [
        episode("d/a/task.toml::a", outcome=Outcome.START_FAILED, reward=None),
        episode("d/b/task.toml::b", outcome=Outcome.FAILED, reward=-3.0),
        episode("d/c/task.toml::c", reward=1.5),
        episode("d/d/task.toml::d", outcome=Outcome.FAILED, reward=0.25),
    ]
    found = skyline(results)
    assert [each.title.partition(":")[0] for each in found] == ["c", "d", "b", "a"]
    assert [each.height for each in found] == [100.0, 25.0, 0.0, 100.0]
    assert found[-1].verdict == "error"


def test_the_ladder_counts_every_step_that_was_declared() -> None:
    low = step("b", 1, 0.5, verdict="xfailed")
    results = [
        episode(steps=[step("a", 0), low]),
        episode(steps=[step("a", 0), unreached("b", 1)]),
        episode(steps=[step("task", implicit=True)]),
    ]
    first, second = ladder(results)
    assert (first.name, first.counts, first.whole, first.seconds) == ("a", {"passed": 2}, 2, 2.0)
    assert second.counts == {"xfailed": 1, "skipped": 1}
    assert list(second.parts()) == [("xfailed", 1, 0.0, 50.0), ("skipped", 1, 50.0, 50.0)]


def test_a_ladder_of_very_many_steps_ends() -> None:
    steps = [step(f"s{n}", n) for n in range(40)]
    assert len(ladder([episode(steps=steps)])) == 12


def test_the_timeline_is_in_order_and_inside_the_episode() -> None:
    result = episode(
        steps=[step("a", 0), step("b", 1)],
        phases={"group": interval(0.5), "late": interval(5, 9), "outside": interval(5, 20)},
    )
    parts = list(timeline(result))
    assert [each.kind for each in parts] == ["start", "turn", "grade", "turn", "grade", "start"]
    assert (parts[2].start, parts[2].length) == (15.0, 5.0)
    assert parts[2].title == "a: verifier 0.5 s"
    assert parts[-1].start + parts[-1].length == 100
    assert list(timeline(episode(ran=interval(0)))) == []
