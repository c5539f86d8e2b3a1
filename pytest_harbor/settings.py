"""The keys of a recipe with their types, units, defaults and meanings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PositiveInt

from pytest_harbor.recipe_keys import (
    FREE_TABLES,
    NAME,
    NAMED_TABLES,
    free_table,
    is_in_named_table,
    is_value,
)

GrantMode = Literal["off", "optional", "required"]
TryWith = Literal["chat", "responses", "messages", "gemini", "off"]
Provoked = Literal["verifier_timeout", "no_reward", "reward_unreadable"]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Factor = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Usd = Annotated[float, Field(ge=0, allow_inf_nan=False)]
ServerName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+$")]
MASK = "***"


def _off(value: object) -> object:
    """Undo YAML, to which a bare ``off`` is a boolean."""
    return "off" if value is False else value


class Table(BaseModel):
    """Base of all recipe tables: frozen, no unknown keys, no guessed types."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class FromHost(Table):
    """A value that is read from the operator's environment when it is needed."""

    env: str


class FromModelServer(Table):
    """The address of a model server's secret door for this episode, without ``/v1``."""

    model_server: str


Value = str | FromHost | FromModelServer
"""A variable's value: as it stands, from the operator's environment, or a model's address."""


class LoopTable(Table):
    """What the agent ``model-loop`` may do in a turn."""

    calls: PositiveInt = 100
    """Model calls."""
    tokens: PositiveInt | None = None
    """Input and output of all model calls together; the call that goes beyond is the last."""
    context: PositiveInt = 100_000
    """Tokens that the model can be told at once; older tool outputs make room."""
    command_seconds: Seconds = 300.0
    """A shell command that takes longer is killed, and the turn goes on."""


class AgentTable(Table):
    """Who acts."""

    name: str = "oracle"
    """Built in, ``module:Class``, or a name that a plugin provides."""
    model: str | None = None
    command: str | None = None
    """For the agent ``command``: a shell command, run in main for each turn."""
    env: dict[str, Value] = Field(default_factory=dict)
    """Added to the environment of each turn."""
    options: dict[str, Any] = Field(default_factory=dict)
    """For Harbor's agents: what Harbor's own ``--agent-kwarg`` would set."""
    version: str | None = None
    """The version to install, for agents that are installed; None for the one it is known for."""
    effort: str | None = None
    """How hard the model shall think, in the agent's own words: high, ..."""
    cards: Annotated[tuple[str, ...], Field(strict=False)] = ()
    """Folders with cards of the operator's own."""
    resume_sessions: bool = False
    """Each step goes on with the session of the step before."""
    loop: LoopTable = LoopTable()
    trajectories: str | None = None
    """For the agent ``replay``: an ATIF file, or the run folder of an earlier episode."""


class BuildsTable(Table):
    """How images come to be."""

    force: bool = False
    """Build from the Dockerfile even where the task names a docker_image."""


class SandboxTable(Table):
    """Where ``main`` runs."""

    name: str = "docker"
    """docker: a Compose group on an engine. ``harbor:NAME``: a provider of Harbor's."""
    options: dict[str, Any] = Field(default_factory=dict)
    """For a provider: what Harbor's own ``--environment-kwarg`` would set."""


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

    env: dict[str, Value] = Field(default_factory=dict)
    """Added to the verifier's environment, over the task's."""
    exit_fatal: bool = False
    """A test.sh that exits with other than 0 is an error, whatever it wrote."""
    spare_processes: bool = False
    """What an agent left running when it ended by itself lives on, for tasks that ask for a
    running server. It may then tamper with grading; the result lists it."""
    reward_key: str | None = None
    """Which key counts where reward.json has several and none is called ``reward``."""


class ModelServerTable(Table):
    """A place where a model answers; see :class:`pytest_harbor.gateway.ModelServer`."""

    provider: Literal["http", "script", "replay", "local"] = "http"
    base_url: str | FromHost | None = None
    key: FromHost | None = None
    auth: Literal["auto", "bearer", "x-api-key", "x-goog-api-key"] = "auto"
    model: str | None = None
    extra_body: dict[str, Any] = Field(default_factory=dict)
    headers: dict[str, str | FromHost] = Field(default_factory=dict)
    timeout: Seconds = 600.0
    retries: Annotated[int, Field(ge=0)] = 4
    concurrency: Annotated[int, Field(ge=1)] | None = None
    keep_tokens: bool = False
    try_with: Annotated[TryWith, BeforeValidator(_off)] = "chat"
    rules: str | None = None
    recording: str | None = None


class PriceTable(Table):
    """What a model's tokens cost, in USD per million."""

    input: Usd
    output: Usd
    cached: Usd | None = None
    written: Usd | None = None


class LimitTable(Table):
    """What may be spent."""

    usd: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    tokens: Annotated[int, Field(gt=0)] | None = None


class BudgetTable(Table):
    """What model calls may cost."""

    episode: LimitTable = LimitTable()
    """All parties of one episode together, retries of it included."""
    run: LimitTable = LimitTable()
    """All episodes of all workers together."""


class Recipe(Table):
    """How to run tasks. Made by :func:`pytest_harbor.recipe.make_recipe`."""

    agent: AgentTable = AgentTable()
    attempts: Annotated[int, Field(ge=1)] = 1
    builds: BuildsTable = BuildsTable()
    sandbox: SandboxTable = SandboxTable()
    task_mcp_grants: Annotated[GrantMode, BeforeValidator(_off)] = "required"
    """Whether the task's MCP servers are given to the agent, and must work."""
    mcp_ready_seconds: Seconds = 15.0
    """How long a granted MCP server may take to answer its first handshake, in seconds."""
    compose_variables: dict[str, Value] = Field(default_factory=dict)
    """Names that the task's Compose file may interpolate; values are literals."""
    compose_overlays: Annotated[tuple[str, ...], Field(strict=False)] = ()
    """Compose files of the operator, laid over the task's; relative to the working directory."""
    model_servers: dict[ServerName, ModelServerTable] = Field(default_factory=dict)
    """Where models answer, by a name of the operator's choice."""
    prices: dict[str, PriceTable] = Field(default_factory=dict)
    """What tokens cost, by model."""
    budget: BudgetTable = BudgetTable()
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
            yield key, _shown(key, value), self.source(key)


def _shown(key: str, value: Any) -> Any:
    """A value for the reader: where it comes from may be read, what it is may be secret."""
    if is_in_named_table(key) and key.endswith(".headers"):
        return {name: each if isinstance(each, dict) else MASK for name, each in value.items()}
    return MASK if free_table(key) and not isinstance(value, dict) else value


def _flat(table: Mapping[str, Any], *place: str) -> Iterator[tuple[str, Any]]:
    for name, value in table.items():
        parts = (*place, name)
        if isinstance(value, dict) and value and not is_value(parts):
            yield from _flat(value, *parts)
        elif parts[0] not in NAMED_TABLES or value not in (None, {}):
            yield ".".join(parts), value


def known_keys() -> frozenset[str]:
    """Every dotted key that a recipe may hold; ``<name>`` stands for one of the operator's."""
    keys = {key for key, _ in _flat(Recipe().model_dump(by_alias=True, exclude={"sources"}))}
    tables = (("model_servers", ModelServerTable), ("prices", PriceTable))
    inner = {f"{table}.{NAME}.{key}" for table, model in tables for key in model.model_fields}
    return frozenset({*keys, *inner, *FREE_TABLES, *NAMED_TABLES})
