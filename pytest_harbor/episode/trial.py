"""An episode's result under the names that Harbor's own tools read (harbor-format 11.3).

A pure translation: ``harbor view`` and scripts that read ``result.json`` find what they know, and
nothing of ours is decided here. The score in it is Harbor's (``reward_as_harbor``).
"""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

from pytest_harbor.episode.outcome import Outcome
from pytest_harbor.episode.result import (
    AgentIdentity,
    EpisodeResult,
    Interval,
    StepResult,
    TurnRecord,
)

_ERROR_CLASSES = {
    Outcome.AGENT_TIMEOUT: "AgentTimeoutError",
    Outcome.AGENT_ERROR: "NonZeroAgentExitCodeError",
    Outcome.IMAGE_FAILED: "SandboxBuildFailedError",
    Outcome.START_FAILED: "EnvironmentStartTimeoutError",
    Outcome.SETUP_FAILED: "AgentSetupTimeoutError",
    Outcome.VERIFIER_TIMEOUT: "VerifierTimeoutError",
    Outcome.NO_REWARD: "RewardFileNotFoundError",
    Outcome.REWARD_UNREADABLE: "VerifierOutputParseError",
    Outcome.BUDGET_SPENT: "BudgetExceededError",
    Outcome.INTERRUPTED: "CancelledError",
}
"""Harbor's class (harbor-format 11.5) where it has one for the matter."""

_START = ("group", "start")
_AGENT_SETUP = ("agent-setup",)


def trial_document(result: EpisodeResult, folder: Path | None = None) -> dict[str, Any]:
    """Harbor's trial ``result.json`` for one episode; ``folder`` is where it lies, if it does."""
    alone = result.steps[0] if len(result.steps) == 1 and result.steps[0].implicit else None
    several = [] if alone else [_step(each) for each in result.steps if each.ran is not None]
    document: dict[str, Any] = {
        "schema_version": 1,
        "id": str(uuid.uuid5(uuid.NAMESPACE_URL, f"{result.episode}@{result.ran.started_at}")),
        "task_name": result.task,
        "trial_name": result.episode,
        "trial_uri": folder.absolute().as_uri() if folder is not None else "",
        "task_id": {"path": result.task_path},
        "source": dataset_of(result),
        "task_checksum": result.task_digest,
        "config": trial_config(result, folder),
        "agent_info": _agent_info(result.agent),
        "agent_result": None,
        "verifier_result": _rewards(result),
        "verifier_environment_mode": "shared" if alone and alone.grade else None,
        "exception_info": _trial_exception(result, alone),
        **_times(result.ran),
        "environment_setup": _span(result, _START),
        "agent_setup": _span(result, _AGENT_SETUP),
        "agent_execution": None,
        "verifier": None,
        "step_results": several or None,
    }
    if alone is not None:
        document |= _parts(alone)
    return document


def trial_config(result: EpisodeResult, folder: Path | None = None) -> dict[str, Any]:
    """The part of Harbor's trial config that an episode knows; the recipe holds the rest."""
    return {
        "schema_version": 1,
        "task": {"path": result.task_path, "source": dataset_of(result)},
        "trial_name": result.episode,
        "trials_dir": str(folder.parent) if folder is not None else "jobs",
        "agent": {
            "name": result.agent.name if result.agent else None,
            "model_name": result.agent.model if result.agent else None,
        },
    }


def dataset_of(result: EpisodeResult) -> str | None:
    """The dataset's name: the folder that holds the task."""
    return Path(result.task_path).parent.name or None


def error_class(outcome: Outcome) -> str:
    """The exception class under which Harbor's tools list an outcome."""
    name = "".join(word.capitalize() for word in outcome.value.split("_"))
    return _ERROR_CLASSES.get(outcome, f"{name}Error")


def _agent_info(agent: AgentIdentity | None) -> dict[str, Any]:
    if agent is None:
        return {"name": "unknown", "version": "unknown", "model_info": None}
    info: dict[str, Any] = {"name": agent.name, "version": agent.version or "unknown"}
    if not agent.model:
        return {**info, "model_info": None}
    provider, slash, name = agent.model.partition("/")
    model = {"name": name, "provider": provider} if slash else {"name": provider, "provider": None}
    return {**info, "model_info": model}


def _rewards(result: EpisodeResult) -> dict[str, Any] | None:
    """The trial's rewards by Harbor's rules; other keys as they were graded."""
    rewards: dict[str, float] = dict(result.rewards)
    if "reward" in rewards or not rewards:
        rewards.pop("reward", None)
        if result.reward_as_harbor is not None:
            rewards["reward"] = result.reward_as_harbor
    return {"rewards": rewards} if rewards else None


def _step(step: StepResult) -> dict[str, Any]:
    return {"step_name": step.name, "exception_info": _step_exception(step), **_parts(step)}


def _parts(step: StepResult) -> dict[str, Any]:
    """What Harbor keeps of a step, or of the trial when there is only the one."""
    turn, grade = step.turn, step.grade
    return {
        "agent_result": _context(turn) if turn else None,
        "verifier_result": {"rewards": dict(grade.rewards)} if grade and grade.rewards else None,
        "agent_execution": _times(turn.ran) if turn else None,
        "verifier": _times(grade.ran) if grade else None,
    }


def _context(turn: TurnRecord) -> dict[str, Any]:
    return {
        "n_input_tokens": turn.input_tokens,
        "n_cache_tokens": turn.cached_tokens,
        "n_output_tokens": turn.output_tokens,
        "cost_usd": turn.cost_usd,
        "metadata": dict(turn.extra) or None,
    }


def _trial_exception(result: EpisodeResult, alone: StepResult | None) -> dict[str, Any] | None:
    """Harbor notes a handled fault on its step, and on the trial when there is but one."""
    if alone is not None and (noted := _step_exception(alone)):
        return noted
    if result.fault is None or any(step.fault == result.fault for step in result.steps):
        return None
    return _exception(result.fault.outcome, result.fault.message, result.ran)


def _step_exception(step: StepResult) -> dict[str, Any] | None:
    ran = step.ran or (step.turn.ran if step.turn else None)
    if ran is None:
        return None
    if step.fault is not None:
        return _exception(step.fault.outcome, step.fault.message, ran)
    if step.turn is not None and step.turn.ended != "exited":
        timeout = step.turn.ended == "timeout"
        outcome = Outcome.AGENT_TIMEOUT if timeout else Outcome.AGENT_ERROR
        return _exception(outcome, step.turn.message, step.turn.ran)
    return None


def _exception(outcome: Outcome, message: str, ran: Interval) -> dict[str, Any]:
    """An exception record; its policy is spelled out, for Harbor trusts classes it has not met."""
    meaning = outcome.meaning
    return {
        "exception_type": error_class(outcome),
        "exception_message": message or meaning.text,
        "exception_traceback": "",
        "occurred_at": ran.finished_at.isoformat(),
        "policy_override": {
            "should_retry": meaning.retry,
            "should_grade": meaning.trusted,
            "has_valid_reward": meaning.trusted,
        },
    }


def _times(ran: Interval) -> dict[str, str]:
    return {
        "started_at": ran.started_at.isoformat(),
        "finished_at": ran.finished_at.isoformat(),
    }


def _span(result: EpisodeResult, phases: tuple[str, ...]) -> dict[str, str] | None:
    """From the first beginning to the last end of some phases."""
    ran = [result.phases[name] for name in phases if name in result.phases]
    if not ran:
        return None
    return {
        "started_at": min(each.started_at for each in ran).isoformat(),
        "finished_at": max(each.finished_at for each in ran).isoformat(),
    }
