"""What all wires have in common: the words, and what the rest of the gateway asks of one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any, Literal, NamedTuple, Protocol

from pytest_harbor.gateway import sse

WireName = Literal["chat", "responses", "messages", "gemini"]
Role = Literal["user", "model", "tool"]


@dataclass(frozen=True)
class Usage:
    """Tokens of one call, counted alike for all wires."""

    input: int
    """All of the prompt, whether it was cached or not."""
    output: int
    """Everything generated, reasoning included."""
    cached: int = 0
    """The part of ``input`` that the provider had in its cache."""
    written: int = 0
    """The part of ``input`` that the provider put into its cache."""
    reasoning: int = 0
    """The part of ``output`` that was thinking."""


@dataclass(frozen=True)
class Heard:
    """What an answer says about itself."""

    model: str | None = None
    usage: Usage | None = None
    finished: bool = False
    """Whether it came to its end as the wire defines it; a whole body always does."""
    error: str | None = None
    tokens: tuple[Mapping[str, Any], ...] = ()
    """Token ids and log probabilities, a table for each choice or text; empty if none came."""


class Listener(Protocol):
    """Follows a streamed answer event by event."""

    def hear(self, event: bytes) -> None:
        """Take note of one event."""

    def heard(self) -> Heard:
        """What is known by now."""


@dataclass(frozen=True)
class Tool:
    """A tool that a request offers to the model."""

    name: str
    namespace: str | None = None
    """Only in Responses: the group that the tool was offered in; the call must name it."""
    schema: Mapping[str, Any] = field(default_factory=dict)
    """JSON schema of the arguments."""
    custom: bool = False
    """Only in Responses: takes free text (argument ``input``) instead of JSON."""
    searches: bool = False
    """Only in Responses: finds further tools, and is called in a way of its own."""

    @property
    def qualified(self) -> str:
        """The name with its namespace, as other CLIs would write it."""
        return f"{self.namespace}__{self.name}" if self.namespace else self.name


@dataclass(frozen=True)
class Said:
    """One thing in a conversation."""

    role: Role
    text: str


@dataclass(frozen=True)
class Conversation:
    """A request, read alike for all wires."""

    model: str
    system: str
    said: tuple[Said, ...]
    tools: tuple[Tool, ...]
    thinks: bool = True
    """Whether the client asked for the model's thinking, or takes it unasked."""

    @cached_property
    def turn(self) -> int:
        """1 for the first answer to the last user message, 2 for the next one, and so on."""
        turn, before = 1, "user"
        for each in self.said:
            if each.role == "user":
                turn = 1
            elif each.role == "model" and before != "model":
                turn += 1
            before = each.role
        return turn

    def last(self, *roles: Role) -> str:
        """The text of the last thing said in one of the roles; empty if there is none."""
        return next((each.text for each in reversed(self.said) if each.role in roles), "")


@dataclass(frozen=True)
class ToolCall:
    """A call that a scripted model makes."""

    id: str
    tool: Tool
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class Reply:
    """What a scripted model says, for a wire to put into its shape."""

    id: str
    """Unique in the conversation; item ids are made from it."""
    model: str
    created: int
    """Unix seconds."""
    usage: Usage
    text: str = ""
    thinking: str = ""
    calls: tuple[ToolCall, ...] = ()


class Place(NamedTuple):
    """Where a request goes at a model server."""

    base_url: str
    path: str
    """Below the version."""
    body: Mapping[str, Any]


class Wire(Protocol):
    """One protocol between a client and a model server."""

    @property
    def name(self) -> WireName:
        """How the ledger calls it."""

    @property
    def path(self) -> str:
        """Where its requests go, below the version, for people: ``chat/completions``."""

    @property
    def version(self) -> str:
        """What goes before the path where a server's address has no version."""

    def asked(self, path: str) -> dict[str, Any] | None:
        """What a path says of a request, in the words of its body; None for another wire's."""

    def place(self, base_url: str, body: Mapping[str, Any]) -> Place:
        """Where a request goes at a server, and what is then left of its body."""

    def error(self, status: int, kind: str, message: str) -> dict[str, Any]:
        """The body of an error that the gateway itself gives."""

    def heard(self, body: Mapping[str, Any]) -> Heard:
        """Read an answer that came whole."""

    def listener(self) -> Listener:
        """Something to follow a streamed answer with."""

    def ask_usage(self, body: Mapping[str, Any], /) -> dict[str, Any] | None:
        """The request with token counts asked for, or None where they come anyway."""

    def hide_usage(self, event: bytes) -> bytes:
        """The event without the token counts that only the gateway asked for; may be empty."""

    def conversation(self, body: Mapping[str, Any]) -> Conversation:
        """Read a request."""

    def tools(self, body: Mapping[str, Any]) -> tuple[Tool, ...]:
        """The tools that a request offers."""

    def whole(self, reply: Reply) -> dict[str, Any]:
        """Write an answer in one piece."""

    def events(self, reply: Reply, body: Mapping[str, Any], /) -> Iterator[bytes]:
        """Write an answer as a stream; ``body`` is the request that it answers."""


class FixedPath:
    """For wires whose requests all go to one path, and say everything else in their bodies."""

    path: str
    version = "v1"

    def asked(self, path: str) -> dict[str, Any] | None:
        """Nothing, where it is the path of this wire."""
        return {} if path == self.path else None

    def place(self, base_url: str, body: Mapping[str, Any]) -> Place:
        """The one path, with all of the body."""
        return Place(base_url, self.path, body)


class TalksUsage:
    """For wires whose streams always count tokens."""

    def ask_usage(self, _body: Mapping[str, Any]) -> dict[str, Any] | None:
        """Nothing needs to be asked."""
        return None

    def hide_usage(self, event: bytes) -> bytes:
        """Nothing needs to be hidden."""
        return event


def find_tool(names: Iterable[str], tools: Iterable[Tool]) -> Tool | None:
    """The tool that the first fitting name means.

    A name may hold wildcards. Without, it also means a tool that carries a server's name in front
    (``mcp__user-server__ask_user``, ``user-server_ask_user``), if none is called just so.
    """
    offered = tuple(tools)
    for name in names:
        for pattern in (name, f"*__{name}", f"*_{name}"):
            for tool in offered:
                if fnmatchcase(tool.name, pattern) or fnmatchcase(tool.qualified, pattern):
                    return tool
    return None


def is_reminder(said: Said) -> bool:
    """Whether it is a CLI that speaks here in the user's place, to its model alone."""
    text = said.text.strip()
    wrapped = text.startswith("<system-reminder>") and text.endswith("</system-reminder>")
    return said.role == "user" and wrapped


def text_of(content: Any) -> str:
    """The text in a message's content, whatever form a client gives it."""
    if isinstance(content, str):
        return content
    if isinstance(content, Mapping):
        for key in ("text", "output", "content"):
            if key in content:
                return text_of(content[key])
        return ""
    if isinstance(content, Sequence):
        return "\n".join(filter(None, map(text_of, content)))
    return ""


def count(table: Any, *names: str) -> int:
    """The first of the names under which a table holds a number, else 0."""
    if isinstance(table, Mapping):
        for name in names:
            value = table.get(name)
            if isinstance(value, int | float) and not isinstance(value, bool):
                return int(value)
    return 0


def table_of(value: Any) -> Mapping[str, Any]:
    """The value where it is a JSON object, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def tables_in(value: Any) -> list[Mapping[str, Any]]:
    """The JSON objects of a list; empty for anything else."""
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []


def message_of(error: Any) -> str:
    """The message of an error object in any of the usual shapes."""
    if isinstance(error, Mapping):
        inner = error.get("error")
        if isinstance(inner, Mapping | str):
            return message_of(inner)
        return str(error.get("message") or error.get("detail") or error.get("code") or "error")
    return str(error)


def pieces(text: str, size: int = 24) -> Iterator[str]:
    """The text in the small parts that a model would stream it in."""
    return (text[start : start + size] for start in range(0, len(text), size))


def named(data: Mapping[str, Any]) -> bytes:
    """An event that is called as its data's ``type`` says."""
    return sse.encode(data, data["type"])
