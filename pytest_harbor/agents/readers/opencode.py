"""opencode: the session as ``opencode export`` writes it, else the stream that it prints.

The export holds the whole session; the stream holds one turn, without its prompt.
"""

from __future__ import annotations

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

_SILENT: Final = frozenset(
    {"step-start", "step-finish", "snapshot", "patch", "compaction", "agent"}
)
"""Parts that are marks of the session, nothing that was said or done."""


class OpencodeReader:
    """Reads what ``opencode run --format json`` leaves, and ``opencode export``."""

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
        session = next((str(x["sessionID"]) for x in printed if x.get("sessionID")), None)
        path = the_one(logs_named(logs, "*.json"), session, story.note)
        exported = read_json(path, story.note) if path is not None else {}
        messages = list(tables(exported.get("messages")))
        messages = messages[turn_start(messages, _prompt, instruction) or 0 :]
        told = messages or _from_stream(printed, model)
        for message in told:
            _tell(story, message)
        if not told:
            story.note("there is no export of the session, and no message in the printed stream")
        story.begin_with(instruction)
        session = session or table(exported, "info").get("id")
        return story.reading(error=_error(printed, messages, exit_code), session=session)


READER = OpencodeReader()


def _prompt(message: Line) -> str | None:
    if table(message, "info").get("role") != "user":
        return None
    return flat([part for part in tables(message.get("parts")) if not part.get("synthetic")])


def _from_stream(printed: Iterable[Line], model: str | None) -> list[Line]:
    """The messages that the parts in the stream belong to; it does not name their model."""
    known = {"role": "assistant", "modelID": model}
    messages: dict[str, Line] = {}
    for line in printed:
        part = table(line, "part")
        if part:
            name = str(part.get("messageID"))
            info = {"id": name, **known, "time": {"created": line.get("timestamp")}}
            message = messages.setdefault(name, {"info": info, "parts": []})
            message["parts"].append(part)
            if part.get("type") == "step-finish":
                info = message["info"]
                info["tokens"], info["cost"] = part.get("tokens"), part.get("cost")
    return list(messages.values())


def _tell(story: Story, message: Line) -> None:
    info, parts = table(message, "info"), list(tables(message.get("parts")))
    at = moment(table(info, "time").get("created"))
    if info.get("role") == "user":
        for part in parts:
            story.say("system" if part.get("synthetic") else "user", [part], at)
        return
    error = table(info, "error")
    if error:
        story.say("system", _words(error), at, error=error.get("name"))
    if parts or not error:
        draft = story.reply(str(info.get("id")), at, info.get("modelID"))
        draft.effort = info.get("variant")
        draft.metrics = _metrics(info)
        for part in parts:
            _tell_part(story, draft, part)


def _tell_part(story: Story, draft: Draft, part: Line) -> None:
    match part.get("type"):
        case "text":
            draft.text.append(flat(part.get("text")))
        case "reasoning":
            draft.thoughts.append(flat(part.get("text")))
        case "tool":
            _tell_tool(story, draft, part)
        case kind if str(kind) not in _SILENT:
            draft.text.append(flat(part))
            story.note(f"a part of type {kind} was kept as text")


def _tell_tool(story: Story, draft: Draft, part: Line) -> None:
    state, call = table(part, "state"), str(part.get("callID"))
    story.call(draft, call, str(part.get("tool")), state.get("input"))
    status = state.get("status")
    if status in ("completed", "error"):
        content = state.get("output") if status == "completed" else state.get("error")
        exit_code = table(state, "metadata").get("exit")
        failed = True if status == "error" else None
        story.result(call, content, is_error=failed, exit_code=exit_code)
    else:
        story.note(f"a call of {part.get('tool')} was not finished ({status})")


def _metrics(info: Line) -> Metrics | None:
    tokens = table(info, "tokens")
    if not tokens:
        return None
    cache = table(tokens, "cache")
    inputs = (tokens.get("input"), cache.get("read"), cache.get("write"))
    return Metrics(
        prompt_tokens=total(map(number, inputs)),
        completion_tokens=total(map(number, (tokens.get("output"), tokens.get("reasoning")))),
        cached_tokens=number(cache.get("read")),
        cost_usd=amount(info.get("cost")),
    )


def _error(printed: list[Line], messages: list[Line], exit_code: int | None) -> str | None:
    said = [table(line, "error") for line in printed if line.get("type") == "error"]
    if not said:
        last = table(messages[-1] if messages else {}, "info", "error")
        said = [last] if last else []
    if said:
        return _words(said[-1])
    finished = [table(line, "part") for line in printed if line.get("type") == "step_finish"]
    is_done = bool(finished) and finished[-1].get("reason") not in (None, "tool-calls")
    return exit_trouble("opencode", exit_code, is_done=is_done)


def _words(error: Line) -> str:
    data = table(error, "data")
    status = data.get("statusCode")
    return f"{error.get('name')}{f' {status}' if status else ''}: {flat(data.get('message'))}"
