"""A user played by a language model behind an OpenAI-compatible address.

Each call sends the role, the persona and the whole conversation; the model may look into the
repository a few times and then says one thing. Nothing that goes wrong here reaches the agent:
it gets the next best answer, and events.jsonl says what happened.
"""

import json
import os
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from record import Record
from repo import Repo, speaks_of_work

MAX_ROUNDS = int(os.environ.get("SIM_USER_MAX_TOOL_ROUNDS", "6"))
MAX_TOKENS = int(os.environ.get("SIM_USER_MAX_OUTPUT_TOKENS", "32768"))
EFFORT = os.environ.get("SIM_USER_REASONING_EFFORT", "high")
HTTP_TIMEOUT = 600

LAST_RESORT = (
    "I couldn't get a proper look at this just now, so I'm not signing off on it yet. "
    "Can you paste the diff here?"
)

NOTHING = "the model said nothing"

ROLE = """\
You play the user of a coding agent; the agent's messages reach you as the user role. Answer
with what you would type to it, and nothing else.
You can look into the repository with run_repo_command: do it silently, never mention the tool.
Before you approve anything, look at the latest commit yourself. Ask for a pasted diff only when
looking fails.
Who you are and what you want:

"""

TOOL = {
    "type": "function",
    "function": {
        "name": "run_repo_command",
        "description": (
            "Run one read-only command in the repository: git status, diff, show, grep, log, "
            "ls-files, rev-parse or cat-file, or rg, grep, sed, find, ls, cat. No pipes."
        ),
        "parameters": {
            "type": "object",
            "properties": {
                "command": {"type": "string"},
                "max_chars": {"type": "integer", "minimum": 1000, "maximum": 60000},
                "timeout": {"type": "integer", "minimum": 1, "maximum": 300},
            },
            "required": ["command"],
        },
    },
}


def completions_url(base: str) -> str:
    """Return the address of the chat completions, with one /v1 however the base ends."""
    base = base.rstrip("/")
    return base + ("" if base.endswith("/v1") else "/v1") + "/chat/completions"


class ModelUser:
    """The conversation so far, and the model that continues it."""

    def __init__(self, name: str, persona: Path, repo: Repo, record: Record) -> None:
        self._name = name.removeprefix("openai/")
        self._url = completions_url(os.environ["LITELLM_BASE_URL"])
        self._system = {"role": "system", "content": ROLE + persona.read_text(encoding="utf-8")}
        self._repo = repo
        self._record = record
        self._conversation: list[dict[str, Any]] = []

    def describe(self) -> str:
        """Name this user for the log."""
        return self._name

    def reply(self, question: str) -> str:
        """Answer, with tools if that works, without them if not, with a stock phrase if need be."""
        self._conversation.append({"role": "user", "content": question})
        messages = [self._system, *self._conversation]
        if speaks_of_work(question):
            seen = self._repo.snapshot()
            self._record.event("snapshot", found=seen is not None)
            if seen is not None:
                note = "For your eyes only, the repository right now:\n" + seen
                messages.append({"role": "system", "content": note})
        answer = self._with_tools(messages) or self._plain(messages)
        if answer is None:
            self._record.event("ask_user_model_error")
            self._record.event("llm_last_resort_reply", preview=LAST_RESORT)
            answer = LAST_RESORT
        self._conversation.append({"role": "assistant", "content": answer})
        return answer

    def _with_tools(self, messages: list[dict[str, Any]]) -> str | None:
        """Let the model look around, at most MAX_ROUNDS times."""
        messages = list(messages)
        for number in range(1, MAX_ROUNDS + 1):
            try:
                said = self._complete(messages, tools=[TOOL])
            except Exception as problem:
                self._record.event("llm_tool_round_error", round=number, error=describe(problem))
                return None
            calls = said.get("tool_calls") or []
            self._record.event("llm_tool_round", round=number, tool_calls=len(calls))
            if not calls:
                answer = text_of(said)
                if answer is None:
                    self._record.event("llm_tool_round_error", round=number, error=NOTHING)
                return answer
            messages.append({**said, "role": "assistant"})
            messages.extend(self._look(call) for call in calls)
        self._record.event("llm_tool_rounds_spent", rounds=MAX_ROUNDS)
        return self._plain(messages)

    def _look(self, call: dict[str, Any]) -> dict[str, Any]:
        """Answer one tool call of the model."""
        function = call.get("function") or {}
        try:
            arguments = json.loads(function.get("arguments") or "{}")
            if function.get("name") != "run_repo_command":
                result = {"ok": False, "error": f"{function.get('name')} is not available"}
            else:
                result = self._repo.run(
                    str(arguments["command"]),
                    max_chars=arguments.get("max_chars") or 20_000,
                    timeout=arguments.get("timeout") or 25,
                )
        except (AttributeError, KeyError, TypeError, ValueError) as problem:
            result = {"ok": False, "error": f"bad arguments: {describe(problem)}"}
        return {"role": "tool", "tool_call_id": call.get("id"), "content": json.dumps(result)}

    def _plain(self, messages: list[dict[str, Any]]) -> str | None:
        """Ask for an answer without offering the tool."""
        try:
            said = self._complete(messages)
        except Exception as problem:
            self._record.event("llm_plain_error", error=describe(problem))
            return None
        answer = text_of(said)
        if answer is None:
            self._record.event("llm_plain_error", error=NOTHING)
        return answer

    def _complete(self, messages: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
        """Make one call and return the message."""
        body = {"model": self._name, "messages": messages, "max_completion_tokens": MAX_TOKENS}
        if EFFORT:
            body["reasoning_effort"] = EFFORT
        request = urllib.request.Request(
            self._url,
            data=json.dumps({**body, **more}).encode(),
            headers={
                "Content-Type": "application/json",
                "Authorization": f"Bearer {os.environ['LITELLM_API_KEY']}",
            },
        )
        with urllib.request.urlopen(request, timeout=HTTP_TIMEOUT) as response:
            document = json.load(response)
        self._record.event("llm_usage", usage=document.get("usage"))
        message = document["choices"][0]["message"]
        if not isinstance(message, dict):
            raise TypeError("the reply holds no message")
        return message


def text_of(message: dict[str, Any]) -> str | None:
    """Return what a message says, or None for nothing."""
    content = message.get("content")
    return (content.strip() or None) if isinstance(content, str) else None


def describe(problem: Exception) -> str:
    """Name a failure, with what the server said about it."""
    text = f"{type(problem).__name__}: {problem}"
    if isinstance(problem, urllib.error.HTTPError):
        text += " " + problem.read(500).decode("utf-8", "replace")
    return text
