"""Reading episodes for a report, and what every report asks about one.

The pass rule has spoken before (``verdict``); here is only what must hold for results of killed
runs, whose steps were never ruled on, and for readers who may not see what the verifier wrote.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pytest_harbor.episode.result import EpisodeResult, Fault, Hygiene, StepResult, Verdict

_HIDDEN = "not shown: what the verifier wrote is private"
_GRADING = ("verify", "clean")
"""Phases of a step whose faults may quote test.sh or name its files."""


def read_job(job: Path) -> list[EpisodeResult]:
    """All episodes of a job folder that left a result, ordered by key."""
    folders = [each for each in job.iterdir() if each.is_dir()] if job.is_dir() else []
    read = (EpisodeResult.read(folder) for folder in folders)
    return sorted((each for each in read if each is not None), key=lambda each: each.key)


def verdict_of(step: StepResult) -> Verdict:
    """How a step is shown; one that ran but was never ruled on speaks by its own outcome."""
    if step.ran is None or step.verdict != "skipped":
        return step.verdict
    if step.fault is not None or step.outcome is None:
        return "error"
    return step.outcome.meaning.shown


def reason_of(step: StepResult) -> str:
    """Why a step is shown so."""
    if step.verdict_reason:
        return step.verdict_reason
    if step.fault is not None:
        return f"{step.fault.outcome}: {step.fault.message}"
    if step.ran is None:
        return "not reached"
    return "it did not end" if step.outcome is None else ""


def why(result: EpisodeResult) -> str:
    """Why an episode ended as it did, in words; never empty for one that did not pass."""
    if result.verdict_reason or result.verdict == "passed":
        return result.verdict_reason
    if result.fault is not None:
        return f"{result.fault.outcome} ({result.fault.phase}): {result.fault.message}"
    return f"{result.outcome}: {result.outcome.meaning.text}"


def transcript_of(step: StepResult) -> str | None:
    """The file that shows best what the agent did."""
    return (step.turn.trajectory or step.turn.log) if step.turn else None


def telling_step(result: EpisodeResult) -> StepResult | None:
    """The step that explains the end: the first that failed or broke, else the last that ran."""
    ran = [step for step in result.steps if step.ran is not None]
    bad = [step for step in ran if verdict_of(step) in ("failed", "error")]
    return bad[0] if bad else ran[-1] if ran else None


def tokens_of(step: StepResult) -> int | None:
    """Tokens of a turn, in and out; None when nobody counted."""
    counted = [step.turn.input_tokens, step.turn.output_tokens] if step.turn else []
    known = [each for each in counted if each is not None]
    return sum(known) if known else None


def is_valid(result: EpisodeResult) -> bool:
    """Whether the reward counts: graded, or set to zero by the recipe's ``count_as_zero``."""
    counted = result.outcome.is_graded or result.verdict != "error"
    return counted and result.reward is not None


def without_verifier_output(result: EpisodeResult) -> EpisodeResult:
    """The result as it may be shown to someone who must not learn what the hidden tests are.

    Scores and outcomes stay. Output, file names and reasons that quote the verifier go.
    """
    faults = [result.fault, *(step.fault for step in result.steps)]
    quoting = {each.message: each for each in faults if each and each.phase in _GRADING}

    def private(reason: str, fault: Fault | None) -> str:
        if fault is not None and fault.phase in _GRADING:
            return f"{fault.outcome}: {_private(fault).message}"
        for message, it in quoting.items():
            reason = reason.replace(message, _private(it).message)
        return reason

    return result.model_copy(
        update={
            "steps": tuple(_private_step(step, private) for step in result.steps),
            "rewards": _only_reward(result.rewards),
            "fault": result.fault and _private(result.fault),
            "verdict_reason": private(result.verdict_reason, result.fault),
        }
    )


def _private_step(step: StepResult, private: Callable[[str, Fault | None], str]) -> StepResult:
    changes: dict[str, Any] = {
        "hygiene": _private_hygiene(step.hygiene),
        "warnings": (),
        "fault": step.fault and _private(step.fault),
        "verdict_reason": private(step.verdict_reason, step.fault),
        "artifacts": tuple(a for a in step.artifacts if not a.source.startswith("/logs/verifier")),
    }
    if step.grade is not None:
        hidden = {"log": None, "reward_file": None, "rewards": _only_reward(step.grade.rewards)}
        changes["grade"] = step.grade.model_copy(update=hidden)
    return step.model_copy(update=changes)


def _private_hygiene(hygiene: Hygiene) -> Hygiene:
    """Names of what grading left or changed tell what it does."""
    names = ("killed_after_grading", "removed", "changed")
    hidden = {name: (f"{len(getattr(hygiene, name))}: {_HIDDEN}",) for name in names}
    return hygiene.model_copy(update={k: v for k, v in hidden.items() if getattr(hygiene, k)})


def _private(fault: Fault) -> Fault:
    """The fault without its message, where that may quote the verifier."""
    if fault.phase not in _GRADING:
        return fault
    return fault.model_copy(update={"message": f"{fault.outcome.meaning.text} ({_HIDDEN})"})


def _only_reward(rewards: dict[str, float]) -> dict[str, float]:
    """Keys of a reward table may name hidden tests."""
    return {name: value for name, value in rewards.items() if name == "reward"}
