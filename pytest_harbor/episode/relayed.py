"""What the agent asked of its MCP servers, in its trajectory: by the relay's record.

The agent's own calls get what the relay knows of them; a call that the agent does not tell of gets
a step of its own, where it belongs in time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pytest_harbor.plain import plain, plain_text
from pytest_harbor.trajectory import Observation, Result, Step, ToolCall

if TYPE_CHECKING:
    from pytest_harbor.gateway import McpCall


def add_calls(story: list[Step], calls: Sequence[McpCall], *, is_utility: bool) -> None:
    """Find each recorded call among the agent's own, or put it where it belongs in time."""
    told: set[tuple[int, str]] = set()
    missing = []
    for call in sorted(calls, key=lambda call: call.started_at):
        found = next(_same(story, call, told), None)
        if found is None:
            missing.append(call)
        else:
            at, own = found
            told.add((at, own.tool_call_id))
            story[at] = _with_record(story[at], own, call)
    for number, call in enumerate(missing, 1):
        step = _call_step(f"relay-{number}", call, is_utility)
        story.insert(_place(story, call.started_at), step)


def _same(
    story: Sequence[Step], call: McpCall, told: set[tuple[int, str]]
) -> Iterator[tuple[int, ToolCall]]:
    for at, step in enumerate(story):
        for own in step.tool_calls or ():
            fits = _is_name_of(own.function_name, call) and _holds(own.arguments, call.arguments)
            if fits and (at, own.tool_call_id) not in told and not step.is_copied_context:
                yield at, own


def _is_name_of(name: str, call: McpCall) -> bool:
    """Whether an agent's name for a tool means the one called; they all write it in another way."""
    tool = call.tool or ""
    forms = {_simple(tool), _simple(f"{call.server}_{tool}")}
    return _simple(name) in forms or _simple(name).endswith(_simple(f"_{call.server}_{tool}"))


def _simple(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", name.lower())


def _holds(own: Mapping[str, Any], asked: Mapping[str, Any]) -> bool:
    """Whether the arguments are those; an agent may have more, for its own use."""
    return all(name in own and own[name] == value for name, value in asked.items())


def _with_record(step: Step, own: ToolCall, call: McpCall) -> Step:
    """The step with what the relay knows of a call: its time, and its answer if that is missing."""
    extra = {**(own.extra or {}), **_record(call)}
    calls = tuple(
        each.model_copy(update={"extra": extra}) if each.tool_call_id == own.tool_call_id else each
        for each in step.tool_calls or ()
    )
    results = step.observation.results if step.observation else ()
    if all(each.source_call_id != own.tool_call_id for each in results):
        results = (*results, _answer(own.tool_call_id, call))
    changes = {"tool_calls": calls, "observation": Observation(results=results)}
    return step.model_copy(update=changes)


def _call_step(name: str, call: McpCall, is_utility: bool) -> Step:
    arguments = plain(call.arguments)
    made = ToolCall(
        tool_call_id=name,
        function_name=plain_text(call.tool),
        arguments=arguments if isinstance(arguments, dict) else {},
        extra=_record(call),
    )
    return Step(
        step_id=1,
        source="agent",
        message="",
        timestamp=call.started_at,
        tool_calls=(made,),
        observation=Observation(results=(_answer(name, call),)),
        llm_call_count=0 if is_utility else None,
    )


def _record(call: McpCall) -> dict[str, Any]:
    return {"relay": {"server": call.server, "seconds": call.seconds, "ended": call.ended}}


def _answer(name: str, call: McpCall) -> Result:
    content = plain_text(call.reply or call.fault)
    failed = {"is_error": True} if not call.went_well else {}
    return Result(source_call_id=name, content=content, extra={"from": "relay", **failed})


def _place(story: Sequence[Step], started_at: str) -> int:
    """Before the first step that is later; steps of no known time stay where they are."""
    begun = _moment(started_at)
    for at, step in enumerate(story):
        if step.timestamp is not None and _moment(step.timestamp) > begun:
            return max(at, 1)
    return len(story)


def _moment(text: str) -> datetime:
    at = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)
