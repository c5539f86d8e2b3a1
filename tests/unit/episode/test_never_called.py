"""What is said when an agent never called a server that it was required to get."""

from __future__ import annotations

from sample_job import step

from pytest_harbor.episode.result import GrantRecord, StepResult
from pytest_harbor.episode.run import never_called


def played(*calls: dict[str, int] | None, mode: str = "required") -> list[StepResult]:
    records = (GrantRecord.model_validate({"name": "u", "mode": mode, "calls": c}) for c in calls)
    return [step(f"s{n}", n, grants=(record,)) for n, record in enumerate(records)]


def test_a_required_server_that_was_never_called_is_named() -> None:
    warned = ("the agent never called the required MCP server 'u'",)
    assert never_called(played({"ask": 0}, {"ask": 0})) == warned
    assert never_called(played({"ask": 0}, {"ask": 1})) == ()
    assert never_called(played({"ask": 0}, mode="optional")) == ()
    assert never_called(played(None)) == ()  # nobody counted
    assert never_called([]) == ()
