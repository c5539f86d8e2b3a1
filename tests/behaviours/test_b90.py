"""B90: a reader sees for each step whether the user was asked."""

from __future__ import annotations

import json
from pathlib import Path

from page_tools import episodes, packed, read_page
from sample_job import START, episode, interval, step, write

from pytest_harbor.episode.result import GradeRecord, GrantRecord, TurnRecord
from pytest_harbor.report.facts import step_facts
from pytest_harbor.report.html import write_report

GRANT = GrantRecord(name="user-server", mode="required", reachable=True, tools=("ask_user",))


def chips(folder: Path, *turns: TurnRecord, files: dict[str, str] | None = None) -> list[str]:
    steps = [step(f"s{n}", n, turn=turn, grants=(GRANT,)) for n, turn in enumerate(turns)]
    result = episode(steps=steps)
    write(folder, result, files)
    write_report(folder, folder / "r.html", [result])
    [row] = episodes(read_page(folder / "r.html"))
    return [
        " ".join(chip.text for chip in each.all("span", class_="chip"))
        for each in row.all("details", class_="step")
    ]


def turn(**changes: object) -> TurnRecord:
    return TurnRecord.model_validate({"ran": interval(1), "ended": "exited", **changes})


def test_b90_calls_are_counted_from_the_transcript(tmp_path: Path) -> None:
    call = {"tool_call_id": "1", "function_name": "mcp__user-server__ask_user", "arguments": {}}
    asked = {"steps": [{"source": "agent", "message": "", "tool_calls": [call]}] * 3}
    quiet = {"steps": [{"source": "agent", "message": "done"}]}
    files = {"a.json": json.dumps(asked), "b.json": json.dumps(quiet)}
    found = chips(tmp_path, turn(trajectory="a.json"), turn(trajectory="b.json"), files=files)
    assert found == ["ask_user: 3 calls", "ask_user: 0 calls"]


def test_b90_an_agent_without_transcript_may_be_counted_for(tmp_path: Path) -> None:
    assert chips(tmp_path, turn(extra={"mcp_calls": {"ask_user": 1}})) == ["ask_user: 1 call"]


def test_b90_the_users_own_log_counts_for_any_agent(tmp_path: Path) -> None:
    at = START.timestamp()
    lines = [json.dumps({"time": at + n, "question": "q", "answer": "a"}) for n in (0.5, 1.5)]
    files = {"v/user-server/ask-user.jsonl": "\n".join(lines)}
    steps = [
        step(f"s{n}", n, grants=(GRANT,), grade=GradeRecord(ran=interval(0.1), log="v/out.txt"))
        for n in range(2)
    ]
    result = episode(steps=steps)
    write(tmp_path, result, files)
    write_report(tmp_path, tmp_path / "r.html", [result])
    [row] = episodes(read_page(tmp_path / "r.html"))
    chips = [each.text for each in row.all("span", class_="chip")]
    assert chips == ["ask_user: 2 calls", "ask_user: 0 calls"]
    assert packed(row)[0]["messages"][0]["calls"][0]["talk"] is True


def test_b90_what_nobody_counted_is_not_called_zero(tmp_path: Path) -> None:
    assert chips(tmp_path, turn()) == [""]


def test_b90_what_passed_the_gateway_counts_before_all_else(tmp_path: Path) -> None:
    call = {"tool_call_id": "1", "function_name": "mcp__user-server__ask_user", "arguments": {}}
    claimed = {"steps": [{"source": "agent", "message": "", "tool_calls": [call]}] * 9}
    counted = GRANT.model_copy(update={"calls": {"ask_user": 2}, "errors": 1, "wait_seconds": 3.25})
    alone = GRANT.model_copy(update={"calls": {"ask_user": 0}})
    steps = [
        step(f"s{n}", n, turn=turn(trajectory="a.json"), grants=(grant,))
        for n, grant in enumerate((counted, alone))
    ]
    result = episode(steps=steps)
    write(tmp_path, result, {"a.json": json.dumps(claimed)})
    write_report(tmp_path, tmp_path / "r.html", [result])
    [row] = episodes(read_page(tmp_path / "r.html"))
    chips = [each.text for each in row.all("span", class_="chip")]
    assert chips == ["ask_user: 2 calls", "ask_user: 0 calls"]
    facts = [list(step_facts(each, None))[-1].text for each in steps]
    answered = "required, answered; tools: ask_user"
    assert facts == [
        f"{answered}; 2 calls, 1 error, waited 3.2 s",
        f"{answered}; never called",
    ]
