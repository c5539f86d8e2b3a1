"""ATIF trajectories (harbor-format 10.5): what an agent did, as data that other tools can load.

Whatever passes the models here also passes Harbor's own. Data of unknown origin go through
:func:`pytest_harbor.plain.plain` first: half a surrogate pair cannot be written.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveInt,
    ValidationError,
    model_validator,
)

from pytest_harbor.errors import TrajectoryError

VERSION: Final = "ATIF-v1.8"
"""What is written; older versions are read."""

Version = Literal[
    "ATIF-v1.0",
    "ATIF-v1.1",
    "ATIF-v1.2",
    "ATIF-v1.3",
    "ATIF-v1.4",
    "ATIF-v1.5",
    "ATIF-v1.6",
    "ATIF-v1.7",
    "ATIF-v1.8",
]
Source = Literal["system", "user", "agent"]
Image = Literal["image/jpeg", "image/png", "image/gif", "image/webp"]
Audio = Literal[
    "audio/wav",
    "audio/mpeg",
    "audio/mp4",
    "audio/aac",
    "audio/ogg",
    "audio/flac",
    "audio/webm",
    "audio/aiff",
]
Extra = dict[str, JsonValue]

_OF_AGENTS = ("model_name", "reasoning_effort", "reasoning_content", "tool_calls", "metrics")
_OF_MODELS = ("metrics", "reasoning_content")


def _iso(text: str) -> str:
    datetime.fromisoformat(text.replace("Z", "+00:00"))
    return text


Moment = Annotated[str, AfterValidator(_iso)]
"""ISO 8601."""


class Node(BaseModel):
    """Base of all parts of a trajectory: frozen, and no key that ATIF does not know."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        ser_json_inf_nan="null",
        protected_namespaces=(),
    )


class Media(Node):
    """Where an image or a sound lies: a path or a URL."""

    media_type: Image | Audio
    path: str
    duration_sec: NonNegativeFloat | None = None

    @model_validator(mode="after")
    def _only_sounds_last(self) -> Self:
        if self.duration_sec is not None and not self.media_type.startswith("audio/"):
            raise ValueError("duration_sec is for audio")
        return self


class Part(Node):
    """A piece of a message: text, or media by reference."""

    type: Literal["text", "image", "audio"]
    text: str | None = None
    source: Media | None = None

    @model_validator(mode="after")
    def _has_what_its_type_says(self) -> Self:
        if self.type == "text":
            if self.text is None or self.source is not None:
                raise ValueError("a text part has text and no source")
        elif self.source is None or self.text is not None:
            raise ValueError(f"a part of type {self.type} has a source and no text")
        elif not self.source.media_type.startswith(f"{self.type}/"):
            raise ValueError(f"{self.source.media_type} is not of type {self.type}")
        return self


Content = str | tuple[Part, ...]


class ToolCall(Node):
    """A tool that the agent used."""

    tool_call_id: str
    function_name: str
    arguments: dict[str, JsonValue]
    extra: Extra | None = None


class SubagentRef(Node):
    """Where the trajectory of a sub-agent is."""

    trajectory_id: str | None = None
    session_id: str | None = None
    trajectory_path: str | None = None
    extra: Extra | None = None

    @model_validator(mode="after")
    def _leads_somewhere(self) -> Self:
        if self.trajectory_id is None and self.trajectory_path is None:
            raise ValueError("trajectory_id or trajectory_path is required")
        return self


class Result(Node):
    """What came of a tool call, or of something that was none."""

    source_call_id: str | None = None
    content: Content | None = None
    subagent_trajectory_ref: tuple[SubagentRef, ...] | None = None
    extra: Extra | None = None


class Observation(Node):
    """What the agent got to see after it acted."""

    results: tuple[Result, ...]


class Metrics(Node):
    """What one step took of the model. Prompt tokens include cached ones."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    cost_usd: float | None = None
    prompt_token_ids: tuple[int, ...] | None = None
    completion_token_ids: tuple[int, ...] | None = None
    logprobs: tuple[float, ...] | None = None
    extra: Extra | None = None


class FinalMetrics(Node):
    """What all steps took together."""

    total_prompt_tokens: int | None = None
    total_completion_tokens: int | None = None
    total_cached_tokens: int | None = None
    total_cost_usd: float | None = None
    total_steps: NonNegativeInt | None = None
    extra: Extra | None = None


class Step(Node):
    """One message, with what was done along with it."""

    step_id: PositiveInt
    source: Source
    message: Content
    timestamp: Moment | None = None
    model_name: str | None = None
    reasoning_effort: str | float | None = None
    reasoning_content: str | None = None
    tool_calls: tuple[ToolCall, ...] | None = None
    observation: Observation | None = None
    metrics: Metrics | None = None
    is_copied_context: bool | None = None
    llm_call_count: NonNegativeInt | None = None
    extra: Extra | None = None

    @model_validator(mode="after")
    def _has_only_what_its_source_may_have(self) -> Self:
        if self.source != "agent":
            self._lacks(_OF_AGENTS, f"a step of source {self.source}")
        elif self.llm_call_count == 0:
            self._lacks(_OF_MODELS, "a step of no model call")
        return self

    @model_validator(mode="after")
    def _answers_its_own_calls(self) -> Self:
        known = {call.tool_call_id for call in self.tool_calls or ()}
        for result in self.observation.results if self.observation else ():
            if result.source_call_id is not None and result.source_call_id not in known:
                raise ValueError(
                    f"source_call_id {result.source_call_id!r} is no tool call of this step"
                )
        return self

    def _lacks(self, names: Iterable[str], what: str) -> None:
        found = [name for name in names if getattr(self, name) is not None]
        if found:
            raise ValueError(f"{what} has no {', '.join(found)}")


class Actor(Node):
    """Who acted."""

    name: str
    version: str
    model_name: str | None = None
    tool_definitions: tuple[dict[str, JsonValue], ...] | None = None
    extra: Extra | None = None


class Trajectory(Node):
    """A whole trajectory; its steps are numbered from 1."""

    schema_version: Version = VERSION
    session_id: str | None = None
    trajectory_id: str | None = None
    agent: Actor
    steps: Annotated[tuple[Step, ...], Field(min_length=1)]
    notes: str | None = None
    final_metrics: FinalMetrics | None = None
    continued_trajectory_ref: str | None = None
    extra: Extra | None = None
    subagent_trajectories: tuple[Trajectory, ...] | None = None

    @model_validator(mode="after")
    def _counts_from_one(self) -> Self:
        for expected, step in enumerate(self.steps, 1):
            if step.step_id != expected:
                raise ValueError(f"step_id {step.step_id} stands where {expected} belongs")
        return self

    @model_validator(mode="after")
    def _names_its_subagents_apart(self) -> Self:
        names = [each.trajectory_id for each in self.subagent_trajectories or ()]
        if None in names or len(set(names)) < len(names):
            raise ValueError("each of subagent_trajectories needs a trajectory_id of its own")
        return self


def numbered(steps: Sequence[Step]) -> tuple[Step, ...]:
    """The steps with ids from 1 on."""
    return tuple(
        step.model_copy(update={"step_id": number}) for number, step in enumerate(steps, 1)
    )


def load(path: Path) -> Trajectory:
    """Read a trajectory of any known version.

    Raises:
        TrajectoryError: the file cannot be read, or is no ATIF trajectory.
    """
    try:
        return Trajectory.model_validate_json(path.read_bytes())
    except OSError as error:
        raise TrajectoryError(f"{path} cannot be read: {error.strerror}") from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(key) for key in first["loc"]) or "the document"
        raise TrajectoryError(
            f"{path} is no ATIF trajectory ({VERSION} or older): {where}: {first['msg']}"
        ) from error


def dump(trajectory: Trajectory) -> str:
    """The trajectory as JSON text, without what is not known."""
    return trajectory.model_dump_json(exclude_none=True, indent=2) + "\n"


def as_data(trajectory: Trajectory) -> dict[str, Any]:
    """The same as plain data."""
    data: dict[str, Any] = trajectory.model_dump(mode="json", exclude_none=True)
    return data
