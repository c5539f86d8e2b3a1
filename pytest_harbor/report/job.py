"""The job folder's own files: two in Harbor's shape, so that ``harbor view`` opens it, and ours.

``result.json`` holds counts and statistics (harbor-format 11.4), ``config.json`` what was asked
for (11.2). Both are made from the episodes' results alone. ``summary.json`` holds the run's numbers
by our rules.
"""

from __future__ import annotations

import json
import math
import os
import uuid
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from pytest_harbor.episode.outcome import Outcome
from pytest_harbor.episode.result import EpisodeResult
from pytest_harbor.episode.trial import dataset_of, trial_document
from pytest_harbor.report.attempts import pass_at
from pytest_harbor.report.numbers import Numbers, numbers, summary


def write_job(
    job: Path,
    results: Iterable[EpisodeResult],
    *,
    started_at: datetime,
    finished_at: datetime | None = None,
    total: int | None = None,
) -> Numbers:
    """Write ``result.json``, ``config.json`` and ``summary.json``; returns the last one's numbers.

    Args:
        job: the job folder.
        results: the episodes that ended.
        started_at: when the run began.
        finished_at: when it ended; now, if left out.
        total: how many episodes were meant to run; as many as ended, if left out.
    """
    every = sorted(results, key=lambda each: each.key)
    job.mkdir(parents=True, exist_ok=True)
    _write(job / "config.json", job_config(job, every))
    _write(job / "result.json", job_result(job.name, every, started_at, finished_at, total))
    found = numbers(job, every)
    _write(job / "summary.json", summary(job.name, found))
    return found


def job_config(job: Path, results: Sequence[EpisodeResult]) -> dict[str, Any]:
    """Harbor's job config, as far as episodes know it."""
    agents = {(each.agent.name, each.agent.model): None for each in results if each.agent}
    tasks = {(each.task_path, dataset_of(each)): None for each in results}
    return {
        "schema_version": 1,
        "job_name": job.name,
        "jobs_dir": job.parent.name,
        "n_attempts": max((each.attempt for each in results), default=1),
        "agents": [{"name": name, "model_name": model} for name, model in agents],
        "tasks": [{"path": path, "source": source} for path, source in tasks],
    }


def job_result(
    name: str,
    results: Sequence[EpisodeResult],
    started_at: datetime,
    finished_at: datetime | None = None,
    total: int | None = None,
) -> dict[str, Any]:
    """Harbor's job result: its statistics over the trials, by its own rules of what counts."""
    ended = _local(finished_at or datetime.now())
    number = len(results) if total is None else max(total, len(results))
    return {
        "schema_version": 1,
        "id": str(uuid.uuid5(uuid.NAMESPACE_URL, f"{name}@{started_at.isoformat()}")),
        "started_at": _local(started_at),
        "updated_at": ended,
        "finished_at": ended,
        "n_total_trials": number,
        "stats": {
            **_counts(results, number),
            **_sums(results),
            "evals": _evals(results),
        },
    }


def _local(moment: datetime) -> str:
    """Harbor writes a job's times as local ones without a zone, and compares them so."""
    return moment.astimezone().replace(tzinfo=None).isoformat()


def _counts(results: Sequence[EpisodeResult], total: int) -> dict[str, int]:
    return {
        "n_completed_trials": len(results),
        "n_errored_trials": sum(bool(_exceptions(each)) for each in results),
        "n_running_trials": 0,
        "n_pending_trials": total - len(results),
        "n_cancelled_trials": sum(each.outcome is Outcome.INTERRUPTED for each in results),
        "n_retries": 0,
    }


def _sums(results: Sequence[EpisodeResult]) -> dict[str, float | None]:
    turns = [step.turn for each in results for step in each.steps if step.turn is not None]
    return {
        "n_input_tokens": _sum(turn.input_tokens for turn in turns),
        "n_cache_tokens": _sum(turn.cached_tokens for turn in turns),
        "n_output_tokens": _sum(turn.output_tokens for turn in turns),
        "cost_usd": _sum(turn.cost_usd for turn in turns),
    }


def _sum(numbers: Iterable[float | None]) -> float | None:
    """The sum of what is known; None when nothing is."""
    known = [each for each in numbers if each is not None]
    return sum(known) if known else None


def _evals(results: Sequence[EpisodeResult]) -> dict[str, dict[str, Any]]:
    """Statistics of each agent, model and dataset; trials without a valid reward are left out."""
    groups: dict[str, list[EpisodeResult]] = {}
    for each in results:
        groups.setdefault(_eval_key(each), []).append(each)
    return {key: _eval(members) for key, members in groups.items()}


def _eval_key(result: EpisodeResult) -> str:
    """As Harbor spells it: ``agent__[model__]dataset``."""
    agent = trial_document(result)["agent_info"]
    model = agent["model_info"] and agent["model_info"]["name"]
    return "__".join(filter(None, [agent["name"], model, dataset_of(result) or "adhoc"]))


def _eval(results: Sequence[EpisodeResult]) -> dict[str, Any]:
    rewards: dict[str, dict[float, list[str]]] = {}
    exceptions: dict[str, list[str]] = {}
    valid = [each for each in results if each.outcome.is_graded and _rewards(each)]
    for each in valid:
        for key, value in _rewards(each).items():
            rewards.setdefault(key, {}).setdefault(value, []).append(each.episode)
    for each in results:
        for name in sorted(_exceptions(each)):
            exceptions.setdefault(name, []).append(each.episode)
    return {
        "n_trials": len(valid),
        "n_errors": sum(bool(_exceptions(each)) for each in results),
        "metrics": [_means(rewards, len(valid))] if valid else [],
        "pass_at_k": _pass_at_k(valid),
        "reward_stats": rewards,
        "exception_stats": exceptions,
    }


def _means(rewards: dict[str, dict[float, list[str]]], trials: int) -> dict[str, float]:
    """``mean`` of the only key, else a mean per key in which a missing one counts 0."""
    means = {
        key: math.fsum(value * len(names) for value, names in by_value.items()) / trials
        for key, by_value in rewards.items()
    }
    return {"mean": next(iter(means.values()))} if len(means) == 1 else means


def _pass_at_k(valid: Sequence[EpisodeResult]) -> dict[int, float]:
    """Harbor's pass@k: only of single rewards that are all 0 or 1, up to the fewest attempts.

    What it leaves out is in ``summary.json``.
    """
    rewards: dict[str, list[float]] = {}
    for each in valid:
        found = [*_rewards(each).values()]
        if len(found) != 1 or found[0] not in (0, 1):
            return {}
        rewards.setdefault(each.task_path, []).extend(found)
    fewest = min(map(len, rewards.values()), default=0)
    wanted = (k for k in range(2, fewest + 1) if k & (k - 1) == 0 or k % 5 == 0)
    return {
        k: math.fsum(pass_at(len(each), each.count(1), k) for each in rewards.values())
        / len(rewards)
        for k in wanted
    }


def _rewards(result: EpisodeResult) -> dict[str, float]:
    verifier = trial_document(result)["verifier_result"]
    return dict(verifier["rewards"]) if verifier else {}


def _exceptions(result: EpisodeResult) -> set[str]:
    document = trial_document(result)
    noted = [document["exception_info"]]
    noted += [step["exception_info"] for step in document["step_results"] or ()]
    return {each["exception_type"] for each in noted if each}


def _write(path: Path, document: dict[str, Any]) -> None:
    """Whole or not at all."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.new")
    beside.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    beside.replace(path)
