"""B53: both junit families parse, and each step has its own properties."""

from __future__ import annotations

import pytest
from junit_tools import cases
from played import key_of, play
from sample_job import episode, interval, step

from pytest_harbor.episode.outcome import Outcome
from pytest_harbor.episode.result import TurnRecord


@pytest.mark.parametrize("family", ["xunit1", "xunit2", "legacy"])
@pytest.mark.parametrize("logging", ["no", "all"])
def test_b53_families(pytester: pytest.Pytester, family: str, logging: str) -> None:
    turns = [TurnRecord(ran=interval(1), ended="exited", cost_usd=cost) for cost in (0.25, 0.5)]
    result = episode(
        key_of("t1"),
        steps=[step("a", 0, 1.0, turn=turns[0]), step("b", 1, 0.0, turn=turns[1])],
        outcome=Outcome.FAILED,
        reward=0.5,
        cost_usd=0.75,
    )
    options = ["-o", f"junit_family={family}", "-o", f"junit_logging={logging}"]
    found = cases(play(pytester, [result], "-W", "error", *options))
    costs = [each.properties.get("harbor.cost_usd") for each in found]
    assert costs == ["0.75", "0.25", "0.5", None]
    assert [each.properties.get("harbor.reward") for each in found] == ["0.5", "1.0", "0.0", None]
    assert all(("file" in each.attributes) == (family != "xunit2") for each in found)
    assert ("printed by t1" in found[0].out) == (logging == "all")
    assert "[[ATTACHMENT|jobs/now/" in found[0].out
