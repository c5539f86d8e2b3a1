"""qwen-code: its chat recording, in Gemini's form, and the stream that it prints.

At the turn limit the stream has no ``result`` line; the exit status is then all that is said.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from pytest_harbor.agents.readers.base import Reading
from pytest_harbor.agents.readers.draft import Story, exit_trouble
from pytest_harbor.agents.readers.gemini_parts import metrics, tell_parts, tell_responses
from pytest_harbor.agents.readers.lines import (
    Line,
    flat,
    logs_named,
    moment,
    read_lines,
    table,
    tables,
    the_one,
    turn_start,
)

_TURN_LIMIT: Final = 53


class QwenCodeReader:
    """Reads what ``qwen -o stream-json --chat-recording`` leaves."""

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
        path = the_one(logs_named(logs, "*.jsonl"), session, story.note)
        if path is not None:
            lines = read_lines(path, story.note)
            _tell(story, lines[turn_start(lines, _prompt, instruction) or 0 :])
            session = session or path.stem
        else:
            story.note("there is no chat recording (<session>.jsonl)")
        story.begin_with(instruction)
        return story.reading(error=_error(printed, exit_code), session=session)


READER = QwenCodeReader()


def _prompt(line: Line) -> str | None:
    if line.get("type") != "user" or line.get("provenance") not in (None, "real_user"):
        return None
    return flat(table(line, "message").get("parts"))


def _tell(story: Story, lines: Iterable[Line]) -> None:
    for line in lines:
        at = moment(line.get("timestamp"))
        parts = list(tables(table(line, "message").get("parts")))
        match line.get("type"):
            case "user":
                story.say("system" if _prompt(line) is None else "user", parts, at)
            case "assistant":
                draft = story.reply(str(line.get("uuid")), at, line.get("model"))
                usage = table(line, "usageMetadata")
                draft.metrics = metrics(
                    usage.get("promptTokenCount"),
                    usage.get("cachedContentTokenCount"),
                    usage.get("totalTokenCount"),
                )
                tell_parts(story, draft, parts)
            case "tool_result":
                tell_responses(story, parts, at, status=table(line, "toolCallResult").get("status"))
            case "system":
                _tell_error(story, table(line, "systemPayload", "uiEvent"), at)
            case kind:
                story.note(f"lines of type {kind} were passed over")


def _tell_error(story: Story, event: Line, at: str | None) -> None:
    """Of the CLI's own events, only errors of the provider are part of what happened."""
    if event.get("event.name") == "qwen-code.api_error":
        story.say("system", event.get("error_message"), at, api_error=event.get("status_code"))


def _error(printed: Iterable[Line], exit_code: int | None) -> str | None:
    results = [line for line in printed if line.get("type") == "result"]
    last = results[-1] if results else {}
    if last.get("is_error"):
        return flat(table(last, "error").get("message")) or str(last.get("subtype"))
    if exit_code == _TURN_LIMIT:
        return f"qwen exited with {exit_code}: its turn limit was reached"
    return exit_trouble("qwen", exit_code, is_done=bool(results))
