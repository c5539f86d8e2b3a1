"""Reading rewards and adding them up."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_harbor.episode.rewards import (
    StepScore,
    add_up,
    add_up_as_harbor,
    add_up_keys,
    missed_gate,
    read_rewards,
)
from pytest_harbor.errors import VerifierError


def step(scalar: float | None = None, **rewards: float) -> StepScore:
    keys = rewards or ({} if scalar is None else {"reward": scalar})
    return StepScore(graded=bool(keys), reached=True, rewards=keys, scalar=scalar)


UNREACHED = StepScore()


@pytest.mark.parametrize(
    ("steps", "strategy", "ours", "harbor"),
    [
        ([step(1.0), step(0.5)], "mean", 0.75, 0.75),
        ([step(1.0), step(0.5)], "final", 0.5, 0.5),
        ([step(0.4), UNREACHED, UNREACHED], "mean", 0.4 / 3, 0.4),
        ([step(0.4), UNREACHED, UNREACHED], "final", 0.0, 0.4),
        ([step(1.0), UNREACHED], "mean", 0.5, 1.0),
        ([step(0.0)], "mean", 0.0, 0.0),
        ([step(1.0), step(None)], "mean", None, 1.0),
        ([step(1.0), step(None)], "final", None, None),
        # a step without a grade that the recipe counts as zero: Harbor stops there
        ([step(None), step(1.0)], "final", 1.0, None),
        ([step(1.0), step(None), step(0.0)], "mean", None, 1.0),
    ],
)
def test_two_ways_of_adding_up(steps, strategy, ours, harbor) -> None:
    assert add_up(steps, strategy) == pytest.approx(ours) if ours is not None else True
    if ours is None:
        assert add_up(steps, strategy) is None
    assert add_up_as_harbor(steps, strategy) == (
        harbor if harbor is None else pytest.approx(harbor)
    )


def test_a_key_that_a_step_lacks_counts_zero_there() -> None:
    steps = [step(1.0, reward=1.0, entries=1.0), step(1.0)]
    assert add_up_keys(steps, "mean") == {"reward": 1.0, "entries": 0.5}
    assert add_up_keys([*steps, UNREACHED], "mean") == pytest.approx(
        {"reward": 2 / 3, "entries": 1 / 3}
    )


@given(st.lists(st.floats(0, 1), min_size=1, max_size=9))
def test_without_gates_both_ways_agree(values: list[float]) -> None:
    steps = [step(value) for value in values]
    for strategy in ("mean", "final"):
        ours, harbor = add_up(steps, strategy), add_up_as_harbor(steps, strategy)
        assert ours is not None
        assert harbor is not None
        assert math.isclose(ours, harbor)


@pytest.mark.parametrize(
    ("minimum", "rewards", "scalar", "missed"),
    [
        (None, {}, None, None),
        (0.5, {"reward": 0.5}, 0.5, None),
        (0.5, {"reward": 0.4}, 0.4, "min_reward ≥ 0.5, got 0.4"),
        (0.5, {"accuracy": 0.9}, 0.9, None),
        (0.5, {"a": 1.0, "b": 1.0}, None, "min_reward ≥ 0.5, got none"),
        ({"entries": 1.0}, {"reward": 1.0, "entries": 1.0}, 1.0, None),
        ({"entries": 1.0}, {"reward": 1.0}, 1.0, "min_reward entries ≥ 1, got none"),
        ({"a": 0.1, "b": 0.9}, {"a": 1.0, "b": 0.5}, None, "min_reward b ≥ 0.9, got 0.5"),
    ],
)
def test_gates(minimum, rewards, scalar, missed) -> None:
    assert missed_gate(minimum, rewards, scalar) == missed


def test_the_message_of_a_missing_reward_lists_what_is_there() -> None:
    with pytest.raises(VerifierError, match=r"rewards\.json is not a name that is read") as error:
        read_rewards({"rewards.json": b"", "ctrf.json": b""})
    assert error.value.outcome == "no_reward"
    assert "ctrf.json" in str(error.value)
