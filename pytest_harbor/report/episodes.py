"""Reading episodes for a report, and what every report asks about one.

The pass rule has spoken before (``verdict``); here is only what must hold for results of killed
runs, whose steps were never ruled on, and for readers who may not see what the verifier wrote.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pytest_harbor.episode.result import EpisodeResult, Fault, Hygiene, StepResult, Verdict

_HIDDEN = "not shown: what the verifier wrote is private"


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
    changes: dict[str, Any] = {
        "steps": tuple(_private_step(step) for step in result.steps),
        "rewards": _only_reward(result.rewards),
    }
    if result.fault is not None and _quotes_verifier(result.fault):
        changes["fault"] = _private_fault(result.fault)
        changes["verdict_reason"] = f"{result.outcome}: {result.outcome.meaning.text}"
    elif result.verdict_reason:
        changes["verdict_reason"] = result.verdict_reason.split("\n", 1)[0]
    return result.model_copy(update=changes)


def _private_step(step: StepResult) -> StepResult:
    changes: dict[str, Any] = {"hygiene": _private_hygiene(step.hygiene), "warnings": ()}
    if step.grade is not None:
        hidden = {"log": None, "reward_file": None, "rewards": _only_reward(step.grade.rewards)}
        changes["grade"] = step.grade.model_copy(update=hidden)
    if step.fault is not None and _quotes_verifier(step.fault):
        changes["fault"] = _private_fault(step.fault)
        changes["verdict_reason"] = f"{step.fault.outcome}: {step.fault.outcome.meaning.text}"
    elif step.verdict_reason:
        changes["verdict_reason"] = step.verdict_reason.split("\n", 1)[0]
    kept = (each for each in step.artifacts if not each.source.startswith("/logs/verifier"))
    return step.model_copy(update={**changes, "artifacts": tuple(kept)})


def _private_hygiene(hygiene: Hygiene) -> Hygiene:
    """Names of files that grading left or changed tell what it does."""
    names = ("killed_after_grading", "removed", "changed")
    hidden = {name: (f"{len(getattr(hygiene, name))} {_HIDDEN}",) for name in names}
    return hygiene.model_copy(update={k: v for k, v in hidden.items() if getattr(hygiene, k)})


def _private_fault(fault: Fault) -> Fault:
    return fault.model_copy(update={"message": f"{fault.outcome.meaning.text} ({_HIDDEN})"})


def _quotes_verifier(fault: Fault) -> bool:
    return fault.phase in ("verify", "clean", "grade")


def _only_reward(rewards: dict[str, float]) -> dict[str, float]:
    """Keys of a reward table may name hidden tests."""
    return {name: value for name, value in rewards.items() if name == "reward"}
