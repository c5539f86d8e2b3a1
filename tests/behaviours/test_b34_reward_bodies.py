"""B34: rewards are strict decimals; what Harbor guesses is refused or said."""

from __future__ import annotations

import pytest

from pytest_harbor.episode.rewards import read_rewards
from pytest_harbor.errors import VerifierError

TEXT = [
    (b"1", 1.0),
    (b" 0.75\n", 0.75),
    (b"-3", -3.0),
    (b"+.5", 0.5),
    (b"1e-3", 0.001),
    (b"\xef\xbb\xbf1.0", 1.0),
    (b"", None),
    (b"\n", None),
    (b"yes", None),
    (b"0x1", None),
    (b"1 # ok", None),
    (b"nan", None),
    (b"inf", None),
    (b"1_000", None),
    ("٣".encode(), None),
    (b"1e400", None),
    (b"1,5", None),
    (b"\xff\xfe1\x00", None),
    (b"Traceback (most recent call last):", None),
]
JSON = [
    (b'{"reward": 1, "extra": 0.5}', {"reward": 1.0, "extra": 0.5}),
    (b'\xef\xbb\xbf{"reward": 1}', {"reward": 1.0}),
    (b'{"reward": true}', {"reward": 1.0}),
    (b"0.5", {"reward": 0.5}),
    (b'{"reward": 0.0, "error": "no test commit"}', {"reward": 0.0}),
    (b'{"score": 0.0, "error": "no test commit"}', None),
    (b'{"reward": 1, "reward": 1}', {"reward": 1.0}),
    (b"{}", None),
    (b"", None),
    (b"[1]", None),
    (b"null", None),
    (b"true", None),
    (b'"1"', None),
    (b'{"reward": "1"}', None),
    (b'{"reward": null}', None),
    (b'{"reward": [1]}', None),
    (b'{"reward": NaN}', None),
    (b'{"reward": Infinity}', None),
    (b'{"reward": 1e400}', None),
    (b'{"reward": 1' + b"0" * 400 + b"}", None),
    (b'{"reward": 0, "reward": 1}', None),
    (b'{"reward": 1', None),
    (b"[" * 100_000, None),
]


@pytest.mark.parametrize(("body", "reward"), TEXT)
def test_b34_text(body: bytes, reward: float | None) -> None:
    check("reward.txt", body, None if reward is None else {"reward": reward})


@pytest.mark.parametrize(("body", "rewards"), JSON)
def test_b34_json(body: bytes, rewards: dict[str, float] | None) -> None:
    check("reward.json", body, rewards)


def check(name: str, body: bytes, rewards: dict[str, float] | None) -> None:
    if rewards is not None:
        assert read_rewards({name: body}).rewards == rewards
        return
    with pytest.raises(VerifierError, match=name) as error:
        read_rewards({name: body})
    assert error.value.outcome == "reward_unreadable"


@pytest.mark.parametrize("number", [b"-5", b"10000000000", b"1.01"])
def test_b34_out_of_range_is_kept_and_said(number: bytes) -> None:
    reading = read_rewards({"reward.txt": number})
    assert reading.scalar == float(number)
    assert "outside 0 to 1" in reading.warnings[0]
