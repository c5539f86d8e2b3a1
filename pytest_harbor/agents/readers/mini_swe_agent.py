"""mini-swe-agent: the one file that it writes, with the conversation as its model had it.

It exits with 0 also when a limit stopped it; ``exit_status`` says what happened.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from pytest_harbor.agents.readers.base import Reading
from pytest_harbor.agents.readers.draft import Story, exit_trouble
from pytest_harbor.agents.readers.lines import (
    Line,
    amount,
    flat,
    logs_named,
    moment,
    number,
    read_json,
    table,
    tables,
    the_one,
)
from pytest_harbor.trajectory import Metrics

_DONE: Final = "Submitted"


class MiniSweAgentReader:
    """Reads what ``mini -o traj.json`` leaves."""

    def read(
        self,
        logs: Path,
        *,
        stdout: Path,  # noqa: ARG002  what it prints is for people
        exit_code: int | None,
        instruction: str,
        agent_name: str,
        agent_version: str,
        model: str | None,
    ) -> Reading:
        """Read one turn."""
        story = Story(agent_name, agent_version, model)
        path = the_one(logs_named(logs, "*.json"), "traj", story.note)
        if path is None:
            story.note("there is no trajectory of its own (traj.json)")
        document = read_json(path, story.note) if path is not None else {}
        for place, message in enumerate(tables(document.get("messages"))):
            _tell(story, message, str(place), model)
        story.begin_with(instruction)
        return story.reading(error=_error(document, exit_code))


READER = MiniSweAgentReader()


def _tell(story: Story, message: Line, key: str, model: str | None) -> None:
    extra, content = table(message, "extra"), message.get("content")
    at = _at(extra.get("timestamp"))
    match message.get("role"):
        case "assistant":
            _tell_answer(story, message, key, model)
        case "tool":
            call = str(message.get("tool_call_id"))
            story.result(call, content, at, exit_code=extra.get("returncode"))
        case "user":
            story.say("user", content, at)
        case role:
            status = extra.get("exit_status")
            if content:
                story.say("system", content, at, role=role, exit_status=status)


def _tell_answer(story: Story, message: Line, key: str, model: str | None) -> None:
    extra = table(message, "extra")
    response = table(extra, "response")
    draft = story.reply(key, _at(extra.get("timestamp")), response.get("model") or model)
    draft.text.append(flat(message.get("content")))
    draft.thoughts.append(flat(message.get("reasoning_content")))
    usage = table(response, "usage")
    if usage:
        draft.metrics = Metrics(
            prompt_tokens=number(usage.get("prompt_tokens")),
            completion_tokens=number(usage.get("completion_tokens")),
            cached_tokens=number(table(usage, "prompt_tokens_details").get("cached_tokens")),
            cost_usd=amount(extra.get("cost")),
        )
    for call in tables(message.get("tool_calls")):
        function = table(call, "function")
        name, arguments = str(function.get("name")), function.get("arguments")
        story.call(draft, str(call.get("id")), name, arguments)


def _at(seconds: Any) -> str | None:
    return moment(seconds * 1000) if isinstance(seconds, int | float) else None


def _error(document: Line, exit_code: int | None) -> str | None:
    status = table(document, "info").get("exit_status")
    if status not in (None, _DONE):
        messages = list(tables(document.get("messages")))
        said = flat(messages[-1].get("content")) if messages else ""
        return f"{status}: {said}" if said and said != status else str(status)
    return exit_trouble("mini-swe-agent", exit_code, is_done=status == _DONE)
