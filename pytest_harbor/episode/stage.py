"""The stage of an episode: the running group, made ready once, in which the steps are played."""

from __future__ import annotations

import shlex
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from pytest_harbor.agents.base import Agent, Grant, ModelDoor
from pytest_harbor.episode.budgets import setup_budget
from pytest_harbor.episode.doors import Doors
from pytest_harbor.episode.plan import Plan
from pytest_harbor.episode.record import EpisodeRecord
from pytest_harbor.episode.result import GrantRecord, PartyRecord
from pytest_harbor.errors import AgentError, SandboxError
from pytest_harbor.sandbox.container import Container
from pytest_harbor.sandbox.group import Group
from pytest_harbor.sandbox.processes import Processes
from pytest_harbor.sandbox.scratch import Ground
from pytest_harbor.sandbox.uploads import tree_entries
from pytest_harbor.task.schema import Healthcheck
from pytest_harbor.task.timeouts import Deadline
from pytest_harbor.user.grants import Seen, address_from_host, try_grants, url_variables
from pytest_harbor.user.sidecar import SimulatedUser, find_user


@dataclass(frozen=True)
class Stage:
    """What every step of an episode works with."""

    plan: Plan
    record: EpisodeRecord
    group: Group
    main: Container
    ground: Ground
    processes: Processes
    grants: tuple[Seen, ...]
    user: SimulatedUser | None
    doors: Doors | None = None
    relayed: Mapping[str, Grant] = field(default_factory=dict)
    """Grants as the agent gets them, where that is by way of the gateway."""

    @property
    def agent(self) -> Agent:
        """Who acts."""
        return self.plan.agent

    def fill(self, values: Mapping[str, str]) -> dict[str, str]:
        """Variables for main, with the addresses of model servers in them."""
        if self.doors is None:
            return dict(values)
        return self.doors.fill(values, self.group.host_address)

    def check_models(self, *, goes_on: bool) -> None:
        """See that no budget is spent and that the simulated user's model never failed.

        Raises:
            HarborError: outcome ``budget_spent`` or ``user_degraded``.
        """
        if self.doors is not None:
            self.doors.check(goes_on=goes_on)

    def parties(self, step: str) -> dict[str, PartyRecord]:
        """Who asked how much of a model in a step."""
        return self.doors.parties(step) if self.doors is not None else {}

    def turn_grants(self) -> tuple[Grant, ...]:
        """What the agent gets in a turn."""
        usable = (seen.grant for seen in self.grants if not seen.trouble)
        return tuple(self.relayed.get(grant.name, grant) for grant in usable)

    def turn_model(self) -> ModelDoor | None:
        """Where the agent finds its model; None for agents that need none."""
        if self.doors is None or self.plan.model is None:
            return None
        return self.doors.model(self.plan.model, self.group.host_address)

    def turn_env(self) -> dict[str, str]:
        """The agent's variables; scripts find granted servers where the agent does."""
        return {**url_variables(self.relayed.values()), **self.fill(self.plan.agent_env)}

    def grant_records(self, step: str) -> tuple[GrantRecord, ...]:
        """The grants as a step's result shows them."""
        return tuple(self._grant_record(seen, step) for seen in self.grants)

    def _grant_record(self, seen: Seen, step: str) -> GrantRecord:
        record = GrantRecord(
            name=seen.grant.name,
            url=seen.grant.url,
            mode=self.plan.recipe.task_mcp_grants,
            reachable=bool(seen.tools) if not seen.trouble else False,
            tools=seen.tools,
            note=seen.trouble or seen.note,
        )
        if self.doors is None or seen.grant.name not in self.relayed:
            return record
        calls = [call for call in self.doors.tool_calls(step) if call.server == seen.grant.name]
        by_tool = Counter(call.tool or "" for call in calls)
        counted = {
            "calls": dict.fromkeys(seen.tools, 0) | by_tool,
            "offered": self.doors.offered(step, seen.tools),
            "errors": sum(not call.went_well for call in calls),
            "wait_seconds": round(sum(call.seconds for call in calls), 3),
        }
        return record.model_copy(update=counted)


def open_stage(
    plan: Plan,
    group: Group,
    record: EpisodeRecord,
    user: SimulatedUser | None = None,
    doors: Doors | None = None,
) -> Stage:
    """Make a started group ready for its first step (harbor-format 3.1, 4 to 7).

    Raises:
        HarborError: healthcheck, agent setup or a required MCP server failed; the record has it.
    """
    main = group.container("main")
    ground = group.ground()
    environment = plan.task.config.environment
    with record.phase("start"):
        make_workdir(main)
        ground.prepare_logs()
        _lay_environment(plan, main)
        if environment.healthcheck is not None:
            where = "[environment.healthcheck]"
            wait_until_healthy(main, environment.healthcheck, None, where, outcome="start_failed")
    if doors is not None:
        with record.phase("gateway"):
            record.warn(doors.try_from(main, group.host_address))
    if plan.agent.capabilities.needs_network and group.host_address is None:
        raise AgentError(
            f"the agent {plan.agent.name} works in main, and main has no network by which it could "
            "reach the model gateway on this host"
        )
    with record.phase("agent-setup"):
        _set_up_agent(plan, main)
    with record.phase("grants"):
        recipe = plan.recipe
        seen = try_grants(
            plan.grants, recipe.task_mcp_grants, group, main, recipe.mcp_ready_seconds
        )
    processes = group.processes()
    processes.take_baseline()
    user = user or find_user(plan.grants, group)
    relayed = _relay(seen, group, doors)
    return Stage(plan, record, group, main, ground, processes, seen, user, doors, relayed)


def _relay(grants: Iterable[Seen], group: Group, doors: Doors | None) -> dict[str, Grant]:
    """Let the agent find its servers at the gateway, which keeps what it asks of them."""
    relayed = {}
    for seen in grants if doors is not None else ():
        url = address_from_host(seen.grant.url or "", group) if seen.from_host else None
        given = doors.relay(seen.grant, url, group.host_address) if doors and url else None
        if given is not None:
            relayed[seen.grant.name] = given
    return relayed


def _set_up_agent(plan: Plan, main: Container) -> None:
    """Let the agent prepare, under a budget of its own (B24)."""
    deadline = Deadline.after(setup_budget(plan.recipe), "agent setup")
    _check_binaries(plan.agent, main, deadline)
    plan.agent.setup(main, user=plan.task.config.agent.user, deadline=deadline)
    if deadline.expired:
        raise AgentError(f"{plan.agent.name} was not set up in time: {deadline.describe()}")


def _check_binaries(agent: Agent, main: Container, deadline: Deadline) -> None:
    """Refuse an image without the programs that the agent needs, rather than let it fail in there.

    Raises:
        AgentError: one is missing; the message has its name.
    """
    if not agent.capabilities.binaries:
        return
    names = " ".join(shlex.quote(name) for name in agent.capabilities.binaries)
    program = f'for name in {names}; do command -v "$name" >/dev/null || echo "$name"; done'
    missing = main.run(program, user="0", workdir="/", deadline=deadline).output.decode().split()
    if missing:
        raise AgentError(
            f"the agent {agent.name} needs {', '.join(missing)} in the image of main, which has "
            "none: add it to the Dockerfile, or take another agent"
        )


def make_workdir(main: Container) -> tuple[str, ...]:
    """Make the working directory where there is none: no command could start otherwise.

    Returns a warning when it had to be made, for an agent or a test may have removed it.
    """
    facts = main.stat(main.workdir)
    if facts is not None and facts.kind == "link":
        facts = main.stat(facts.target)
    if facts is not None and facts.kind == "folder":
        return ()
    main.make_folder(PurePosixPath(main.workdir))
    return (f"the working directory {main.workdir} was not there; it was made, empty",)


def _lay_environment(plan: Plan, main: Container) -> None:
    """Copy ``environment/`` into a ready-made image that nothing else brings it to (format 6.3)."""
    task = plan.task
    built = task.dockerfile is not None or task.compose_file is not None
    if built or task.environment_dir is None:
        return
    owner = main.user(None)
    place = main.workdir.rstrip("/")
    if entries := tree_entries(task.environment_dir, place, owner, harborignore=False):
        main.put(entries)


def wait_until_healthy(
    main: Container, check: Healthcheck, user: str | int | None, where: str, *, outcome: str
) -> None:
    """Run a healthcheck until it passes once (harbor-format 2.5).

    A command that hangs is a failed attempt like any other (sharp edge 6); times are seconds and
    may be fractions (sharp edge 7).

    Raises:
        SandboxError: it failed ``retries`` times after its start period.
    """
    started = time.monotonic()
    failures = 0
    while True:
        limit = Deadline.after(check.timeout_sec, f"{where} timeout_sec")
        ran = main.run(check.command, user=user, deadline=limit)
        if ran.exit_code == 0 and not ran.timed_out:
            return
        starting = time.monotonic() - started < check.start_period_sec
        failures += not starting
        if failures >= check.retries:
            said = ran.output.decode("utf-8", "replace").strip()[-500:]
            how = "timed out" if ran.timed_out else f"exited with {ran.exit_code}"
            raise SandboxError(
                f"{where} {check.command!r} failed {failures} times; the last {how}: "
                f"{said or '(no output)'}",
                outcome=outcome,
            )
        time.sleep(check.start_interval_sec if starting else check.interval_sec)
