"""The numbers of a run: groups that may be added up, and summary.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from sample_job import START, episode, interval, step, write
from sample_run import build

from pytest_harbor.episode.outcome import Outcome
from pytest_harbor.episode.result import AgentIdentity, EpisodeResult, GradeRecord
from pytest_harbor.report.job import write_job
from pytest_harbor.report.numbers import Numbers, numbers, summary

STRUCTURAL = '{"reward": 0.0, "code": "%s", "error": "words"}'


def one(name: str, outcome: Outcome, reward: float | None, **changes: Any) -> EpisodeResult:
    grade = GradeRecord(ran=interval(0.1), log="verifier/test-stdout.txt")
    steps = [step("task", 0, reward, implicit=True, grade=grade)]
    return episode(f"d/{name}/task.toml::{name}", steps, outcome, reward, **changes)


def found(tmp_path: Path, *results: EpisodeResult, codes: dict[str, str] | None = None) -> Numbers:
    for each in results:
        code = (codes or {}).get(each.task)
        write(tmp_path, each, {"verifier/structural.json": STRUCTURAL % code} if code else {})
    return numbers(tmp_path, results)


def test_groups_are_agent_model_and_dataset(tmp_path: Path) -> None:
    other = AgentIdentity(name="codex", version="0.9", model="openai/gpt-5.5")
    newer = AgentIdentity(name="codex", version="0.91", model="openai/gpt-5.5")
    results = [
        one("a", Outcome.PASSED, 1.0),
        one("b", Outcome.FAILED, 0.0),
        one("c", Outcome.PASSED, 1.0, agent=other),
        one("d", Outcome.PASSED, 1.0, agent=newer),
        one("e", Outcome.TASK_INVALID, None, agent=None),
        episode("e/x/task.toml::x"),
    ]
    groups = found(tmp_path, *results).groups
    assert [(each.name, each.sums.resolved, each.sums.valid) for each in groups] == [
        ("codex, openai/gpt-5.5 on d", 2, 2),
        ("oracle, acme/large-1 on d", 1, 2),
        ("oracle, acme/large-1 on e", 1, 1),
        ("unstarted on d", 0, 0),
    ]
    assert [len(each.identity.differences) for each in groups] == [1, 0, 0, 0]


def test_structural_zeros_are_counted_by_code_and_stay_failures(tmp_path: Path) -> None:
    names = {"a": "not_separate", "b": "dirty_tree", "c": "not_separate"}
    results = [one(name, Outcome.FAILED, 0.0) for name in (*names, "plain")]
    part = found(tmp_path, *results, codes=names).whole
    assert list(part.structural.items()) == [("not_separate", 2), ("dirty_tree", 1)]
    assert part.sums.outcomes == {Outcome.FAILED: 4}
    assert (part.sums.valid, part.sums.resolved) == (4, 0)


def test_what_is_excluded_says_why(tmp_path: Path) -> None:
    lost = one("a", Outcome.USER_DEGRADED, None, verdict_reason="it answered 401\n\x1b[31mmore")
    whole = found(tmp_path, lost, one("b", Outcome.PASSED, 1.0))
    [excluded] = whole.excluded
    assert (excluded.episode, excluded.outcome) == (lost.episode, "user_degraded")
    assert excluded.why == "it answered 401\nmore"
    flood = one("c", Outcome.INTERNAL, None, verdict_reason="x" * 9_000)
    assert len(found(tmp_path, flood).excluded[0].why) < 2_100


def test_calls_are_only_of_what_was_graded(tmp_path: Path) -> None:
    lines = json.dumps({"time": START.timestamp() + 0.5, "question": "q", "answer": "a"})
    results = [one("a", Outcome.PASSED, 1.0), one("b", Outcome.USER_DEGRADED, None)]
    for each in results:
        write(tmp_path, each, {"verifier/user-server/ask-user.jsonl": lines})
    calls = numbers(tmp_path, results).whole.calls
    assert calls is not None
    assert calls.by_step["task"].episodes == 1


def test_a_group_says_from_where_it_passes(tmp_path: Path) -> None:
    results = [one("a", Outcome.PASSED, 1.0), one("b", Outcome.PASSED, 0.6, threshold=0.5)]
    assert found(tmp_path, *results).groups[0].thresholds == (0.5, 1.0)


# --- summary.json


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    job = tmp_path_factory.mktemp("jobs") / "2026-11-03__14-02-07"
    write_job(job, build(job), started_at=START)
    read: dict[str, Any] = json.loads((job / "summary.json").read_text())
    return read


def test_the_files_keys(document: dict[str, Any]) -> None:
    assert list(document) == ["schema_version", "job", "totals", "groups", "excluded"]
    assert (document["schema_version"], document["job"]) == (1, "2026-11-03__14-02-07")
    part = [
        "episodes",
        "tasks",
        "resolved",
        "valid",
        "excluded",
        "outcomes",
        "structural_zeros",
        "resolve_rate",
        "resolve_rate_interval",
        "mean_reward_valid",
        "mean_reward_all",
        "seconds",
        "cost_usd",
        "cost_known",
        "tokens",
        "parties",
        "user_calls",
    ]
    group = ["agent", "model", "dataset", *part, "thresholds", "attempts", "identity"]
    assert list(document["totals"]) == part
    assert [list(each) for each in document["groups"]] == [group] * len(document["groups"])


def test_the_files_numbers(document: dict[str, Any]) -> None:
    sums = document["totals"]
    assert (sums["episodes"], sums["valid"], sums["resolved"]) == (15, 10, 4)
    assert sums["resolve_rate"] == 0.4
    assert sum(sums["excluded"].values()) == 5 == len(document["excluded"])
    assert sum(sums["outcomes"].values()) == 15
    assert sums["user_calls"]["by_step"]["02_implement"]["most"] == 3
    [codex] = [each for each in document["groups"] if each["agent"] == "codex"]
    assert codex["attempts"]["by_k"][0] == {
        "k": 1,
        "tasks": 3,
        "left_out": 1,
        "pass_at_k": 1 / 3,
        "pass_at_k_interval": codex["resolve_rate_interval"],
        "pass_hat_k": 1 / 3,
        "pass_hat_k_interval": codex["resolve_rate_interval"],
    }
    assert codex["attempts"]["by_task"][0] == {
        "task": "feature_image_resize",
        "task_path": "datasets/swe_interact/feature_image_resize",
        "episodes": 1,
        "graded": 0,
        "passed": 0,
    }
    identity = codex["identity"]
    assert identity["agent_versions"] == ["0.91.0"]
    assert identity["differences"] == []
    task = identity["tasks"]["datasets/swe_interact/feature_image_resize"]
    assert task["digests"][0].startswith("sha256:")
    assert {"key": "timeouts.multiplier", "value": 1.0, "source": "default", "episodes": 4} in (
        identity["recipe"]
    )


def test_the_groups_add_up_to_the_whole(document: dict[str, Any]) -> None:
    for key in ("episodes", "resolved", "valid", "tokens", "cost_known"):
        assert sum(each[key] or 0 for each in document["groups"]) == document["totals"][key]


def test_whoever_writes_the_file_has_its_numbers(tmp_path: Path) -> None:
    results = build(tmp_path)
    assert write_job(tmp_path, results, started_at=START) == numbers(tmp_path, results)


def test_a_difference_is_in_the_file(tmp_path: Path) -> None:
    two = [
        episode(f"d/a/task.toml::a[attempt{n}]", attempt=n, task_digest=f"sha256:{n}")
        for n in (1, 2)
    ]
    [group] = json.loads(json.dumps(summary("job", numbers(tmp_path, two))))["groups"]
    assert group["identity"]["differences"] == [
        {"what": "task digest", "of": "d/a", "values": {"sha256:1": 1, "sha256:2": 1}}
    ]


def test_no_episodes_make_a_summary_too(tmp_path: Path) -> None:
    document = summary("job", numbers(tmp_path, []))
    assert document["totals"]["resolve_rate"] is None
    assert document["groups"] == document["excluded"] == []
    json.dumps(document, allow_nan=False)


def test_the_order_of_the_results_does_not_matter(tmp_path: Path) -> None:
    results = build(tmp_path)
    assert numbers(tmp_path, results) == numbers(tmp_path, reversed(results))
