"""One step, top to bottom: set up, turn, settle, collect, grade, clean (harbor-format 3.3).

What happens when the agent times out: its turn is recorded as such, everything that it left
running is killed, and the step is graded like any other.
"""

from __future__ import annotations

import shlex
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pytest_harbor.agents.base import LOGS, Turn, TurnResult
from pytest_harbor.episode.artifacts import collect, run_hooks
from pytest_harbor.episode.budgets import agent_budget, step_setup_budget
from pytest_harbor.episode.doors import AGENT
from pytest_harbor.episode.folder import StepFolder
from pytest_harbor.episode.logs import get_logs
from pytest_harbor.episode.outcome import Outcome
from pytest_harbor.episode.record import Stopwatch
from pytest_harbor.episode.result import (
    ArtifactRecord,
    Fault,
    Hygiene,
    StepResult,
    TurnRecord,
)
from pytest_harbor.episode.rewards import missed_gate
from pytest_harbor.episode.services import check_export, keep_service_logs
from pytest_harbor.episode.stage import Stage, make_workdir, wait_until_healthy
from pytest_harbor.episode.trajectories import OWN_COUNT, own_count, settle_trajectory
from pytest_harbor.episode.verdict import meets
from pytest_harbor.episode.verify import Graded, grade
from pytest_harbor.errors import AgentError, HarborError, SandboxError
from pytest_harbor.sandbox.container import Container
from pytest_harbor.sandbox.uploads import tree_entries
from pytest_harbor.task.model import Step
from pytest_harbor.task.timeouts import Deadline

_SWEEP_SECONDS = 30.0
_CLEAN_SECONDS = 60.0
_SETUP = "setup.sh"


@dataclass
class _Draft:
    """A step in the making."""

    step: Step
    folder: StepFolder
    session: str | None = None
    watch: Stopwatch = field(default_factory=Stopwatch)
    turn: TurnRecord | None = None
    graded: Graded | None = None
    reward: float | None = None
    gate: str | None = None
    fault: Fault | None = None
    hygiene: dict[str, tuple[str, ...]] = field(default_factory=dict)
    artifacts: tuple[ArtifactRecord, ...] = ()
    warnings: list[str] = field(default_factory=list)


def run_step(stage: Stage, step: Step, session: str | None = None) -> StepResult:
    """Play one step; a fault in it is in the result, not raised.

    ``session`` is the one that the agent shall go on with; None for a fresh one.
    """
    folder = stage.record.folder.step(step.name, implicit=step.implicit)
    draft = _Draft(step, folder, session)
    stage.record.event("step-start", step=step.name, index=step.index)
    if stage.doors is not None:
        stage.doors.step(step.name)
    phases: tuple[tuple[str, Callable[[Stage, _Draft], None]], ...] = (
        ("setup", _set_up),
        ("agent", _take_turn),
        ("settle", _settle),
        ("collect", _collect),
        ("verify", _grade),
        ("clean", _clean),
    )
    for name, phase in phases:
        try:
            phase(stage, draft)
        except Exception as error:
            draft.fault = _fault(error, name)
            if not isinstance(error, HarborError):
                stage.record.folder.write_text("exception.txt", traceback.format_exc())
            _rescue(stage, draft)
            break
    stage.record.folder.redact(draft.folder.root)
    return _finish(stage, draft)


def _fault(error: Exception, phase: str) -> Fault:
    """Name what ended a step; what has no name is an error of ours and never a zero."""
    outcome = error.outcome if isinstance(error, HarborError) else Outcome.INTERNAL
    if outcome == Outcome.START_FAILED:  # the group had started: now the engine does not obey
        outcome = Outcome.SANDBOX_DIED
    return Fault(outcome=Outcome(outcome), phase=phase, message=str(error) or repr(error))


def _set_up(stage: Stage, draft: _Draft) -> None:
    """Lay the step's files, run its setup.sh, wait for its healthcheck."""
    step, main = draft.step, stage.main
    stage.check_models(goes_on=True)
    draft.warnings += make_workdir(main)
    if step.workdir is not None:
        owner = main.user(step.agent_user)
        place = main.workdir.rstrip("/")
        main.put(tree_entries(step.workdir, place, owner, scripts={_SETUP}, harborignore=False))
        if step.has_setup_script:
            _run_setup_script(stage, step, f"{place}/{_SETUP}")
            # Nobody of the agent's lives between two turns, so what lives now is the task's.
            stage.processes.take_baseline()
    if step.healthcheck is not None:
        where = f"healthcheck of step {step.name}"
        wait_until_healthy(main, step.healthcheck, step.agent_user, where, outcome="setup_failed")


def _run_setup_script(stage: Stage, step: Step, path: str) -> None:
    limit = Deadline.after(step_setup_budget(stage.plan.recipe), "setup.sh")
    command = f"bash {shlex.quote(path)}"
    ran = stage.main.run(command, user=step.agent_user, deadline=limit)
    _remove(stage.main, path)
    if ran.timed_out or ran.exit_code != 0:
        how = f"timed out ({ran.limit})" if ran.timed_out else f"exited with {ran.exit_code}"
        said = ran.output.decode("utf-8", "replace").strip()[-1000:] or "(no output)"
        raise SandboxError(f"{_SETUP} of step {step.name} {how}: {said}", outcome="setup_failed")


def _remove(main: Container, path: str) -> None:
    """Remove a file as root: the agent's user may not be allowed to, where it lies."""
    limit = Deadline.after(_CLEAN_SECONDS, f"removing {path}")
    main.run(f"rm -f -- {shlex.quote(path)}", user="0", workdir="/", deadline=limit)
    if main.stat(path) is not None:
        raise SandboxError(f"{path} cannot be removed", outcome="setup_failed")


def _take_turn(stage: Stage, draft: _Draft) -> None:
    """Start a fresh agent session with the step's instruction."""
    step, recipe = draft.step, stage.plan.recipe
    budget = agent_budget(step, recipe)
    stage.record.event("agent-start", step=step.name, budget=str(budget))
    watch = Stopwatch()
    turn = Turn(
        step=step.name,
        index=step.index,
        instruction=step.instruction,
        container=stage.main,
        user=step.agent_user,
        deadline=Deadline.after(budget, f"agent budget of step {step.name}"),
        env=stage.turn_env(),
        grants=stage.turn_grants(),
        solution=step.solution if stage.agent.capabilities.plays_solution else None,
        solution_env=stage.plan.solution_env,
        model=stage.turn_model(),
        effort=recipe.agent.effort,
        session=draft.session,
        episode=stage.record.folder.name,
    )
    try:
        result = stage.agent.run_turn(turn)
    except AgentError as error:
        result = TurnResult("error", message=str(error))
    draft.turn = _turn_record(stage, draft, result, watch, str(budget))
    stage.record.event("agent-end", step=step.name, ended=result.ended, message=result.message)


def _turn_record(
    stage: Stage, draft: _Draft, result: TurnResult, watch: Stopwatch, budget: str
) -> TurnRecord:
    def placed(name: str | None) -> str | None:
        return stage.record.folder.relative(draft.folder.agent / name) if name else None

    message = result.message
    if result.ended == "timeout" and budget not in message:
        message += f"; its budget was {budget}"
    return TurnRecord(
        ran=watch.stop(),
        ended=result.ended,
        exit_code=result.exit_code,
        message=message,
        budget=budget,
        log=placed(result.log),
        trajectory=placed(result.trajectory),
        input_tokens=result.input_tokens,
        output_tokens=result.output_tokens,
        cached_tokens=result.cached_tokens,
        cost_usd=result.cost_usd,
        session=result.session,
        extra=dict(result.extra),
    )


def _settle(stage: Stage, draft: _Draft) -> None:
    """End what the agent left running, fetch its logs, see how the user fared."""
    ended_well = draft.turn is not None and draft.turn.ended == "exited"
    if stage.plan.recipe.verifier.spare_processes and ended_well:
        _spare(stage, draft)
    else:
        _sweep(stage, draft, "killed_before_grading")
    _fetch_logs(stage, draft)
    _count_tokens(stage, draft)
    _settle_trajectory(stage, draft)
    if stage.user is not None:
        stage.user.check_memory()
    stage.check_models(goes_on=False)
    check_export(keep_service_logs(stage.group, stage.record, stage.user))


def _count_tokens(stage: Stage, draft: _Draft) -> None:
    """Take the turn's tokens from the gateway, where the agent's calls went through it."""
    own = stage.parties(draft.step.name).get(AGENT)
    turn = draft.turn
    if own is not None and turn is not None and (own.calls or turn.input_tokens is None):
        counted: dict[str, Any] = {
            "input_tokens": own.input_tokens,
            "output_tokens": own.output_tokens,
            "cached_tokens": own.cached_tokens,
            "cost_usd": own.cost_usd,
        }
        extra = turn.extra
        if differs := own_count(turn, counted):
            extra = {**extra, OWN_COUNT: differs}
        draft.turn = turn.model_copy(update={**counted, "extra": extra})


def _settle_trajectory(stage: Stage, draft: _Draft) -> None:
    if draft.turn is not None:
        folder = stage.record.folder
        draft.turn, warnings = settle_trajectory(folder, draft.folder, draft.turn)
        draft.warnings += warnings


def _spare(stage: Stage, draft: _Draft) -> None:
    """Count what the agent left running to the group's own from now on."""
    if spared := stage.processes.strangers():
        commands = "; ".join(process.command for process in spared)
        draft.warnings.append(f"left running while grading (verifier.spare_processes): {commands}")
        stage.processes.take_baseline()


def _sweep(stage: Stage, draft: _Draft, when: str) -> tuple[str, ...]:
    killed = stage.processes.sweep(Deadline.after(_SWEEP_SECONDS, "killing leftover processes"))
    if killed:
        draft.hygiene[when] = killed
        stage.record.event("killed", step=draft.step.name, when=when, commands=list(killed))
    return killed


def _fetch_logs(stage: Stage, draft: _Draft) -> None:
    draft.warnings += get_logs(stage.main, LOGS, draft.folder.agent)
    if draft.turn is not None and draft.turn.log is not None:
        path = stage.record.folder.path / draft.turn.log
        if not path.is_file():
            draft.turn = draft.turn.model_copy(update={"log": None})


def _collect(stage: Stage, draft: _Draft) -> None:
    """Run collect hooks and take artifacts, before grading can change them."""
    draft.warnings += run_hooks(draft.step.collect, stage.group)
    _take_artifacts(stage, draft)


def _take_artifacts(stage: Stage, draft: _Draft) -> None:
    draft.artifacts = collect(draft.step.artifacts, stage.group, draft.folder.artifacts)


def _grade(stage: Stage, draft: _Draft) -> None:
    """Grade the step, and see whether its gate holds."""
    step, recipe = draft.step, stage.plan.recipe
    stage.record.event("verify-start", step=step.name)
    graded = draft.graded = grade(stage, step, draft.folder)
    stage.record.event("verify-end", step=step.name, exit_code=graded.record.exit_code)
    draft.warnings += graded.warnings
    stage.check_models(goes_on=False)
    if graded.error is None:
        draft.reward, rewards = graded.scalar, graded.record.rewards
    elif graded.error.outcome in recipe.count_as_zero:
        draft.reward, rewards = 0.0, {"reward": 0.0}
        note = f"{graded.error.outcome} counts as 0 ({recipe.source('count_as_zero')})"
        draft.warnings.append(f"{note}: {graded.error}")
    else:
        raise graded.error
    draft.gate = missed_gate(step.min_reward, rewards, draft.reward)


def _clean(stage: Stage, draft: _Draft) -> None:
    """Remove what grading brought, before the next agent can see it."""
    last = draft.step.index == stage.plan.steps[-1].index
    if (last or draft.gate) and not stage.plan.recipe.keep:
        return
    killed = _sweep(stage, draft, "killed_after_grading")
    limit = Deadline.after(_CLEAN_SECONDS, "cleaning after grading")
    cleaned = stage.ground.after_grading(limit, killed)
    draft.hygiene["removed"] = cleaned.removed
    draft.hygiene["changed"] = cleaned.changed


def _rescue(stage: Stage, draft: _Draft) -> None:
    """Save what can be saved of a step that broke; nothing here may hide the fault."""
    attempts: dict[str, Callable[[], None]] = {}
    if not any(draft.folder.agent.iterdir()):
        attempts[LOGS] = lambda: _fetch_logs(stage, draft)
    if not draft.artifacts:
        attempts["artifacts"] = lambda: _take_artifacts(stage, draft)
    for what, attempt in attempts.items():
        try:
            attempt()
        except (HarborError, OSError) as error:
            draft.warnings.append(f"{what} could not be saved: {error}")


def _finish(stage: Stage, draft: _Draft) -> StepResult:
    graded = draft.graded
    hygiene: dict[str, Any] = dict(draft.hygiene)
    if graded is not None:
        hygiene["tampering"] = graded.tampering
    return StepResult(
        name=draft.step.name,
        index=draft.step.index,
        implicit=draft.step.implicit,
        outcome=_outcome(draft, stage.plan.recipe.pass_rule.threshold),
        reward=draft.reward,
        turn=draft.turn,
        grade=graded.record if graded is not None else None,
        fault=draft.fault,
        gate=draft.gate,
        hygiene=Hygiene(**hygiene),
        grants=stage.grant_records(draft.step.name),
        parties=stage.parties(draft.step.name),
        artifacts=draft.artifacts,
        warnings=tuple(draft.warnings),
        ran=draft.watch.stop(),
    )


def _outcome(draft: _Draft, threshold: float) -> Outcome:
    if draft.fault is not None:
        return draft.fault.outcome
    if draft.gate is not None:
        return Outcome.GATE_STOPPED
    if meets(draft.reward, threshold):
        return Outcome.PASSED
    ended = draft.turn.ended if draft.turn is not None else "exited"
    by_ending = {"timeout": Outcome.AGENT_TIMEOUT, "error": Outcome.AGENT_ERROR}
    return by_ending.get(ended, Outcome.FAILED)
