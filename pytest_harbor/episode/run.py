"""One episode, top to bottom."""

from __future__ import annotations

import traceback

from pytest_harbor.episode.lease import Lease
from pytest_harbor.episode.record import EpisodeRecord
from pytest_harbor.episode.result import EpisodeResult
from pytest_harbor.episode.stage import open_stage
from pytest_harbor.episode.step import run_step
from pytest_harbor.errors import HarborError
from pytest_harbor.sandbox.group import Group
from pytest_harbor.user.sidecar import SimulatedUser


def start_group(lease: Lease, record: EpisodeRecord) -> Group:
    """Start the lease's group, on the record.

    Raises:
        HarborError: it did not start; the record has the fault and the sidecars' last words.
    """
    with record.phase("group"):
        group = lease.start()
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
        stage = open_stage(lease.plan, group, record, user)
        for step in lease.plan.steps:
            result = run_step(stage, step)
            record.step(result)
            if result.fault is not None or result.gate is not None:
                break
    except HarborError as error:
        record.fault(error, "episode")
    except Exception as error:  # whatever it is, it is an error and never a zero
        record.fault(error, "episode")
        record.folder.write_text("exception.txt", traceback.format_exc())
    except BaseException as error:
        record.fault(error, "episode")
        record.finish()
        raise
    _keep_service_logs(lease, record)
    return record.finish()


def _keep_service_logs(lease: Lease, record: EpisodeRecord) -> None:
    """Save what each sidecar printed; a sidecar that is gone has nothing to say."""
    if not lease.is_started:
        return
    group = lease.group
    for service in (name for name in group.services if name != "main"):
        try:
            text = group.logs(service).decode("utf-8", "replace")
        except HarborError as error:
            record.warn([f"the log of {service} could not be saved: {error}"])
        else:
            record.folder.write_text(f"services/{service}.log", text)
