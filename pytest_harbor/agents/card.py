"""A card: all there is to say about one coding-agent CLI, as data in a YAML file.

Commands, files and variables are jinja2 templates; :class:`Words` lists what they may name.
Running a card's CLI is :mod:`~pytest_harbor.agents.installed`'s business.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pytest_harbor.agents.base import Grant, Transport
from pytest_harbor.agents.readers.base import find_reader
from pytest_harbor.errors import RecipeError
from pytest_harbor.hints import hint

if TYPE_CHECKING:
    from jinja2 import Environment

OWN_CARDS: Final = Path(__file__).parent / "cards"
"""Where the cards are that come with this package."""

Template = Annotated[str, Field(min_length=1)]


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Install(_Table):
    """How to get the CLI; every package with its exact version."""

    npm: tuple[Template, ...] = ()
    """Packages for ``npm install --ignore-scripts``."""
    pip: tuple[Template, ...] = ()
    """Packages for ``pip install``; the Python that runs them comes along."""


class Card(_Table):
    """What a card file says."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$")]
    version: Annotated[str, Field(pattern=r"^[A-Za-z0-9.+_-]+$")]
    """The version that the rest was written for; a recipe may ask for another."""
    install: Install
    probe: Template
    """A command that prints the version, to see that the CLI can run in an image at all."""
    command: Template
    """The command of a turn, for the shell of main; its stdin is the instruction."""
    resume: Template | None = None
    """The command of a turn that goes on with ``session``; None where the CLI cannot."""
    after: str = ""
    """A command that follows when the CLI has ended, to write a log that it keeps in other form."""
    env: dict[str, str] = Field(default_factory=dict)
    files: dict[str, str] = Field(default_factory=dict)
    """Content by path; laid down for the turn's user before each turn."""
    logs: Template | None = None
    """The folder with the CLI's own log of its session."""
    reader: str | None = None
    """Who reads that log: one of :mod:`~pytest_harbor.agents.readers`, or ``module:attribute``.
    Without one, the exit code says how a turn ended."""
    wire: Literal["responses", "messages", "chat", "gemini"]
    """How it talks to its model."""
    transports: tuple[Transport, ...] = ("streamable-http",)
    """How it talks to MCP servers; none for a CLI that has no MCP."""
    tool_aliases: dict[str, str] = Field(default_factory=dict)
    """MCP tools that it must be offered under another name."""
    remark: str = ""
    """What an agent gets that the CLI by itself would not give it; kept in each result."""
    efforts: dict[str, str] = Field(default_factory=dict)
    """What ``effort`` becomes in templates, by what a recipe may say."""
    needs: tuple[str, ...] = ()
    """Programs that main must have."""
    instruction: Literal["stdin", "argument"] = "stdin"
    """Whether the instruction stands on the command line, which has a limit."""
    tool_minutes: Annotated[int, Field(ge=1)] = 60
    """How long a tool call may take; an answer of the user can take several minutes."""


@dataclass(frozen=True)
class Words:
    """What a card's templates may name."""

    tools: str
    """Where the installed CLI is mounted."""
    home: str
    """A home for this turn alone, outside the task's work."""
    out: str
    """The agent's log folder of the step."""
    start: str
    """What must stand before a dynamically linked program: empty, or a loader that runs it."""
    python: str
    """What runs a module of the installed Python packages."""
    arch: str
    """x64 or arm64, as npm has it."""
    machine: str
    """x86_64 or aarch64, as the kernel has it."""
    version: str
    model: str = ""
    url: str = ""
    """The model server without ``/v1``."""
    key: str = ""
    """What to give as the API key; nobody looks at it."""
    effort: str = ""
    servers: Sequence[Grant] = ()
    """The MCP servers: name, transport, url, headers, command, args."""
    session: str = ""
    instruction: str = ""
    """The file with the instruction."""
    tool_seconds: int = 0
    """``tool_minutes`` in seconds."""


_SOMETHING: Final = Words(
    tools="/tools", home="/home", out="/logs/agent", start="", python="python3",
    arch="x64", machine="x86_64",
    version="1", model="m", url="http://gateway", key="k", effort="high", session="s",
    servers=(Grant("user-server", "streamable-http", "http://user-server/mcp"),),
    instruction="/instruction", tool_seconds=60,
)  # fmt: skip


def render(template: str, words: Words) -> str:
    """Fill a template of a card in."""
    named = {field.name: getattr(words, field.name) for field in fields(words)}
    return _environment().from_string(template).render(named)


@lru_cache(maxsize=1)
def _environment() -> Environment:
    from jinja2 import Environment, StrictUndefined

    made = Environment(undefined=StrictUndefined, keep_trailing_newline=True, trim_blocks=True)  # noqa: S701 (no HTML)
    made.filters["json"] = lambda value: json.dumps(value, default=dict)
    made.filters["sh"] = lambda value: shlex.quote(str(value))
    return made


def card_names(folders: Iterable[Path] = ()) -> tuple[str, ...]:
    """The names of all cards that can be found, each once."""
    found = (path.stem for folder in (*folders, OWN_CARDS) for path in folder.glob("*.yaml"))
    return tuple(sorted(dict.fromkeys(found)))


def find_card(name: str, folders: Iterable[Path] = ()) -> Card | None:
    """The card of a name: from the first folder that has it, else one of ours; None for neither.

    Raises:
        RecipeError: it cannot be read, or says something that no card can say.
    """
    for folder in (*folders, OWN_CARDS):
        path = folder / f"{name}.yaml"
        if path.is_file():
            return load_card(path)
    return None


def load_card(path: Path) -> Card:
    """Read a card and try every template in it.

    Raises:
        RecipeError: with file, key and remedy for each problem.
    """
    import yaml

    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise RecipeError(f"{path}: the card cannot be read ({error})") from None
    except yaml.YAMLError as error:
        raise RecipeError(f"{path}: is not valid YAML: {' '.join(str(error).split())}") from None
    if not isinstance(values, dict):
        raise RecipeError(f"{path}: a card is a mapping of keys to values; see docs/agents.md")
    try:
        card = Card.model_validate(values)
    except ValidationError as error:
        problems = [f"{path}: {_explain(each)}" for each in error.errors()]
        raise RecipeError("\n".join(problems)) from None
    problems = [f"{path}: {problem}" for problem in _faults(card, path)]
    if problems:
        raise RecipeError("\n".join(problems))
    return card


def _explain(problem: Mapping[str, Any]) -> str:
    place = [str(part) for part in problem["loc"]]
    key = ".".join(place)
    if problem["type"] == "missing":
        return f"the key {key} is missing; docs/agents.md shows a whole card"
    if problem["type"] != "extra_forbidden":
        return f"{key}: {problem['msg']}, got {problem['input']!r}"
    known = Install.model_fields if place[0] == "install" and len(place) > 1 else Card.model_fields
    return f"unknown key {key}; {hint(place[-1], known)}"


def _faults(card: Card, path: Path) -> Iterator[str]:
    from jinja2 import TemplateError

    if card.name != path.stem:
        yield f"name: it is {card.name!r}, but a card is found by its file's name, {path.stem!r}"
    if card.reader is not None:
        try:
            find_reader(card.reader)
        except RecipeError as error:
            yield f"reader: {error}"
    if not (card.install.npm or card.install.pip):
        yield "install: it names no package; give install.npm or install.pip"
    known = [field.name for field in fields(Words)]
    for key, template in _templates(card):
        try:
            render(template, _SOMETHING)
        except TemplateError as error:
            yield f"{key}: {error}; templates may name {', '.join(known)}"


def _templates(card: Card) -> Iterator[tuple[str, str]]:
    """Every template of a card, by its key."""
    for kind in ("npm", "pip"):
        yield from ((f"install.{kind}", package) for package in getattr(card.install, kind))
    for key in ("probe", "command", "resume", "after", "logs"):
        yield key, getattr(card, key) or ""
    for table in ("env", "files"):
        for name, template in getattr(card, table).items():
            yield f"{table}.{name}", name
            yield f"{table}.{name}", template
