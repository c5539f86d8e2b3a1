"""codex: its rollout file, one JSON line per thing that happened.

Each answer of the model ends with a ``token_usage_record``. In code mode the model writes a script
instead of calling tools; what the script called stands in ``item_completed`` alone.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

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
    turn_start,
)
from pytest_harbor.trajectory import Metrics

_LEFT: Final = frozenset(
    {"session_meta", "turn_context", "world_state", "event_msg", "token_usage_record"}
)
_CALLS: Final = frozenset({"function_call", "custom_tool_call", "tool_search_call"})
_OUTPUTS: Final = frozenset(
    {"function_call_output", "custom_tool_call_output", "tool_search_output"}
)
_TOOLS: Final = "additional_tools"
"""Tools that are offered in the conversation; nothing that happened."""
_HARMLESS: Final = "Model metadata for "
_FATAL: Final = "Code Mode is unavailable"
"""The model is then answered by nobody, and the exit status is 0."""


class CodexReader:
    """Reads what ``codex exec --json`` leaves."""

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
        session = next((str(x["thread_id"]) for x in printed if x.get("thread_id")), None)
        path = the_one(logs_named(logs, "rollout-*.jsonl"), session, story.note)
        if path is not None:
            lines = read_lines(path, story.note)
            _Turn(story).tell(_of_this_turn(lines, instruction))
            session = session or table(lines[0] if lines else {}, "payload").get("id")
        else:
            story.note("there is no session log (rollout-*.jsonl)")
        story.begin_with(instruction)
        return story.reading(error=_error(printed, exit_code, story), session=session)


READER = CodexReader()


def _of_this_turn(lines: list[Line], instruction: str) -> list[Line]:
    """From the task that the prompt belongs to; a first turn has all that stands before it."""
    prompt = turn_start(lines, _prompt, instruction)
    tasks = [
        at
        for at, line in enumerate(lines[: prompt or 0])
        if table(line, "payload").get("type") == "task_started"
    ]
    return lines[tasks[-1] :] if len(tasks) > 1 else lines


def _prompt(line: Line) -> str | None:
    said = table(line, "payload")
    if line.get("type") != "response_item" or said.get("role") != "user":
        return None
    text = flat(said.get("content"))
    kinds = table(said, "internal_chat_message_metadata_passthrough").get("content_item_kinds")
    if isinstance(kinds, list):
        return text if "user.text" in kinds else None
    return None if text.lstrip().startswith("<") else text


def _error(printed: list[Line], exit_code: int | None, story: Story) -> str | None:
    kinds = [line.get("type") for line in printed]
    failed = [line for line in printed if line.get("type") == "turn.failed"]
    items = (table(line, "item") for line in printed)
    said = [flat(item.get("message")) for item in items if item.get("type") == "error"]
    for text in said:
        if not text.startswith(_HARMLESS):
            story.note(f"codex says: {text}")
    if failed:
        return flat(table(failed[-1], "error").get("message")) or "the turn failed"
    if fatal := [text for text in said if text.startswith(_FATAL)]:
        return fatal[0]
    trouble = exit_trouble("codex", exit_code, is_done="turn.completed" in kinds)
    errors = [flat(line.get("message")) for line in printed if line.get("type") == "error"]
    return f"{trouble}: {errors[-1]}" if trouble and errors else trouble


class _Turn:
    """Tells a turn's lines to a story."""

    def __init__(self, story: Story) -> None:
        self._story = story
        self._answers = 0
        self._effort: str | None = None
        self._model: str | None = None
        self._last_call = ""
        self._unknown: dict[str, int] = {}

    def tell(self, lines: list[Line]) -> None:
        for line in lines:
            payload, at = table(line, "payload"), moment(line.get("timestamp"))
            match line.get("type"):
                case "response_item":
                    self._item(payload, at)
                case "token_usage_record":
                    self._end_of_answer(table(payload, "usage"), at)
                case "event_msg":
                    self._event(payload, at)
                case "turn_context":
                    self._effort = payload.get("effort") or self._effort
                    self._model = payload.get("model") or self._model
                case "session_meta":
                    if text := flat(table(payload, "base_instructions").get("text")):
                        self._story.say("system", text, at, what="base instructions")
                case kind:
                    self._pass_over(str(kind))
        for kind, times in self._unknown.items():
            self._story.note(f"{times} lines of type {kind} were passed over")

    def _item(self, item: Line, at: str | None) -> None:
        kind = str(item.get("type"))
        if kind == "message":
            self._message(item, at)
        elif kind == "reasoning":
            whole = item.get("content") or item.get("summary")
            thought = flat(whole)
            self._answer(at).thoughts.append(thought)
            if not thought and item.get("encrypted_content"):
                self._story.note("some reasoning is encrypted")
        elif kind in _CALLS:
            self._call(item, at)
        elif kind in _OUTPUTS:
            content = item["output"] if "output" in item else item.get("tools")
            self._story.result(str(item.get("call_id")), content, at)
        elif kind != _TOOLS:
            self._pass_over(kind)

    def _message(self, item: Line, at: str | None) -> None:
        text = flat(item.get("content"))
        match item.get("role"):
            case "assistant":
                self._answer(at).text.append(text)
            case "user" if _prompt({"type": "response_item", "payload": item}) is not None:
                self._story.say("user", text, at)
            case role:
                self._story.say("system", text, at, role=role)

    def _call(self, item: Line, at: str | None) -> None:
        space, name = item.get("namespace"), str(item.get("name") or item.get("type"))
        arguments = item.get("arguments") if "arguments" in item else item.get("input")
        qualified = f"{space}__{name}" if space and space != "functions" else name
        self._last_call = str(item.get("call_id"))
        self._story.call(self._answer(at), self._last_call, qualified, arguments)

    def _event(self, event: Line, at: str | None) -> None:
        """What stands in no other place: exit statuses, and the tools of a script."""
        item = table(event, "item")
        match item.get("type"):
            case "CommandExecution":
                known: dict[str, Any] = {"exit_code": item.get("exit_code")}
                arguments: Any = {"command": item.get("command"), "cwd": item.get("cwd")}
                name, content = "exec_command", item.get("aggregated_output")
            case "McpToolCall":
                known = {"error": item.get("error")}
                arguments = item.get("arguments")
                server = str(item.get("server")).replace("-", "_")
                name = f"mcp__{server}__{item.get('tool')}"
                content = table(item, "result").get("content") or item.get("error")
            case _:
                return
        known["status"] = item.get("status")
        call_id = str(item.get("id"))
        if self._story.caller(call_id) is None:
            draft = self._story.caller(self._last_call) or self._answer(at)
            self._story.call(draft, call_id, name, arguments, inside=self._last_call or None)
        self._story.result(call_id, content, at, **known)

    def _answer(self, at: str | None) -> Draft:
        draft = self._story.reply(str(self._answers), at, self._model)
        draft.effort = self._effort
        return draft

    def _end_of_answer(self, usage: Line, at: str | None) -> None:
        self._answer(at).metrics = Metrics(
            prompt_tokens=number(usage.get("input_tokens")),
            completion_tokens=number(usage.get("output_tokens")),
            cached_tokens=number(usage.get("cached_input_tokens")),
        )
        self._answers += 1

    def _pass_over(self, kind: str) -> None:
        if kind not in _LEFT:
            self._unknown[kind] = self._unknown.get(kind, 0) + 1
