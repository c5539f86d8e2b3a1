"""B32: of several reward keys, ``reward`` counts, else the configured one, else none."""

from __future__ import annotations

import pytest

from pytest_harbor.episode.rewards import read_rewards


@pytest.mark.parametrize(
    ("body", "key", "scalar"),
    [
        (b'{"accuracy": 0.9, "format": 1}', None, None),
        (b'{"format": 1, "accuracy": 0.9}', None, None),
        (b'{"accuracy": 0.9, "format": 1}', "accuracy", 0.9),
        (b'{"format": 1, "accuracy": 0.9}', "accuracy", 0.9),
        (b'{"accuracy": 0.9, "reward": 0.2}', None, 0.2),
        (b'{"accuracy": 0.9, "reward": 0.2}', "accuracy", 0.2),
        (b'{"accuracy": 0.9}', None, 0.9),
    ],
)
def test_b32_which_key_counts(body: bytes, key: str | None, scalar: float | None) -> None:
    reading = read_rewards({"reward.json": body}, key=key)
    assert reading.scalar == scalar
    if scalar is None:
        assert "which one counts" in reading.warnings[-1]
