"""What an episode leaves: plain, frozen data that crosses processes and stays on disk.

Only JSON lives here: no exception, no live object, no secret. Paths are relative to the
episode's folder. Reports read nothing else.
"""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from pytest_harbor.episode.outcome import Outcome

SCHEMA_VERSION: Literal[1] = 1

Verdict = Literal["passed", "failed", "xfailed", "skipped", "error"]


class Record(BaseModel):
    """Base of all records: frozen, and strict about names."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="null")


class Fault(Record):
    """Why a step or an episode has no trustworthy end."""

    outcome: Outcome
    phase: str
    """Where it happened: "images", "start", "agent", "verify", "clean", ..."""
    message: str


class Interval(Record):
    """When something ran; seconds by the monotonic clock, so they survive a clock change."""

    started_at: datetime
    finished_at: datetime
    seconds: float


class TurnRecord(Record):
    """The agent's part of a step."""

    ran: Interval
    ended: Literal["exited", "timeout", "error"]
    exit_code: int | None = None
    message: str = ""
    """Why it ended, in words, when it did not simply exit with 0."""
    budget: str = ""
    """The sum behind the time limit, as the resolver printed it."""
    log: str | None = None
    trajectory: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    cost_usd: float | None = None
    session: str | None = None
    """The name by which a later step may go on with the agent's session."""
    extra: dict[str, JsonValue] = Field(default_factory=dict)


class GradeRecord(Record):
    """The verifier's part of a step."""

    ran: Interval
    exit_code: int | None = None
    rewards: dict[str, float] = Field(default_factory=dict)
    reward_file: str | None = None
    budget: str = ""
    log: str | None = None
    """test-stdout.txt, relative to the episode's folder."""


class ArtifactRecord(Record):
    """One line of an artifact manifest (harbor-format 11.1)."""

    source: str
    destination: str
    type: Literal["file", "directory"] | None = None
    status: Literal["ok", "failed", "empty", "skipped"]
    service: str = "main"
    exclude: tuple[str, ...] = ()
    note: str = ""


class Hygiene(Record):
    """What was found and removed around grading, so that nothing leaks into the next turn."""

    killed_before_grading: tuple[str, ...] = ()
    killed_after_grading: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    """Files that grading left in shared scratch folders; they are gone."""
    changed: tuple[str, ...] = ()
    """Other files that changed while grading; they are still there."""
    tampering: tuple[str, ...] = ()
    """Signs that something touched the verifier's ground."""


class GrantRecord(Record):
    """An MCP server that the agent was given, as far as it was seen to work."""

    name: str
    url: str | None = None
    mode: Literal["off", "optional", "required"]
    reachable: bool | None = None
    tools: tuple[str, ...] = ()
    note: str = ""
    calls: dict[str, int] | None = None
    """The agent's calls in this step by tool, tools that it left alone with 0; None where they do
    not pass the gateway, so that nobody counted them."""
    offered: tuple[str, ...] | None = None
    """Those of the tools that the agent's model was offered by name in this step, by the gateway;
    None where the agent asked no model there. One that is hidden behind a search is not among
    them."""
    errors: int = 0
    """Calls that got an error, or no answer."""
    wait_seconds: float = 0.0
    """Time in calls; calls at the same time count each."""


class PartyRecord(Record):
    """What one party (agent, user, judge, ...) asked of its model, by the gateway's ledger."""

    calls: int = 0
    failed: int = 0
    """Calls that got an error, or an answer that broke off."""
    refused: int = 0
    """Of ``failed``: because a budget was spent."""
    abandoned: int = 0
    """Calls that the party itself, or the end of the episode, broke off."""
    retries: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    seconds: float = 0.0
    """Time in calls; calls at the same time count each."""
    cost_usd: float | None = 0.0
    """None when it is not known; ``notes`` say why."""
    notes: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    """The models that answered, as they call themselves."""
    server: dict[str, JsonValue] = Field(default_factory=dict)
    """The model server's identity, without keys; not repeated in steps."""

    @property
    def tokens(self) -> int:
        """Input and output together."""
        return self.input_tokens + self.output_tokens


class StepResult(Record):
    """One step of an episode."""

    name: str
    index: int
    implicit: bool = False
    outcome: Outcome | None = None
    """None when the step was never reached."""
    reward: float | None = None
    """By our rules: 0 when a gate stopped the episode before it, null when nobody knows."""
    turn: TurnRecord | None = None
    grade: GradeRecord | None = None
    fault: Fault | None = None
    gate: str | None = None
    """Set when this step's min_reward stopped the episode: says which and why."""
    hygiene: Hygiene = Hygiene()
    grants: tuple[GrantRecord, ...] = ()
    parties: dict[str, PartyRecord] = Field(default_factory=dict)
    """Model calls that began in this step, by party."""
    artifacts: tuple[ArtifactRecord, ...] = ()
    warnings: tuple[str, ...] = ()
    ran: Interval | None = None
    verdict: Verdict = "skipped"
    """How pytest shows this step, by the pass rule."""
    verdict_reason: str = ""


class AgentIdentity(Record):
    """Who acted."""

    name: str
    version: str = ""
    model: str | None = None
    effort: str | None = None
    """How hard the model was asked to think."""


class RecipeValue(Record):
    """One recipe key as it was in force, with where it came from; secrets are masked."""

    key: str
    value: JsonValue
    source: str


class EpisodeResult(Record):
    """One finished attempt at one task."""

    schema_version: Literal[1] = SCHEMA_VERSION
    episode: str
    """Name of the episode's folder, unique in its job."""
    key: str
    """What the folder name was derived from: the node id under pytest."""
    task: str
    task_path: str
    task_digest: str = ""
    part_digests: dict[str, str] = Field(default_factory=dict)
    """Digests of the task's parts: tests, environment/user-server, ..."""
    network_mode: str = ""
    """What main may reach: ``public``."""
    attempt: int = 1
    outcome: Outcome
    reward: float | None = None
    reward_as_harbor: float | None = None
    rewards: dict[str, float] = Field(default_factory=dict)
    steps: tuple[StepResult, ...] = ()
    steps_total: int = 0
    reward_strategy: Literal["mean", "final"] = "mean"
    threshold: float = 1.0
    fault: Fault | None = None
    agent: AgentIdentity | None = None
    tokens: int | None = None
    """The agent's; what other parties took is in ``parties``."""
    cost_usd: float | None = None
    parties: dict[str, PartyRecord] = Field(default_factory=dict)
    """Model calls of all steps by party, those of tries that were given up included."""
    images: dict[str, str] = Field(default_factory=dict)
    """Image id of every service of the group."""
    recipe: tuple[RecipeValue, ...] = ()
    host_names_asked: tuple[str, ...] = ()
    """Names of host variables that the task asked for."""
    phases: dict[str, Interval] = Field(default_factory=dict)
    ran: Interval
    warnings: tuple[str, ...] = ()
    verdict: Verdict = "error"
    verdict_reason: str = ""

    @property
    def steps_run(self) -> int:
        """How many steps were entered."""
        return sum(step.ran is not None for step in self.steps)

    @property
    def verifier_exit(self) -> int | None:
        """Exit status of the last verifier that ran."""
        ran = [step.grade.exit_code for step in self.steps if step.grade is not None]
        return ran[-1] if ran else None

    def plain(self) -> dict[str, Any]:
        """The result as plain JSON data."""
        data: dict[str, Any] = self.model_dump(mode="json")
        return data

    @classmethod
    def read(cls, folder: Path) -> Self | None:
        """Load the result of an episode folder; None when it has none or is of another schema."""
        try:
            document = json.loads((folder / "result.json").read_text(encoding="utf-8"))
            return cls.model_validate(document["pytest_harbor"])
        except (OSError, ValueError, KeyError, TypeError):
            return None
