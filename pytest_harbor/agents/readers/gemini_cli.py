"""gemini-cli: its chat file, in which a message is written again when more is known of it.

A resumed session writes to the same file, after its earlier messages in another form. The exit
status of a model error is the HTTP status modulo 256.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from pytest_harbor.agents.readers.base import Reading
from pytest_harbor.agents.readers.draft import Draft, Story, exit_trouble
from pytest_harbor.agents.readers.gemini_parts import (
    metrics,
    tell_call,
    tell_parts,
    tell_responses,
)
from pytest_harbor.agents.readers.lines import (
    Line,
    flat,
    logs_named,
    moment,
    number,
    read_lines,
    table,
    tables,
    the_one,
    total,
    turn_start,
)

_SHOWN_OF_ID: Final = 8
"""Characters of the session's id that stand in the file's name."""


class GeminiCliReader:
    """Reads what ``gemini -o stream-json`` leaves."""

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
        paths = logs_named(logs, "session-*.jsonl")
        path = the_one(paths, session[:_SHOWN_OF_ID] if session else None, story.note)
        if path is not None:
            lines = read_lines(path, story.note)
            session = session or (str(lines[0].get("sessionId")) if lines else None)
            _tell(story, lines[turn_start(lines, _prompt, instruction) or 0 :])
        else:
            story.note("there is no chat file (session-*.jsonl)")
        story.begin_with(instruction)
        return story.reading(error=_error(printed, exit_code), session=session)


READER = GeminiCliReader()


def _prompt(line: Line) -> str | None:
    parts = list(tables(line.get("content")))
    if line.get("type") != "user" or any("functionResponse" in part for part in parts):
        return None
    return flat(line.get("content"))


def _tell(story: Story, lines: Iterable[Line]) -> None:
    for line in _last_words(lines, story):
        content, at = line.get("content"), moment(line.get("timestamp"))
        if line.get("type") == "user":
            if _prompt(line) is not None:
                story.say("user", content, at)
        elif line.get("type") == "gemini":
            _tell_answer(story, line, at)
        else:
            story.say("system", content, at, type=line.get("type"))


def _last_words(lines: Iterable[Line], story: Story) -> list[Line]:
    """Each message as it was written last, in the order in which they began."""
    messages: dict[str, Line] = {}
    for line in lines:
        if "id" in line:
            messages[str(line["id"])] = line
        elif "messages" in table(line, "$set"):
            story.note("the CLI wrote its history anew within this turn, or took part of it back")
    return list(messages.values())


def _tell_answer(story: Story, line: Line, at: str | None) -> None:
    draft: Draft = story.reply(str(line["id"]), at, line.get("model"))
    content, tokens = line.get("content"), table(line, "tokens")
    if isinstance(content, list):
        tell_parts(story, draft, tables(content))
    else:
        draft.text.append(flat(content))
    for thought in tables(line.get("thoughts")):
        words = (thought.get("subject"), thought.get("description"))
        draft.thoughts.append(": ".join(flat(each) for each in words if each))
    if tokens:
        parts = (number(tokens.get(key)) for key in ("input", "output", "thoughts", "tool"))
        draft.metrics = metrics(tokens.get("input"), tokens.get("cached"), total(parts))
    for call in tables(line.get("toolCalls")):
        tell_call(story, draft, call)
        status = call.get("status")
        tell_responses(story, tables(call.get("result")), status=status)
        if not call.get("result"):
            story.note(f"a call of {call.get('name')} has no result ({status})")


def _error(printed: Iterable[Line], exit_code: int | None) -> str | None:
    results = [line for line in printed if line.get("type") == "result"]
    last = results[-1] if results else {}
    if last.get("status") == "error":
        return flat(table(last, "error").get("message")) or "gemini says that it failed"
    return exit_trouble("gemini", exit_code, is_done=bool(results))
