"""What the report says of a step."""

from __future__ import annotations

from sample_job import interval, step

from pytest_harbor.episode.result import TurnRecord
from pytest_harbor.report.facts import step_facts


def test_what_ran_and_what_a_card_changed_is_shown() -> None:
    extra = {"version": "codex-cli 0.171.0", "notes": ["a", "b"], "mcp_calls": {"ask": 1}}
    turn = TurnRecord(ran=interval(1), ended="exited", extra=extra)
    shown = {
        fact.label: (fact.text, fact.items)
        for fact in step_facts(step("a", 0, 1.0, turn=turn), None)
    }
    assert shown["Agent's version"][0] == "codex-cli 0.171.0"
    assert shown["Agent's notes"][1] == ("a", "b")
    assert "Agent's mcp calls" not in shown
