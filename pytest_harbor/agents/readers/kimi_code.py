"""kimi-code: the wire file of its main agent; what it prints has neither tokens nor thoughts."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from pytest_harbor.agents.readers.base import Reading
from pytest_harbor.agents.readers.draft import Draft, Story, exit_trouble
from pytest_harbor.agents.readers.lines import (
    Line,
    flat,
    logs_named,
    moment,
    number,
    read_lines,
    table,
    the_one,
    total,
    turn_start,
)
from pytest_harbor.trajectory import Metrics

_INPUTS: Final = ("inputOther", "inputCacheRead", "inputCacheCreation")
_MAIN: Final = "main"


class KimiCodeReader:
    """Reads what ``kimi --output-format stream-json`` leaves."""

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
        path = _find(logs, session, story)
        lines = read_lines(path, story.note) if path is not None else []
        lines = lines[turn_start(lines, _prompt, instruction) or 0 :]
        if path is None:
            story.note("there is no wire file (agents/main/wire.jsonl)")
        for line in lines:
            _tell(story, line, model)
        story.begin_with(instruction)
        session = session or (path.parents[2].name if path is not None else None)
        return story.reading(error=_error(lines, exit_code), session=session)


READER = KimiCodeReader()


def _find(logs: Path, session: str | None, story: Story) -> Path | None:
    paths = logs_named(logs, "wire.jsonl")
    main = [path for path in paths if path.parent.name == _MAIN]
    own = [path for path in main if session and session in path.parts]
    if len(main) < len(paths):
        story.note(f"{len(paths) - len(main)} logs of sub-agents were not read")
    return the_one(own or main, None, story.note)


def _prompt(line: Line) -> str | None:
    is_prompt = line.get("type") == "turn.prompt"
    return flat(line.get("input")) if is_prompt else None


def _tell(story: Story, line: Line, model: str | None) -> None:
    at = moment(line.get("time"))
    match line.get("type"):
        case "turn.prompt":
            story.say("user", line.get("input"), at)
        case "context.append_message":
            message = table(line, "message")
            kind = table(message, "origin").get("kind")
            if kind != "user":
                story.say("system", message.get("content"), at, origin=kind)
        case "context.append_loop_event":
            _tell_event(story, table(line, "event"), at, model)
        case "turn.step.interrupted":
            story.say("system", line.get("message"), at, reason=line.get("reason"))


def _tell_event(story: Story, event: Line, at: str | None, model: str | None) -> None:
    def answer(key: str) -> Draft:
        return story.reply(str(event.get(key)), at, model)

    match event.get("type"):
        case "content.part":
            part = table(event, "part")
            if part.get("type") == "think":
                answer("stepUuid").thoughts.append(flat(part.get("think")))
            else:
                answer("stepUuid").text.append(flat([part]))
        case "tool.call":
            call, name = str(event.get("toolCallId")), str(event.get("name"))
            story.call(answer("stepUuid"), call, name, event.get("args"))
        case "tool.result":
            result = table(event, "result")
            failed = result.get("isError") or None
            story.result(str(event.get("toolCallId")), result.get("output"), at, is_error=failed)
        case "step.end" if table(event, "usage"):
            usage = table(event, "usage")
            answer("uuid").metrics = Metrics(
                prompt_tokens=total(number(usage.get(key)) for key in _INPUTS),
                completion_tokens=number(usage.get("output")),
                cached_tokens=number(usage.get("inputCacheRead")),
            )


def _error(lines: Iterable[Line], exit_code: int | None) -> str | None:
    ends = [line for line in lines if line.get("type") == "turn.ended"]
    last = ends[-1] if ends else {}
    if last.get("reason") not in (None, "completed"):
        said = flat(table(last, "error").get("message"))
        return f"{last['reason']}: {said}" if said else f"the turn ended as {last['reason']}"
    return exit_trouble("kimi", exit_code, is_done=bool(ends))
