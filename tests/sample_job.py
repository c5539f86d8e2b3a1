"""Episodes made by hand, for tests of what reads results. sample_run.py makes a whole run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pytest_harbor.episode.outcome import Outcome
from pytest_harbor.episode.result import (
    AgentIdentity,
    EpisodeResult,
    Fault,
    GradeRecord,
    Interval,
    StepResult,
    TurnRecord,
)
from pytest_harbor.episode.trial import trial_document

START = datetime(2026, 11, 3, 14, 2, 7, tzinfo=UTC)


def interval(seconds: float, after: float = 0.0) -> Interval:
    begin = START + timedelta(seconds=after)
    return Interval(
        started_at=begin, finished_at=begin + timedelta(seconds=seconds), seconds=seconds
    )


def step(name: str, index: int = 0, reward: float | None = 1.0, **changes: Any) -> StepResult:
    """A step that ran for two seconds and was graded; say what is different."""
    values: dict[str, Any] = {
        "name": name,
        "index": index,
        "reward": reward,
        "outcome": Outcome.PASSED if reward == 1 else Outcome.FAILED,
        "verdict": "passed" if reward == 1 else "failed",
        "verdict_reason": "" if reward == 1 else f"reward {reward:g} < 1" if reward else "low",
        "ran": interval(2.0, after=2.0 * index),
        "turn": TurnRecord(ran=interval(1.5, after=2.0 * index), ended="exited", exit_code=0),
        "grade": GradeRecord(
            ran=interval(0.5, after=2.0 * index + 1.5),
            exit_code=0,
            rewards={} if reward is None else {"reward": reward},
        ),
    }
    return StepResult(**{**values, **changes})


def unreached(name: str, index: int, reason: str = "not reached", **changes: Any) -> StepResult:
    return StepResult(name=name, index=index, verdict_reason=reason, **changes)


def fault(outcome: Outcome, phase: str = "verify", message: str = "it broke") -> Fault:
    return Fault(outcome=outcome, phase=phase, message=message)


def episode(
    key: str = "datasets/swe/t1/task.toml::t1",
    steps: Iterable[StepResult] = (),
    outcome: Outcome = Outcome.PASSED,
    reward: float | None = 1.0,
    **changes: Any,
) -> EpisodeResult:
    """An episode of ten seconds; say what is different."""
    every = tuple(steps)
    task = key.rpartition("::")[2].partition("[")[0]
    shown = outcome.meaning.shown
    values: dict[str, Any] = {
        "episode": folder_of(key),
        "key": key,
        "task": task,
        "task_path": key.partition("/task.toml")[0],
        "task_digest": "sha256:0a1b2c",
        "outcome": outcome,
        "reward": reward,
        "reward_as_harbor": reward,
        "rewards": {} if reward is None else {"reward": reward},
        "steps": every,
        "steps_total": len(every),
        "agent": AgentIdentity(name="oracle", version="1.0.0", model="acme/large-1"),
        "ran": interval(10.0),
        "verdict": shown,
        "verdict_reason": "" if shown == "passed" else f"{outcome}: because of the sample",
    }
    return EpisodeResult(**{**values, **changes})


def folder_of(key: str) -> str:
    from pytest_harbor.episode.folder import episode_name

    return episode_name(key.rpartition("::")[2].partition("[")[0], key)


def write(job: Path, result: EpisodeResult, files: Mapping[str, str] | None = None) -> Path:
    """Put an episode's folder into a job, with its result and some files."""
    folder = job / result.episode
    folder.mkdir(parents=True, exist_ok=True)
    document = {**trial_document(result, folder), "pytest_harbor": result.plain()}
    (folder / "result.json").write_text(json.dumps(document), encoding="utf-8")
    for name, text in (files or {}).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", errors="surrogateescape")
    return folder
