"""The simulated user's own log, told step by step."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sample_job import START, episode, interval, step, unreached, write

from pytest_harbor.episode.result import EpisodeResult, GradeRecord
from pytest_harbor.report.talk import Exchange, as_messages, by_step, find_talk, read_talk


def line(second: float, question: str, answer: str = "yes") -> str:
    at = (START + timedelta(seconds=second)).timestamp()
    return json.dumps({"time": at, "call": 1, "question": question, "answer": answer})


def graded(name: str, index: int):
    log = f"steps/{name}/verifier/test-stdout.txt"
    return step(name, index, grade=GradeRecord(ran=interval(0.1), log=log))


THREE: EpisodeResult = episode(steps=[graded("a", 0), graded("b", 1), unreached("c", 2)])


def test_each_exchange_belongs_to_its_step(tmp_path: Path) -> None:
    text = "\n".join([line(0.5, "one"), line(2.5, "two"), line(3.5, "three"), line(99, "late")])
    files = {
        "steps/a/verifier/user-server/ask-user.jsonl": line(0.5, "an older export"),
        "steps/b/verifier/user-server/ask-user.jsonl": text,
    }
    folder = write(tmp_path, THREE, files)
    talk = find_talk(THREE, folder)
    assert talk is not None
    found = {index: [each.question for each in said] for index, said in talk.by_step.items()}
    assert found == {0: ["one"], 1: ["two", "three"]}


def test_no_log_is_no_talk_and_not_silence(tmp_path: Path) -> None:
    assert find_talk(THREE, write(tmp_path, THREE)) is None


def test_a_private_verifiers_export_is_not_read(tmp_path: Path) -> None:
    from pytest_harbor.report.episodes import without_verifier_output

    files = {"steps/b/verifier/user-server/ask-user.jsonl": line(0.5, "one")}
    folder = write(tmp_path, THREE, files)
    assert find_talk(without_verifier_output(THREE), folder) is None


def test_lines_that_are_none_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "ask-user.jsonl"
    good = {"timestamp": "2026-11-03T14:02:08", "question": "q\x1b[31m", "reply": None}
    path.write_text("\n".join(["", "{", "3", "null", "[]", '{"x": 1}', json.dumps(good)]))
    assert read_talk(path) == [
        Exchange(datetime(2026, 11, 3, 14, 2, 8, tzinfo=UTC), "q", ""),
    ]
    assert read_talk(tmp_path / "gone") == []


@pytest.mark.parametrize("time", ["soon", None, 1e300, [], {}])
def test_a_time_that_is_none_is_in_no_step(tmp_path: Path, time: object) -> None:
    path = tmp_path / "ask-user.jsonl"
    path.write_text(json.dumps({"time": time, "question": "q", "answer": "a"}))
    [exchange] = read_talk(path)
    assert exchange.at is None
    assert by_step([exchange], THREE.steps) == {0: [], 1: []}


def test_messages_are_talk_with_times_since_the_first() -> None:
    said = [Exchange(START, "q", "a"), Exchange(START + timedelta(seconds=75), "r", "b")]
    first, second = as_messages(said)
    assert first["calls"][0]["args"] == [["question", "q"]]
    assert first["calls"][0]["results"] == ["a"]
    assert (first["at"], second["at"]) == ("0:00", "1:15")
    assert as_messages([]) == ()


def test_secrets_are_taken_out(tmp_path: Path) -> None:
    path = tmp_path / "ask-user.jsonl"
    path.write_text(line(0, "hunter22", "hunter22"))
    [exchange] = read_talk(path, lambda text: text.replace("hunter22", "-"))
    assert (exchange.question, exchange.answer) == ("-", "-")
