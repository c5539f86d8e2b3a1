"""B33: reward.json wins over reward.txt, and a disagreement is said."""

from __future__ import annotations

from pytest_harbor.episode.rewards import read_rewards


def test_b33_json_wins_and_the_other_is_named() -> None:
    reading = read_rewards({"reward.txt": b"0", "reward.json": b'{"reward": 1}'})
    assert reading.scalar == 1.0
    assert reading.file == "reward.json"
    assert "reward.txt says 0" in reading.warnings[0]


def test_b33_no_word_when_they_agree() -> None:
    assert not read_rewards({"reward.txt": b"1", "reward.json": b'{"reward": 1}'}).warnings


def test_b33_a_broken_text_beside_it_is_said() -> None:
    reading = read_rewards({"reward.txt": b"Traceback", "reward.json": b'{"reward": 1}'})
    assert "cannot be read" in reading.warnings[0]
