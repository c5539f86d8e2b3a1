"""The keys of a recipe with their types, units, defaults and meanings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

GrantMode = Literal["off", "optional", "required"]
Provoked = Literal["verifier_timeout", "no_reward", "reward_unreadable"]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Factor = Annotated[float, Field(gt=0, allow_inf_nan=False)]
MASK = "***"


class Table(BaseModel):
    """Base of all recipe tables: frozen, no unknown keys, no guessed types."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class AgentTable(Table):
    """Who acts."""

    name: str = "oracle"
    """oracle, nop, command, or a name that a plugin provides."""
    model: str | None = None
    command: str | None = None
    """For the agent ``command``: a shell command, run in main for each turn."""
    env: dict[str, str] = Field(default_factory=dict)
    """Added to the environment of each turn."""


class BuildsTable(Table):
    """How images come to be."""

    force: bool = False
    """Build from the Dockerfile even where the task names a docker_image."""


class PhaseTable(Table):
    """Time limits of one phase, in seconds."""

    seconds: Seconds | None = None
    """Replaces what the task declares, before the multiplier."""
    multiplier: Factor | None = None
    """Replaces ``timeouts.multiplier`` for this phase."""
    cap: Seconds | None = None
    """No budget of this phase is longer, whatever the multiplier."""


class TimeoutsTable(Table):
    """Time limits, by phase."""

    multiplier: Factor = 1.0
    start: PhaseTable = PhaseTable()
    setup: PhaseTable = PhaseTable()
    agent: PhaseTable = PhaseTable()
    verifier: PhaseTable = PhaseTable()


class PassTable(Table):
    """The pass rule."""

    threshold: Annotated[float, Field(allow_inf_nan=False)] = 1.0
    """The task's reward from which on it counts as passed."""


class VerifierTable(Table):
    """How grading is read."""

    env: dict[str, str] = Field(default_factory=dict)
    """Added to the verifier's environment, over the task's."""
    exit_fatal: bool = False
    """A test.sh that exits with other than 0 is an error, whatever it wrote."""
    spare_processes: bool = False
    """What an agent left running when it ended by itself lives on, for tasks that ask for a
    running server. It may then tamper with grading; the result lists it."""
    reward_key: str | None = None
    """Which key counts where reward.json has several and none is called ``reward``."""


class FromHost(Table):
    """A value that is read from the operator's environment when it is needed."""

    env: str


def _off(value: object) -> object:
    """Undo YAML, to which a bare ``off`` is a boolean."""
    return "off" if value is False else value


class Recipe(Table):
    """How to run tasks. Made by :func:`pytest_harbor.recipe.make_recipe`."""

    agent: AgentTable = AgentTable()
    attempts: Annotated[int, Field(ge=1)] = 1
    builds: BuildsTable = BuildsTable()
    task_mcp_grants: Annotated[GrantMode, BeforeValidator(_off)] = "required"
    """Whether the task's MCP servers are given to the agent, and must work."""
    mcp_ready_seconds: Seconds = 15.0
    """How long a granted MCP server may take to answer its first handshake, in seconds."""
    compose_variables: dict[str, str | FromHost] = Field(default_factory=dict)
    """Names that the task's Compose file may interpolate; values are literals."""
    compose_overlays: Annotated[tuple[str, ...], Field(strict=False)] = ()
    """Compose files of the operator, laid over the task's; relative to the working directory."""
    timeouts: TimeoutsTable = TimeoutsTable()
    pass_rule: PassTable = Field(default=PassTable(), alias="pass")
    verifier: VerifierTable = VerifierTable()
    count_as_zero: Annotated[tuple[Provoked, ...], Field(strict=False)] = ()
    """Outcomes that an agent may provoke and that score 0 instead of being an error."""
    keep: bool = False
    """Leave the Compose group running after the episode, for a look inside."""
    strict: bool = False
    """What would be a warning about a task is an error."""
    until_step: str | None = None
    """Stop after this step."""
    sources: Mapping[str, str] = Field(default_factory=dict)
    """Where each key that was set was written."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, populate_by_name=True)

    def source(self, key: str) -> str:
        """Where a dotted key was set, or ``default``."""
        return self.sources.get(key, "default")

    def rows(self) -> Iterator[tuple[str, Any, str]]:
        """Every key, its value in plain JSON and its source; values that may be secret masked."""
        for key, value in _flat(self.model_dump(mode="json", by_alias=True, exclude={"sources"})):
            secret = key.startswith(("agent.env.", "verifier.env."))
            literal = key.startswith("compose_variables.") and not isinstance(value, dict)
            yield key, (MASK if secret or literal else value), self.source(key)


def _flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, dict) and prefix != "compose_variables.":
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def known_keys() -> frozenset[str]:
    """Every dotted key that a recipe may hold."""
    keys = {key for key, _ in _flat(Recipe().model_dump(by_alias=True, exclude={"sources"}))}
    return frozenset(keys | {"compose_variables", "agent.env", "verifier.env"})
