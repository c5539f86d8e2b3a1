"""The agent ``model-loop``: asks a model, does what it asks for, until it asks for nothing more.

It works on this host: chat completions through the episode's gateway, ``bash`` in main, and the
tools of granted MCP servers. It has no tricks, so a score with it says something of the model.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4
from weakref import WeakKeyDictionary

from pytest_harbor.agents.base import LOGS, Agent, Capabilities, Turn, TurnResult
from pytest_harbor.agents.dialogue import Dialogue
from pytest_harbor.agents.hands import Done, Hands, LateError, hands, shortened
from pytest_harbor.agents.readers.draft import Draft, Story, as_arguments
from pytest_harbor.agents.readers.lines import flat, number
from pytest_harbor.errors import AgentError, UserError
from pytest_harbor.sandbox.container import Container, Entry
from pytest_harbor.settings import LoopTable
from pytest_harbor.trajectory import Metrics, dump

if TYPE_CHECKING:
    import httpx2

_TRAJECTORY: Final = "trajectory.json"
_SHOWN: Final = 16_000
"""Characters of an output that the model gets to see."""
_SYSTEM: Final = (
    "You are an agent that works in a Linux container through the tools that you have. Do what "
    "the user asks. When all of it is done, answer without calling a tool: that ends your turn."
)
_OVERFLOW: Final = re.compile(
    r"context.length|context.window|maximum context|prompt is too long|too many (input )?tokens"
    r"|exceeds? .*context",
    re.IGNORECASE,
)
Function = dict[str, Any]


class StoppedError(Exception):
    """The turn ends here, not by the model's own choice; says why."""


class ModelLoop(Agent):
    """A loop around a model; ``limits`` are the recipe's ``agent.loop``."""

    name = "model-loop"
    version = "1"
    capabilities = Capabilities(
        needs_model=True, resumes=True, mcp_transports=frozenset({"sse", "streamable-http"})
    )

    def __init__(self, model: str | None = None, limits: LoopTable | None = None) -> None:
        self.model = model
        self._limits = limits or LoopTable()
        self._sessions: WeakKeyDictionary[Container, tuple[str, Dialogue]] = WeakKeyDictionary()
        """A session lives as long as the container that it is about."""

    def run_turn(self, turn: Turn) -> TurnResult:
        """Ask and act until the model is done, a limit is reached or the deadline passes."""
        session, dialogue = self._session(turn)
        asked_as = turn.model.name if turn.model else None
        loop = _Loop(turn, dialogue, Story(self.name, self.version, asked_as), self._limits)
        error: str | None = None
        late = False
        try:
            loop.run()
        except LateError:
            late = True
            error = f"agent timed out: {turn.deadline.describe()}"
        except StoppedError as stop:
            error = str(stop)
        reading = loop.story.reading(error=error, session=session)
        if reading.trajectory is not None:
            owner = turn.container.user(turn.user)
            text = dump(reading.trajectory).encode()
            place = f"{LOGS}/{_TRAJECTORY}"
            turn.container.put([Entry(place, text, 0o644, owner.uid, owner.gid)])
        return TurnResult(
            "timeout" if late else reading.ended,
            message=error or "",
            trajectory=_TRAJECTORY,
            input_tokens=reading.input_tokens,
            output_tokens=reading.output_tokens,
            cached_tokens=reading.cached_tokens,
            session=session,
            extra={"model_calls": loop.asked},
        )

    def _session(self, turn: Turn) -> tuple[str, Dialogue]:
        if turn.session is None:
            kept = (uuid4().hex, Dialogue(_SYSTEM, self._limits.context))
        else:
            kept = self._sessions.get(turn.container, ("", Dialogue("", 0)))
            if kept[0] != turn.session:
                raise AgentError(f"the session {turn.session} is not known in this process")
        self._sessions[turn.container] = kept
        return kept


class _Loop:
    """One turn."""

    def __init__(self, turn: Turn, dialogue: Dialogue, story: Story, limits: LoopTable) -> None:
        self._turn, self._dialogue, self._limits = turn, dialogue, limits
        self._tokens = 0
        self.story = story
        self.asked = 0
        """How often the model was asked."""

    def run(self) -> None:
        """Play the turn.

        Raises:
            StoppedError: something else than the model ended it.
            LateError: its time was up.
        """
        import httpx2

        self._dialogue.tell(self._turn.instruction)
        self.story.say("user", self._turn.instruction, _now())
        client = httpx2.Client(trust_env=False, verify=False)  # the gateway speaks no TLS
        try:
            with client, hands(self._turn) as able:
                functions, meaning = _functions(able)
                while self._takes_a_step(client, able, functions, meaning):
                    pass
        except UserError as error:
            raise StoppedError(str(error)) from error

    def _takes_a_step(
        self,
        client: httpx2.Client,
        able: Hands,
        functions: list[Function],
        meaning: Mapping[str, tuple[str, str]],
    ) -> bool:
        """Ask once and do what is asked for; False when nothing was."""
        self._check_limits()
        answer = self._ask(client, functions)
        choices = answer.get("choices") or [{}]
        message = choices[0].get("message") or {}
        draft = self._take_down(answer, message)
        self._dialogue.hear(message)
        calls = message.get("tool_calls") or []
        for call in calls:
            function = call.get("function") or {}
            name, call_id = str(function.get("name")), str(call.get("id"))
            self.story.call(draft, call_id, name, function.get("arguments"))
            done = self._act(able, name, function.get("arguments"), meaning)
            self._dialogue.show(call_id, _told(done))
            self.story.result(call_id, _told(done), _now(), exit_code=done.exit_code)
        if not calls and choices[0].get("finish_reason") == "length":
            raise StoppedError("the model's last answer was cut off at its length limit")
        return bool(calls)

    def _check_limits(self) -> None:
        limits = self._limits
        if self._turn.deadline.expired:
            raise LateError
        if self.asked >= limits.calls:
            raise StoppedError(f"stopped after {self.asked} model calls (agent.loop.calls)")
        if limits.tokens is not None and self._tokens >= limits.tokens:
            raise StoppedError(f"stopped after {self._tokens} tokens (agent.loop.tokens)")

    def _ask(self, client: httpx2.Client, functions: list[Function]) -> dict[str, Any]:
        """One answer of the model; asked with less, as long as it says that it is too much."""
        self._note(self._dialogue.fit(functions))
        while True:
            answer, trouble = self._post(client, functions)
            if not trouble:
                return answer
            done = self._dialogue.fit(functions, harder=True) if _OVERFLOW.search(trouble) else ""
            if not done:
                raise StoppedError(trouble)
            self._note(done)

    def _post(self, client: httpx2.Client, functions: list[Function]) -> tuple[dict[str, Any], str]:
        """An answer, or what is wrong in the provider's own words."""
        import httpx2

        model = self._turn.model
        assert model is not None
        body: dict[str, Any] = {"model": model.name, "messages": self._dialogue.messages}
        body["tools"] = functions
        if self._turn.effort:
            body["reasoning_effort"] = self._turn.effort
        self.asked += 1
        url, left = f"{model.url}/v1/chat/completions", self._turn.deadline.remaining()
        try:
            response = client.post(url, json=body, timeout=left)
            answer = response.json()
        except httpx2.TimeoutException:
            raise LateError from None
        except httpx2.HTTPError as error:
            return {}, f"the model gateway cannot be reached: {error}"
        except ValueError:
            return {}, f"the model's answer is not JSON (HTTP {response.status_code})"
        if response.status_code < 400 and isinstance(answer, dict) and "error" not in answer:
            return answer, ""
        return {}, f"HTTP {response.status_code}: {_words(answer)}"

    def _take_down(self, answer: Mapping[str, Any], message: Mapping[str, Any]) -> Draft:
        draft = self.story.reply(f"answer {self.asked}", _now(), answer.get("model"))
        draft.text.append(flat(message.get("content")))
        draft.thoughts.append(flat(message.get("reasoning_content") or message.get("reasoning")))
        usage = answer.get("usage") or {}
        details = usage.get("prompt_tokens_details") or {}
        used = draft.metrics = Metrics(
            prompt_tokens=number(usage.get("prompt_tokens")),
            completion_tokens=number(usage.get("completion_tokens")),
            cached_tokens=number(details.get("cached_tokens")),
        )
        self._tokens += (used.prompt_tokens or 0) + (used.completion_tokens or 0)
        return draft

    def _act(
        self, able: Hands, name: str, given: Any, meaning: Mapping[str, tuple[str, str]]
    ) -> Done:
        arguments = as_arguments(given)
        if name in meaning:
            return able.call(*meaning[name], arguments)
        if name != "bash":
            known = ", ".join(["bash", *meaning])
            return Done(f"error: there is no tool {name!r}; there are {known}", failed=True)
        command = arguments.get("command")
        if not isinstance(command, str):
            return Done("error: bash takes one argument, the text 'command'", failed=True)
        return able.run(command, self._limits.command_seconds)

    def _note(self, what: str) -> None:
        if what:
            self.story.say("system", what, _now())


def _functions(able: Hands) -> tuple[list[Function], dict[str, tuple[str, str]]]:
    """The tools as a model is offered them, and which server's tool each name but bash means."""
    command = {"type": "string", "description": "a shell command; it begins in the workdir"}
    schema = {"type": "object", "properties": {"command": command}, "required": ["command"]}
    functions = [_function("bash", "Run a shell command and get its output.", schema)]
    meaning: dict[str, tuple[str, str]] = {}
    for server, tools in able.tools.items():
        for tool in tools:
            name = _callable(tool.name)
            if name == "bash" or name in meaning:
                name = _callable(f"{server}__{tool.name}")
            meaning[name] = (server, tool.name)
            functions.append(_function(name, tool.description, tool.schema))
    return functions, meaning


def _function(name: str, description: str, schema: Mapping[str, Any]) -> Function:
    function = {"name": name, "description": description, "parameters": dict(schema)}
    return {"type": "function", "function": function}


def _callable(name: str) -> str:
    """A tool's name with only what chat completions let it hold."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)[:64]


def _told(done: Done) -> str:
    """What the model gets to see."""
    text = shortened(done.text, _SHOWN).rstrip("\n") or "(no output)"
    return text if not done.exit_code else f"{text}\n[exit code {done.exit_code}]"


def _words(answer: Any) -> str:
    """What a provider says is wrong."""
    error = answer.get("error", answer) if isinstance(answer, dict) else answer
    said = error.get("message", error) if isinstance(error, dict) else error
    return str(said)[:1000]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
