"""A trajectory in the making: messages, calls and results as they come out of a log.

It sees to it that what comes out is valid ATIF: an answer stands with its call, and what has no
place of its own is kept as a step of the system, never dropped.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

from pytest_harbor.agents.readers.base import Reading
from pytest_harbor.agents.readers.lines import bounded, flat, total
from pytest_harbor.plain import plain, plain_text
from pytest_harbor.trajectory import (
    Actor,
    Extra,
    FinalMetrics,
    Metrics,
    Observation,
    Result,
    Source,
    Step,
    SubagentRef,
    ToolCall,
    Trajectory,
)

TOTAL_LIMIT: Final = 4_000_000
"""Characters that all texts of a turn may have; an agent's log above 8 MB would be cut apart."""
_SHORTER: Final = (20_000, 2_000, 200)
"""What is kept of each text when there are too many, the first that suffices."""


@dataclass
class Draft:
    """One message in the making."""

    source: Source
    at: str | None = None
    model: Any = None
    effort: Any = None
    text: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)
    metrics: Metrics | None = None
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Characters of all its texts."""
        texts = [*self.text, *self.thoughts, *(str(each.content) for each in self.results)]
        return sum(map(len, texts)) + sum(len(str(call.arguments)) for call in self.calls)

    def shorten(self, limit: int) -> None:
        """Keep beginning and end of each text."""
        self.text = [bounded(text, limit) for text in self.text]
        self.thoughts = [bounded(text, limit) for text in self.thoughts]
        self.results = [
            each.model_copy(update={"content": bounded(str(each.content or ""), limit)})
            for each in self.results
        ]
        self.calls = [
            call.model_copy(update={"arguments": _shorter(call.arguments, limit)})
            for call in self.calls
        ]

    def step(self, number: int) -> Step:
        """The finished step."""
        acts = self.source == "agent"
        return Step(
            step_id=number,
            source=self.source,
            message="\n".join(filter(None, self.text)),
            timestamp=self.at,
            model_name=_word(self.model) if acts else None,
            reasoning_effort=_word(self.effort) if acts else None,
            reasoning_content="\n".join(filter(None, self.thoughts)) or None,
            tool_calls=tuple(self.calls) or None,
            observation=Observation(results=tuple(self.results)) if self.results else None,
            metrics=self.metrics,
            extra=as_extra(self.extra),
        )


class Story:
    """What happened in a turn, as far as it was read."""

    def __init__(self, name: str, version: str, model: str | None) -> None:
        self._actor = Actor(name=plain_text(name), version=plain_text(version), model_name=model)
        self._drafts: list[Draft] = []
        self._caller: dict[str, Draft] = {}
        self._replies: dict[str, Draft] = {}
        self._notes: dict[str, None] = {}
        self.subagents: list[Trajectory] = []
        """Trajectories of sub-agents, each with an id of its own."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What could not be read or kept."""
        return tuple(self._notes)

    def note(self, text: str) -> None:
        """Note what could not be read or kept; the same is said once."""
        self._notes[plain_text(text)] = None

    def say(self, source: Source, content: Any, at: str | None = None, **extra: Any) -> Draft:
        """Add a message of somebody's."""
        draft = Draft(source, at, text=[flat(content)], extra=extra)
        self._drafts.append(draft)
        return draft

    def reply(self, key: str, at: str | None = None, model: Any = None) -> Draft:
        """The agent's message of that key; a new one at its first mention."""
        if key not in self._replies:
            self._replies[key] = Draft("agent", at, model)
            self._drafts.append(self._replies[key])
        return self._replies[key]

    def call(self, draft: Draft, call_id: str, name: str, arguments: Any, **extra: Any) -> None:
        """Add a tool call; an id that was there before is the same call, told once more."""
        if call_id not in self._caller:
            self._caller[call_id] = draft
            draft.calls.append(
                ToolCall(
                    tool_call_id=plain_text(call_id),
                    function_name=plain_text(name),
                    arguments=as_arguments(arguments),
                    extra=as_extra(extra),
                )
            )

    def caller(self, call_id: str) -> Draft | None:
        """The message that made a call; None when there is no such call."""
        return self._caller.get(call_id)

    def result(
        self,
        call_id: str,
        content: Any,
        at: str | None = None,
        **extra: Any,
    ) -> None:
        """Add what came of a call. A second result of a call replaces the first, not its extra."""
        draft = self._caller.get(call_id)
        if draft is None:
            self.note(f"there is a result of a call {call_id} that is not in the log")
            self.say("system", content, at, result_of=call_id, **extra)
            return
        name = plain_text(call_id)
        before = [each for each in draft.results if each.source_call_id == name]
        known = {key: value for each in before for key, value in (each.extra or {}).items()}
        content, further = flat(content), as_extra({**known, **extra})
        result = Result(source_call_id=name, content=content, extra=further)
        draft.results = [each for each in draft.results if each not in before] + [result]

    def refer(self, call_id: str, subagent: str) -> None:
        """Say that a call was a sub-agent's work; it has a trajectory of that id."""
        draft = self._caller[call_id]
        own = [each for each in draft.results if each.source_call_id == call_id]
        result = own[-1] if own else Result(source_call_id=call_id)
        refs = (SubagentRef(trajectory_id=subagent),)
        linked = result.model_copy(update={"subagent_trajectory_ref": refs})
        draft.results = [each for each in draft.results if each not in own] + [linked]

    def begin_with(self, instruction: str) -> None:
        """Put the instruction first, where the log does not have it."""
        if instruction and not any(draft.source == "user" for draft in self._drafts):
            self._drafts.insert(0, Draft("user", text=[flat(instruction)]))

    def trajectory(
        self, session: str | None = None, final: FinalMetrics | None = None, **ids: Any
    ) -> Trajectory | None:
        """The finished trajectory; None when nothing happened."""
        if not self._drafts:
            return None
        self._fit()
        return Trajectory(
            session_id=session,
            agent=self._actor,
            steps=tuple(draft.step(number) for number, draft in enumerate(self._drafts, 1)),
            notes="\n".join(self._notes) or None,
            final_metrics=final,
            subagent_trajectories=tuple(self.subagents) or None,
            **ids,
        )

    def _fit(self) -> None:
        for limit in _SHORTER:
            if sum(draft.size for draft in self._drafts) <= TOTAL_LIMIT:
                return
            self.note(f"there is much text; {limit} characters of each were kept")
            for draft in self._drafts:
                draft.shorten(limit)

    def reading(
        self,
        *,
        error: str | None,
        session: Any = None,
        metrics: Metrics | None = None,
    ) -> Reading:
        """What a reader gives back. ``metrics`` are the CLI's sums; None: add up the messages."""
        session = _word(session)
        used = metrics or add_up(draft.metrics for draft in self._drafts)
        final = FinalMetrics(
            total_prompt_tokens=used.prompt_tokens,
            total_completion_tokens=used.completion_tokens,
            total_cached_tokens=used.cached_tokens,
            total_cost_usd=used.cost_usd,
            total_steps=len(self._drafts),
        )
        return Reading(
            trajectory=self.trajectory(session, final),
            ended="exited" if error is None else "error",
            message=plain_text(error or ""),
            session=session,
            input_tokens=used.prompt_tokens,
            output_tokens=used.completion_tokens,
            cached_tokens=used.cached_tokens,
            cost_usd=used.cost_usd,
            notes=self.notes,
        )


def add_up(each: Any) -> Metrics:
    """The sums of metrics, as far as they are known."""
    known = [metrics for metrics in each if metrics is not None]
    costs = [metrics.cost_usd for metrics in known if metrics.cost_usd is not None]
    return Metrics(
        prompt_tokens=total(metrics.prompt_tokens for metrics in known),
        completion_tokens=total(metrics.completion_tokens for metrics in known),
        cached_tokens=total(metrics.cached_tokens for metrics in known),
        cost_usd=sum(costs) if costs else None,
    )


def exit_trouble(name: str, exit_code: int | None, *, is_done: bool) -> str | None:
    """What is wrong by the exit status alone; ``is_done``: the log says that the turn ended."""
    if exit_code is None:
        return None if is_done else f"{name} was ended before its turn was over"
    if exit_code != 0:
        return f"{name} exited with {exit_code}"
    return None


def _shorter(data: Any, limit: int) -> Any:
    """Data with shorter texts in it."""
    if isinstance(data, str):
        return bounded(data, limit)
    if isinstance(data, dict):
        return {key: _shorter(each, limit) for key, each in data.items()}
    return [_shorter(each, limit) for each in data] if isinstance(data, list) else data


def _word(value: Any) -> str | None:
    """A name from a log, if it is one."""
    return plain_text(value) if isinstance(value, str) and value else None


def as_arguments(value: Any) -> dict[str, Any]:
    """The arguments of a call as an object: also those that come as JSON text, or as plain text."""
    if isinstance(value, str):
        try:
            found = json.loads(value) if value else {}
        except (ValueError, RecursionError):
            found = None
        value = found if isinstance(found, dict) else {"input": value}
    if value is None:
        return {}
    data = plain(value)
    return data if isinstance(data, dict) else {"input": data}


def as_extra(value: Mapping[str, Any]) -> Extra | None:
    """Further keys as plain data, without those that are not known; None when none is left."""
    known = {key: each for key, each in value.items() if each is not None}
    return cast("Extra", plain(known)) if known else None
