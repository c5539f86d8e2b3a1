"""The fixtures: what an episode is made of, each to be overridden in a conftest.py.

They only fetch and hand over; the work is done on the floors below. A fault while they are set up
is shown as an ERROR of the test, with its reason and without a traceback of ours.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_harbor.errors import HarborError, TaskError
from pytest_harbor.items import TaskFunction, announce, note_episode
from pytest_harbor.job import JOB
from pytest_harbor.options import given, recipe_layers

if TYPE_CHECKING:
    from pytest_harbor.agents.base import Agent
    from pytest_harbor.episode.doors import Doors
    from pytest_harbor.episode.folder import EpisodeFolder
    from pytest_harbor.episode.lease import Lease
    from pytest_harbor.episode.plan import Plan
    from pytest_harbor.episode.record import EpisodeRecord
    from pytest_harbor.episode.result import EpisodeResult
    from pytest_harbor.gateway import Gateway
    from pytest_harbor.settings import Recipe
    from pytest_harbor.task.model import Task
    from pytest_harbor.user.sidecar import SimulatedUser

RECORD = pytest.StashKey["EpisodeRecord"]()


@dataclass(frozen=True)
class Episode:
    """An episode that is ready to run: its group is up, its record is open."""

    lease: Lease
    record: EpisodeRecord
    user: SimulatedUser | None
    _node: pytest.Item

    @property
    def folder(self) -> Path:
        """Where the episode's files are."""
        return self.record.folder.path

    def run(self) -> EpisodeResult:
        """Play all steps and return the result; the same result when called again."""
        if self.record.result is not None:
            return self.record.result
        from pytest_harbor.episode.run import run_episode

        result = run_episode(self.lease, self.record, self.user)
        announce(result, self._node)
        return result


@pytest.fixture
def harbor_task(request: pytest.FixtureRequest) -> Task:
    """The task, loaded and checked."""
    with shown_plainly(request.node, "task"):
        from pytest_harbor.task.load import load_task

        return load_task(task_folder(request.node))


@pytest.fixture
def harbor_recipe(request: pytest.FixtureRequest, harbor_task: Task) -> Recipe:
    """How the task is run: harbor.yaml, ini, environment and options, later ones winning."""
    with shown_plainly(request.node, "recipe"):
        from pytest_harbor.recipe import make_recipe

        recipe = make_recipe(recipe_layers(request.config, harbor_task.folder))
        changed: Recipe | None = request.node.ihook.pytest_harbor_recipe(
            task=harbor_task, recipe=recipe
        )
        return changed if changed is not None else recipe


@pytest.fixture
def harbor_agent(
    request: pytest.FixtureRequest, harbor_task: Task, harbor_recipe: Recipe
) -> Agent | str:
    """Who acts: an agent, or the name of one. Override it with params for a matrix of agents."""
    with shown_plainly(request.node, "agent"):
        from pytest_harbor.agents.find import find_agent

        provided: Agent | None = request.node.ihook.pytest_harbor_agent(
            task=harbor_task, recipe=harbor_recipe
        )
        return provided if provided is not None else find_agent(harbor_recipe)


@pytest.fixture(scope="session")
def harbor_gateway(request: pytest.FixtureRequest) -> Iterator[Gateway]:
    """The gateway of this process: to models, and to the MCP servers that agents are granted.

    Only made where a recipe refers to a model server, or a task has an MCP server.
    """
    from pytest_harbor.gateway import Gateway

    config, job = request.config, request.config.stash[JOB]
    record, replay = (given(config, name) for name in ("record", "replay"))
    with Gateway(
        shared=job.folder / "gateway" / job.run_id,
        record=record.value if record else None,
        replay=replay.value if replay else None,
    ) as gateway:
        yield gateway


def _doors(request: pytest.FixtureRequest, plan: Plan, folder: EpisodeFolder) -> Doors:
    from pytest_harbor.episode.doors import Doors

    gateway = request.getfixturevalue("harbor_gateway")
    return Doors(plan, gateway, folder.name, folder.path, os.environ)


@pytest.fixture
def harbor_compose(
    request: pytest.FixtureRequest,
    harbor_task: Task,
    harbor_recipe: Recipe,
    harbor_agent: Agent | str,
) -> Iterator[Lease]:
    """The lease on the task's Compose group, started; closed when the test is over."""
    record = record_of(request.node)
    job = request.config.stash[JOB]
    with shown_plainly(request.node, "plan"):
        from pytest_harbor.agents.find import as_agent
        from pytest_harbor.episode.lease import Lease
        from pytest_harbor.episode.plan import make_plan
        from pytest_harbor.episode.run import start_group
        from pytest_harbor.sandbox.labels import Owner

        recipe, agent = as_agent(harbor_agent, harbor_recipe)
        plan = make_plan(harbor_task, recipe, agent, os.environ)
        record.begin(plan)
        through = plan.model_servers or (plan.relayable and job.engine.facts.is_local)
        doors = _doors(request, plan, record.folder) if through else None
        owner = Owner.of_this_process(job.run_id, record.folder.name)
        lease = Lease(plan, job.engine, owner, request.node.nodeid, doors)
    try:
        with shown_plainly(request.node, "group"):
            start_group(lease, record)
        yield lease
    finally:
        record.warn(lease.close())


@pytest.fixture
def harbor_user(harbor_compose: Lease) -> SimulatedUser | None:
    """The simulated user's sidecar; None when the task grants no server of its own group."""
    from pytest_harbor.user.sidecar import find_user

    return find_user(harbor_compose.plan.grants, harbor_compose.group)


@pytest.fixture
def harbor_episode(
    request: pytest.FixtureRequest, harbor_compose: Lease, harbor_user: SimulatedUser | None
) -> Episode:
    """The episode, ready: ``harbor_episode.run()`` plays it and returns its result."""
    return Episode(harbor_compose, record_of(request.node), harbor_user, request.node)


def has_task(node: pytest.Item) -> bool:
    """Whether a test is a task, or is marked with one."""
    mark = node.get_closest_marker("harbor_task")
    return isinstance(node, TaskFunction) or (mark is not None and bool(mark.args))


def task_folder(node: pytest.Item) -> Path:
    """The task folder of a task's item, or the one that the mark ``harbor_task`` names.

    Raises:
        TaskError: the test has neither.
    """
    if isinstance(node, TaskFunction):
        return node.task.folder
    mark = node.get_closest_marker("harbor_task")
    if mark is None or not mark.args:
        raise TaskError(
            f'{node.nodeid} has no task: mark it with @pytest.mark.harbor_task("path/to/task")'
        )
    folder = Path(mark.args[0])
    beside = node.path.parent / folder
    return beside if beside.is_dir() else node.config.rootpath / folder


def record_of(node: pytest.Item) -> EpisodeRecord:
    """The record of a test's episode, opened at first asking."""
    if RECORD not in node.stash:
        from pytest_harbor.episode.folder import EpisodeFolder, episode_name
        from pytest_harbor.episode.record import EpisodeRecord

        folder = task_folder(node)
        name = episode_name(folder.name, node.nodeid)
        callspec = getattr(node, "callspec", None)
        node.stash[RECORD] = EpisodeRecord(
            EpisodeFolder(node.config.stash[JOB].folder, name),
            key=node.nodeid,
            task=folder.name,
            task_path=os.path.relpath(folder, node.config.rootpath),
            attempt=callspec.params.get("harbor_attempt", 1) if callspec else 1,
        )
    return node.stash[RECORD]


@contextmanager
def shown_plainly(node: pytest.Item, phase: str) -> Iterator[None]:
    """Put a fault of ours on the record and show its reason alone."""
    try:
        yield
    except HarborError as error:
        if has_task(node):
            record_of(node).fault(error, phase)
        raise pytest.fail.Exception(str(error), pytrace=False) from None


def has_crashed(node: pytest.Item) -> bool:
    """Whether a worker died in this episode before, which is its outcome in this run.

    Some of xdist's schedulers hand such an item out again (pytest-xdist#1371).
    """
    job = node.config.stash[JOB]
    if job.is_controller or not isinstance(node, TaskFunction):
        return False
    from pytest_harbor.episode.folder import episode_name
    from pytest_harbor.episode.outcome import Outcome

    result = job.result(episode_name(node.task.folder.name, node.nodeid))
    if result is None or not job.began_here(result):
        return False
    return result.outcome is Outcome.INTERRUPTED


def note_end(node: pytest.Item, call: pytest.CallInfo[None]) -> None:
    """Note the result of a test's episode after its setup broke or its call is over.

    Whatever broke it goes on the record, so that every task has a result. A user's own test that
    only looked at the group has played no episode, and how it ends is its own matter.
    """
    is_task = isinstance(node, TaskFunction)
    broke_early = is_task and call.when == "setup" and call.excinfo
    if RECORD not in node.stash and not broke_early:
        return
    record = record_of(node)
    if call.when == "call" and record.result is None and not is_task:
        record.abandon()
        return
    if call.excinfo is not None and record.result is None:
        record.fault(_cause(node, call.excinfo.value), call.when)
        record.finish()
    note_episode(node, folder=record.folder.name)
    if record.result is not None:
        announce(record.result, node)


def _cause(node: pytest.Item, error: BaseException) -> BaseException:
    refusal = node.task.refusal if isinstance(node, TaskFunction) else None
    return TaskError(refusal) if refusal else error
