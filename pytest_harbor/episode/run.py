"""One episode, top to bottom."""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Sequence

from pytest_harbor.episode.lease import Lease
from pytest_harbor.episode.record import EpisodeRecord
from pytest_harbor.episode.result import EpisodeResult, StepResult
from pytest_harbor.episode.services import keep_service_logs
from pytest_harbor.episode.stage import Stage, open_stage
from pytest_harbor.episode.step import run_step
from pytest_harbor.episode.trajectories import Chronicle
from pytest_harbor.errors import HarborError
from pytest_harbor.sandbox.group import Group
from pytest_harbor.task.model import Step
from pytest_harbor.user.sidecar import SimulatedUser, find_user


def start_group(lease: Lease, record: EpisodeRecord) -> Group:
    """Start the lease's group, on the record.

    Raises:
        HarborError: it did not start; the record has the fault and the sidecars' last words.
    """
    with record.phase("group"):
        try:
            group = lease.start()
        finally:
            record.hide(lease.secrets)
    record.images(dict(group.images))
    record.warn(group.warnings)
    return group


def run_episode(
    lease: Lease, record: EpisodeRecord, user: SimulatedUser | None = None
) -> EpisodeResult:
    """Play the steps of a task in a leased group until they are over or something stops them.

    ``user`` is the handle of the simulated user; by default it is found among the granted servers.
    The lease stays with the caller, who closes it. Faults are in the result; only what stops the
    whole process (KeyboardInterrupt, SystemExit) is raised, after the record has it.
    """
    try:
        if not record.has_begun:
            record.begin(lease.plan)
        group = lease.group if lease.is_started else start_group(lease, record)
        stage = open_stage(lease.plan, group, record, user, lease.doors)
        chronicle = Chronicle(record.folder, lease.plan.agent)
        played: list[StepResult] = []
        for step in lease.plan.steps:
            result = run_step(stage, step, _session(lease, played))
            played.append(result)
            _note_parties(lease, record)
            record.step(result)
            _tell(chronicle, step, result, stage)
            if result.fault is not None or result.gate is not None:
                break
        if not lease.plan.agent.capabilities.is_utility:
            record.warn(never_called(played))
    except HarborError as error:
        record.fault(error, "episode")
    except Exception as error:  # whatever it is, it is an error and never a zero
        record.fault(error, "episode")
        record.folder.write_text("exception.txt", traceback.format_exc())
    except BaseException as error:
        record.fault(error, "episode")
        try:
            _wind_up(lease, record, user)
        finally:
            record.finish()
        raise
    _wind_up(lease, record, user)
    return record.finish()


def _tell(chronicle: Chronicle, step: Step, result: StepResult, stage: Stage) -> None:
    """Add a step to the episode's trajectory; trouble in here must not take the result along."""
    calls = stage.doors.tool_calls(step.name) if stage.doors is not None else ()
    try:
        chronicle.add(step.instruction, result, calls)
    except ValueError as error:
        stage.record.warn([f"step {step.name} is missing in the episode's trajectory: {error}"])


def _session(lease: Lease, played: Sequence[StepResult]) -> str | None:
    """The agent's session that the next step goes on with, where the recipe wants that."""
    if not lease.plan.recipe.agent.resume_sessions or not played or played[-1].turn is None:
        return None
    return played[-1].turn.session


def never_called(steps: Iterable[StepResult]) -> tuple[str, ...]:
    """Say which required MCP servers the agent left alone in all steps, where that is known (B90).

    It is no fault, but the result reads differently.
    """
    called: dict[str, int] = {}
    for grant in (grant for step in steps for grant in step.grants):
        if grant.mode == "required" and grant.calls is not None:
            called[grant.name] = called.get(grant.name, 0) + sum(grant.calls.values())
    return tuple(
        f"the agent never called the required MCP server {name!r}"
        for name, number in called.items()
        if number == 0
    )


def _wind_up(lease: Lease, record: EpisodeRecord, user: SimulatedUser | None) -> None:
    """Close the doors, so that the sums are final, and save what the sidecars have to say.

    Trouble in here is a warning: it must not take the result along.
    """
    for part in (_close_doors, _save_logs):
        try:
            part(lease, record, user)
        except HarborError as error:
            record.warn([str(error)])


def _close_doors(lease: Lease, record: EpisodeRecord, _user: SimulatedUser | None) -> None:
    if lease.doors is not None:
        lease.doors.close()
        record.warn(lease.doors.unreplayed())
        _note_parties(lease, record)


def _save_logs(lease: Lease, record: EpisodeRecord, user: SimulatedUser | None) -> None:
    if lease.is_started:
        group = lease.group
        keep_service_logs(group, record, user or find_user(lease.plan.grants, group))


def _note_parties(lease: Lease, record: EpisodeRecord) -> None:
    if lease.doors is not None:
        record.parties(lease.doors.parties())
