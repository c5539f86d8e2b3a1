"""The terminal hears of attempts, talk and differences, each only where there are any."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sample_job import START, episode, interval, step, write

from pytest_harbor.episode.outcome import Outcome
from pytest_harbor.episode.result import AgentIdentity, EpisodeResult, GradeRecord
from pytest_harbor.report.lines import render_numbers
from pytest_harbor.report.numbers import numbers

ENDS = {"p": (Outcome.PASSED, 1.0), "f": (Outcome.FAILED, 0.0), "e": (Outcome.SANDBOX_DIED, None)}


def tried(task: str, ends: str, **changes: Any) -> list[EpisodeResult]:
    return [
        episode(
            f"d/{task}/task.toml::{task}[attempt{number}]",
            outcome=ENDS[letter][0],
            reward=ENDS[letter][1],
            attempt=number,
            **changes,
        )
        for number, letter in enumerate(ends, 1)
    ]


def told(results: list[EpisodeResult], job: Path = Path("nowhere")) -> list[str]:
    return render_numbers(numbers(job, results))


def test_a_plain_run_has_nothing_to_add() -> None:
    failed = episode("swe/u/task.toml::u", outcome=Outcome.FAILED, reward=0.0)
    assert told([episode(), failed]) == []
    assert told([]) == []


def test_attempts() -> None:
    assert told([*tried("a", "pfp"), *tried("b", "pef")]) == [
        "  6 attempts at 2 tasks, 5 graded; 95 % intervals over tasks",
        "  pass@1 58% (12% to 93%)     pass^1 58% (12% to 93%)     of 2 tasks",
        "  pass@2 100% (34% to 100%)   pass^2 17% (1% to 76%)      of 2 tasks",
        "  pass@3 100% (21% to 100%)   pass^3 0% (0% to 79%)       of 1 task "
        "(1 with fewer graded attempts left out)",
    ]


def test_failures_by_kind() -> None:
    results = [
        episode("d/a/task.toml::a", outcome=Outcome.AGENT_TIMEOUT, reward=0.0),
        episode("d/b/task.toml::b", outcome=Outcome.FAILED, reward=0.0),
        episode("d/c/task.toml::c", outcome=Outcome.NO_REWARD, reward=0.0, verdict="failed"),
        episode("d/d/task.toml::d", outcome=Outcome.NO_REWARD, reward=None),
    ]
    assert told(results) == ["graded failures: 1 failed, 1 agent_timeout, 1 no_reward"]


def graded(name: str, job: Path, reward: float, files: dict[str, str]) -> EpisodeResult:
    logs = [GradeRecord(ran=interval(0.1), log=f"steps/{s}/verifier/out.txt") for s in "ab"]
    steps = [step("a", 0, grade=logs[0]), step("b", 1, reward, grade=logs[1])]
    outcome = Outcome.PASSED if reward == 1 else Outcome.FAILED
    result = episode(f"d/{name}/task.toml::{name}", steps, outcome, reward)
    write(job, result, {f"steps/b/verifier/{file}": text for file, text in files.items()})
    return result


def line(second: float) -> str:
    return json.dumps({"time": START.timestamp() + second, "question": "q", "answer": "a"})


def test_structural_zeros_and_talk(tmp_path: Path) -> None:
    asked, silent = {"user/ask-user.jsonl": line(0.5)}, {"user/ask-user.jsonl": ""}
    shape = {"structural.json": '{"code": "dirty_tree", "error": "x"}'}
    results = [
        graded("x", tmp_path, 1.0, asked),
        graded("y", tmp_path, 0.0, {**silent, **shape}),
        graded("z", tmp_path, 0.0, {**asked, **shape}),
    ]
    assert told(results, tmp_path) == [
        "2 structural zeros (wrong shape, not tested): 2 dirty_tree",
        "user asked (least/median/most): a 0/1/1; in no other step",
        "user never asked in 1 of 3 graded episodes",
    ]
    assert told(results[1:2], tmp_path)[1:] == ["user never asked in 1 of 1 graded episode"]


def test_several_groups_have_a_line_each_before_their_attempts() -> None:
    other = AgentIdentity(name="codex", version="1")
    lines = told([*tried("a", "pf"), episode("d/b/task.toml::b", agent=other)])
    assert lines[:3] == [
        "codex on d: 1 of 1 (100%; 21% to 100%)",
        "oracle, acme/large-1 on d: 1 of 2 (50%; 9% to 91%)",
        "  2 attempts at 1 task, 2 graded; 95 % intervals over tasks",
    ]
    lines = told([*tried("a", "e"), episode("d/b/task.toml::b", agent=other)])
    assert lines[1] == "oracle, acme/large-1 on d: 0 of 0, 1 not graded"


def test_differences_are_a_warning_and_not_a_flood() -> None:
    two = [*tried("a", "p", task_digest="sha256:1"), *tried("a", "pp", task_digest="sha256:2")[1:]]
    assert told(two)[-2:] == [
        "WARNING: these episodes are added up and were not run alike:",
        "  a: task digest differs: sha256:1 in 1, sha256:2 in 1",
    ]
    many = [
        each
        for n in range(7)
        for digest in (1, 2)
        for each in tried(f"t{n}", "pp", task_digest=f"sha256:{digest}")[digest - 1 :][:1]
    ]
    lines = told(many)
    assert sum("differs" in each for each in lines) == 5
    assert lines[-1] == "  and 2 more, in summary.json"


def test_hostile_names_stay_on_their_line() -> None:
    agent = AgentIdentity(name="a\nb\x1b[31m", version="1")
    lines = told([episode(agent=agent), episode("d/b/task.toml::b")])
    assert lines[0].startswith("a b on swe: ")
