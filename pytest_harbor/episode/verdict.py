"""The pass rule: which steps of an episode pass, fail, or merely did not decide.

pytest fails a test for any failed subtest, so a low step that does not decide is shown as an
expected failure. The rule is applied once, here; pytest, junit, HTML and the terminal show it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pytest_harbor.episode.outcome import Outcome
from pytest_harbor.episode.result import Fault, StepResult, Verdict
from pytest_harbor.episode.rewards import Strategy

_CLOSE = 1e-9


@dataclass(frozen=True)
class Ruling:
    """How an episode ended: its outcome, what pytest shows, why, and the steps so marked."""

    outcome: Outcome
    verdict: Verdict
    reason: str
    steps: tuple[StepResult, ...]


def rule(
    steps: Sequence[StepResult],
    *,
    reward: float | None,
    strategy: Strategy,
    threshold: float,
    fault: Fault | None,
    unreached_reason: str = "",
) -> Ruling:
    """Apply the pass rule to the steps of one finished attempt.

    With ``mean`` and a threshold of 1, each step below 1 fails. Otherwise only the deciding step
    (the last, under ``final``) or a missed gate fails; other low steps are expected failures.
    """
    outcome = _outcome(steps, reward, threshold, fault)
    marked = tuple(
        _mark(step, _decides(step, steps, strategy, threshold, fault), threshold, unreached_reason)
        for step in steps
    )
    verdict: Verdict = outcome.meaning.shown
    return Ruling(outcome, verdict, _reason(outcome, reward, threshold, fault, steps), marked)


def meets(reward: float | None, threshold: float) -> bool:
    """Whether a reward reaches a threshold, forgiving what summing floats loses."""
    return reward is not None and reward >= threshold - _CLOSE


def _outcome(
    steps: Sequence[StepResult], reward: float | None, threshold: float, fault: Fault | None
) -> Outcome:
    if fault is not None:
        return fault.outcome
    gated = any(step.gate for step in steps)
    if gated and (meets(reward, threshold) or steps[-1].ran is None):
        return Outcome.GATE_STOPPED
    if meets(reward, threshold):
        return Outcome.PASSED
    endings = {step.turn.ended for step in steps if step.turn is not None}
    if "timeout" in endings:
        return Outcome.AGENT_TIMEOUT
    return Outcome.AGENT_ERROR if "error" in endings else Outcome.FAILED


def _decides(
    step: StepResult,
    steps: Sequence[StepResult],
    strategy: Strategy,
    threshold: float,
    fault: Fault | None,
) -> bool:
    if fault is not None:
        return False
    if strategy == "final" or len(steps) == 1:
        return step is steps[-1]
    return threshold >= 1


def _mark(step: StepResult, decides: bool, threshold: float, unreached: str) -> StepResult:
    verdict, reason = _verdict(step, decides, threshold, unreached)
    return step.model_copy(update={"verdict": verdict, "verdict_reason": reason})


def _verdict(
    step: StepResult, decides: bool, threshold: float, unreached: str
) -> tuple[Verdict, str]:
    if step.fault is not None:
        return "error", f"{step.fault.outcome}: {step.fault.message}"
    if step.ran is None:
        return "skipped", unreached or "not reached"
    if step.gate is not None:
        return "failed", step.gate
    low = f"reward {_shown(step.reward)} < {threshold:g}{_ending(step)}"
    if meets(step.reward, threshold):
        return "passed", _ending(step).removeprefix("; ")
    return ("failed", low) if decides else ("xfailed", f"{low}; this step does not decide")


def _ending(step: StepResult) -> str:
    if step.turn is None or step.turn.ended == "exited":
        return ""
    return f"; {step.turn.message}"


def _reason(
    outcome: Outcome,
    reward: float | None,
    threshold: float,
    fault: Fault | None,
    steps: Sequence[StepResult],
) -> str:
    if fault is not None:
        return f"{fault.outcome} ({fault.phase}): {fault.message}"
    if outcome is Outcome.PASSED:
        return ""
    endings = [f"step {s.name}: {s.turn.message}" for s in steps if s.turn and s.turn.message]
    gate = next((f"step {s.name}: {s.gate}" for s in steps if s.gate), None)
    if outcome is Outcome.GATE_STOPPED and gate is not None:
        return "; ".join([f"{outcome}: {gate}", *endings])
    return "; ".join([f"{outcome}: reward {_shown(reward)} < {threshold:g}", *endings])


def _shown(reward: float | None) -> str:
    return "none" if reward is None else f"{reward:g}"
