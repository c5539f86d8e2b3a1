"""A scripted model's rules, as they are written in YAML, and which of them meets a request.

    model: scripted-1                  # optional: the name under which it answers
    rules:                             # the first that meets a request answers it
      - when: {turn: 1}
        think: I should ask first.
        say: Let me ask.               # text beside a call is fine
        call: {tool: ask_user, arguments: {question: 'What shall I do?'}}
      - when: {turn: 2, tool: 'blue'}  # a pattern for the last tool result
        shell: echo blue > hello.txt   # the request's own shell tool, whatever it is called
      - when: {call: [3, 4]}
        fault: {status: 429, retry_after: 1}
      - say: Done.
        delay: 0.5

Conditions: ``turn`` (1 for the first answer after the user's last message), ``call`` (1 for the
party's first call in the episode), ``party``, ``offers`` (a tool), and patterns, searched for in
``user`` (last message), ``tool`` (last result), ``last`` (whichever came last), ``system`` and
``model``. Others: ``times`` (how often a rule may answer), ``delay`` (seconds before the answer),
``pace`` (seconds between the parts of a stream), ``usage`` (``input``, ``output``, ``cached``,
``written``, ``reasoning``; otherwise guessed from the lengths), and ``fault``: ``status`` with
``message`` and ``retry_after``, or ``cut`` (parts after which the connection breaks), or ``hang``.

A rule that calls a tool does not meet a request that offers none: CLIs ask for titles that way.
If nothing else meets such a request, it gets a word of no meaning.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from re import Pattern
from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from pytest_harbor.errors import RecipeError
from pytest_harbor.gateway.wires.base import Conversation, Tool, find_tool
from pytest_harbor.hints import hint

SHELLS: Final = (
    "exec_command",
    "Bash",
    "bash",
    "run_shell_command",
    "execute_bash",
    "shell",
    "run_command",
    "terminal",
)
"""What agents call the tool that runs a shell command."""
_COMMANDS: Final = ("cmd", "command", "script", "code")
_EMPTY: Final[Mapping[str, Any]] = {
    "string": "",
    "number": 0,
    "integer": 0,
    "boolean": False,
    "array": [],
    "object": {},
}


def _listed(value: Any) -> Any:
    return value if isinstance(value, list | tuple) or value is None else [value]


Numbers = Annotated[tuple[int, ...], BeforeValidator(_listed)]
Names = Annotated[tuple[str, ...], BeforeValidator(_listed)]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class When(_Table):
    """What a request must be like; what is not given does not matter."""

    turn: Numbers | None = None
    call: Numbers | None = None
    party: Names | None = None
    offers: Names | None = None
    user: Pattern[str] | None = None
    tool: Pattern[str] | None = None
    last: Pattern[str] | None = None
    system: Pattern[str] | None = None
    model: Pattern[str] | None = None

    def meets(self, asked: Conversation, party: str, number: int) -> bool:
        """Whether a request is like that; ``number`` counts the party's calls from 1."""
        last_said = asked.said[-1].text if asked.said else ""
        patterns = (
            (self.user, asked.last("user")),
            (self.tool, asked.last("tool")),
            (self.last, last_said),
            (self.system, asked.system),
            (self.model, asked.model),
        )
        return (
            (self.turn is None or asked.turn in self.turn)
            and (self.call is None or number in self.call)
            and (self.party is None or party in self.party)
            and (self.offers is None or find_tool(self.offers, asked.tools) is not None)
            and all(pattern.search(text) for pattern, text in patterns if pattern is not None)
        )


class Wanted(_Table):
    """A tool call; the first tool that one of the names fits is called."""

    tool: Names
    arguments: dict[str, Any] = Field(default_factory=dict)


class Fault(_Table):
    """What goes wrong instead of an answer, or in the middle of it."""

    status: Annotated[int, Field(ge=400, le=599)] | None = None
    message: str = "a scripted fault"
    retry_after: Seconds | None = None
    cut: Annotated[int, Field(ge=0)] | None = None
    hang: bool = False


class Counts(_Table):
    """Tokens that the answer says it took."""

    input: int = 0
    output: int = 0
    cached: int = 0
    written: int = 0
    reasoning: int = 0


class Rule(_Table):
    """When it meets, and what is then answered."""

    when: When = When()
    times: Annotated[int, Field(ge=1)] | None = None
    think: str = ""
    say: str = ""
    call: Annotated[tuple[Wanted, ...], BeforeValidator(_listed)] = ()
    shell: str | None = None
    delay: Seconds = 0.0
    pace: Seconds = 0.0
    usage: Counts | None = None
    fault: Fault | None = None

    @property
    def calls_tools(self) -> bool:
        """Whether it can only answer a request that offers tools."""
        return bool(self.call) or self.shell is not None


class Script(_Table):
    """All rules of a scripted model."""

    model: str | None = None
    rules: tuple[Rule, ...]


def load_script(path: Path) -> Script:
    """Read a script.

    Raises:
        RecipeError: it cannot be read or says something that no rule can say; names the place.
    """
    try:
        return _load(path, path.stat().st_mtime_ns)
    except OSError as error:
        raise RecipeError(f"{path}: the script cannot be read ({error.strerror})") from None


@lru_cache(maxsize=64)
def _load(path: Path, _changed: int) -> Script:
    import yaml

    try:
        return Script.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    except yaml.YAMLError as error:
        raise RecipeError(f"{path}: is not valid YAML: {' '.join(str(error).split())}") from None
    except ValidationError as error:
        problems = (f"{path}: {_explain(each)}" for each in error.errors())
        raise RecipeError("\n".join(problems)) from None


def _explain(problem: Mapping[str, Any]) -> str:
    *outer, last = problem["loc"] or ("",)
    if problem["type"] == "extra_forbidden":
        words = {name for table in _Table.__subclasses__() for name in table.model_fields}
        return f"{_place(outer)}: unknown key {last}; {hint(str(last), sorted(words))}"
    if not problem["loc"]:
        return "a script is a mapping with a list of rules: {rules: [...]}"
    return f"{_place(problem['loc'])}: {problem['msg']}"


def _place(parts: Iterable[int | str]) -> str:
    """Where in the file: rules are counted from 1, as people do."""
    words = [f"rule {part + 1}" if isinstance(part, int) else part for part in parts]
    return " ".join(word for word in words if word != "rules") or "the file"


def shell_arguments(tool: Tool, command: str) -> dict[str, Any]:
    """Arguments with which a shell tool runs a command."""
    properties = _properties(tool)
    name = next((each for each in _COMMANDS if each in properties), "command")
    is_list = properties.get(name, {}).get("type") == "array"
    return {name: ["bash", "-lc", command] if is_list else command}


def complete(tool: Tool, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments, with something harmless for each other one that the tool requires."""
    required = tool.schema.get("required")
    missing = [name for name in required if name not in arguments] if required else []
    properties = _properties(tool)
    return {**arguments, **{name: _something(properties.get(name, {})) for name in missing}}


def _properties(tool: Tool) -> Mapping[str, Any]:
    properties = tool.schema.get("properties")
    return properties if isinstance(properties, Mapping) else {}


def _something(schema: Mapping[str, Any]) -> Any:
    if schema.get("enum"):
        return schema["enum"][0]
    return _EMPTY.get(str(schema.get("type")).lower(), "")  # Google writes STRING
