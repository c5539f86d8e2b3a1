"""claude-code: its session log, one JSON line per content block, and the stream that it prints.

Lines with the same ``message.id`` are one answer. Sub-agents have logs of their own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from pytest_harbor.agents.readers.base import Reading
from pytest_harbor.agents.readers.draft import Draft, Story, exit_trouble
from pytest_harbor.agents.readers.lines import (
    Line,
    amount,
    flat,
    logs_named,
    moment,
    number,
    read_json,
    read_lines,
    table,
    tables,
    the_one,
    total,
    turn_start,
)
from pytest_harbor.trajectory import Metrics

_INPUTS: Final = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
_SUBAGENT: Final = "agent-"


class ClaudeCodeReader:
    """Reads what ``claude -p --output-format stream-json`` leaves."""

    def read(
        self,
        logs: Path,
        *,
        stdout: Path,
        exit_code: int | None,
        instruction: str,
        agent_name: str,
        agent_version: str,
        model: str | None,
    ) -> Reading:
        """Read one turn."""
        story = Story(agent_name, agent_version, model)
        printed = read_lines(stdout, story.note)
        session = next((str(x["session_id"]) for x in printed if x.get("session_id")), None)
        paths = logs_named(logs, "*.jsonl")
        main = [path for path in paths if not path.name.startswith(_SUBAGENT)]
        path = the_one(main, session, story.note)
        spent: float | None = None
        if path is not None:
            lines = read_lines(path, story.note)
            begin = turn_start(lines, _prompt, instruction) or 0
            spent = _cost_so_far(lines[:begin])
            _tell(story, lines[begin:])
            session = session or path.stem
            under = [path for path in paths if path.name.startswith(_SUBAGENT)]
            _tell_of_subagents(story, under, agent_name, agent_version)
        else:
            story.note("there is no session log (<session>.jsonl)")
            _tell(story, [line for line in printed if not line.get("parent_tool_use_id")])
        story.begin_with(instruction)
        last = _result(printed)
        return story.reading(
            error=_error(last, exit_code), session=session, metrics=_sums(last, spent)
        )


READER = ClaudeCodeReader()


def _prompt(line: Line) -> str | None:
    content = table(line, "message").get("content")
    if line.get("type") != "user" or line.get("isMeta") or line.get("isSidechain"):
        return None
    if any(block.get("type") == "tool_result" for block in tables(content)):
        return None
    return flat(content)


def _tell(story: Story, lines: Iterable[Line]) -> None:
    for line in lines:
        message, at = table(line, "message"), moment(line.get("timestamp"))
        content = message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if line.get("isApiErrorMessage"):
            story.say("system", content, at, api_error=line.get("apiErrorStatus"))
        elif line.get("type") == "assistant":
            draft = story.reply(str(message.get("id")), at, message.get("model"))
            draft.effort = line.get("effort")
            draft.metrics = _metrics(table(message, "usage"))
            for block in tables(blocks):
                _tell_block(story, draft, block)
        elif line.get("type") == "user":
            _tell_user(story, line, list(tables(blocks)), at)


def _tell_block(story: Story, draft: Draft, block: Line) -> None:
    match block.get("type"):
        case "text":
            draft.text.append(flat(block.get("text")))
        case "thinking":
            draft.thoughts.append(flat(block.get("thinking")))
        case "tool_use" | "server_tool_use":
            name = str(block.get("name"))
            story.call(draft, str(block.get("id")), name, block.get("input"))
        case "redacted_thinking":
            story.note("some reasoning is encrypted")
        case kind:
            draft.text.append(flat(block))
            story.note(f"a block of type {kind} was kept as text")


def _tell_user(story: Story, line: Line, blocks: list[Line], at: str | None) -> None:
    said = [block for block in blocks if block.get("type") != "tool_result"]
    for block in blocks:
        if block.get("type") == "tool_result":
            error = block.get("is_error") or None
            story.result(str(block.get("tool_use_id")), block.get("content"), at, is_error=error)
    if said:
        is_meta = line.get("isMeta") or line.get("isCompactSummary")
        story.say("system" if is_meta else "user", said, at)


def _tell_of_subagents(story: Story, paths: list[Path], name: str, version: str) -> None:
    """Embed the logs of sub-agents that this turn called, also by way of others."""
    waiting = {path: read_json(path.with_suffix(".meta.json"), story.note) for path in paths}
    callers, subs = [story], dict[str, Story]()
    for caller in callers:
        for path, meta in list(waiting.items()):
            call = str(meta.get("toolUseId"))
            if caller.caller(call) is None:
                continue
            del waiting[path]
            own = path.stem.removeprefix(_SUBAGENT)
            sub = Story(f"{name}/{meta.get('agentType', 'agent')}", version, None)
            _tell(sub, read_lines(path, story.note))
            callers.append(sub)
            caller.refer(call, own)
            subs[own] = sub
    found = (sub.trajectory(trajectory_id=own) for own, sub in subs.items())
    story.subagents += [each for each in found if each is not None]


def _metrics(usage: Line) -> Metrics:
    return Metrics(
        prompt_tokens=total(number(usage.get(key)) for key in _INPUTS),
        completion_tokens=number(usage.get("output_tokens")),
        cached_tokens=number(usage.get("cache_read_input_tokens")),
    )


def _result(printed: Iterable[Line]) -> Line:
    results = [line for line in printed if line.get("type") == "result"]
    return results[-1] if results else {}


def _cost_so_far(lines: Iterable[Line]) -> float | None:
    """What the session had cost before this turn: its sum goes on counting."""
    costs = [amount(line.get("totalCostUSD")) for line in lines if line.get("type") == "cost-state"]
    return costs[-1] if costs else 0.0


def _sums(result: Line, spent: float | None) -> Metrics | None:
    usage, cost = table(result, "usage"), amount(result.get("total_cost_usd"))
    if not usage:
        return None
    own = round(cost - spent, 9) if cost is not None and spent is not None else None
    return _metrics(usage).model_copy(update={"cost_usd": own})


def _error(result: Line, exit_code: int | None) -> str | None:
    """``is_error`` tells; ``subtype`` says success also when the provider refused."""
    if result.get("is_error"):
        said = flat(result.get("result")) or json.dumps(result.get("errors") or "")
        kind = result.get("subtype")
        return said if kind == "success" else f"{kind}: {said}"
    return exit_trouble("claude", exit_code, is_done=bool(result))
