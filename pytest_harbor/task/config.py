"""``task.toml`` as data: parse, tidy, check; the models are in :mod:`pytest_harbor.task.schema`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from pytest_harbor.errors import TaskError
from pytest_harbor.task.lenient import tidy
from pytest_harbor.task.place import render
from pytest_harbor.task.schema import TaskConfig
from pytest_harbor.task.toml import has_bom, parse_toml

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

__all__ = ["ParsedConfig", "TaskConfig", "parse_task_toml"]


@dataclass(frozen=True)
class ParsedConfig:
    """A ``task.toml`` that loads, and what its author should know.

    Each warning is one line, "<source>: <place>: <what and remedy>".
    """

    config: TaskConfig
    warnings: tuple[str, ...]


def parse_task_toml(data: bytes, source: str) -> ParsedConfig:
    """Read the bytes of a ``task.toml``; ``source`` names the file in every message.

    Raises TaskError with one line per problem: a wrong encoding or syntax with line and column,
    a wrong value with table and key. What Harbor refuses is refused here (a byte order mark
    excepted); what it takes although it is plainly a mistake loads with a warning.
    """
    raw = parse_toml(data, source)
    clean, warnings = tidy(raw)
    if has_bom(data):
        warnings = ("starts with a byte order mark; save it as UTF-8 without BOM", *warnings)
    try:
        config = TaskConfig.model_validate(clean)
    except ValidationError as error:
        problems = [f"{source}: {line}" for line in _problems(error, raw)]
        raise TaskError("\n".join(problems)) from error
    return ParsedConfig(config, tuple(f"{source}: {warning}" for warning in warnings))


def _problems(error: ValidationError, raw: dict[str, Any]) -> Iterator[str]:
    """Translate pydantic's findings into lines that an author can act upon."""
    for detail in error.errors(include_url=False):
        place = render(detail["loc"], raw)
        text = _explain(detail)
        yield f"{place}: {text}" if place else text


def _explain(detail: ErrorDetails) -> str:
    """Say what is wrong with one value, and what to write instead."""
    kind, shown = detail["type"], _show(detail["input"])
    if {"env", "headers"} & set(detail["loc"]):
        shown = "something else"  # it may be a secret
    context = detail.get("ctx", {})
    if kind == "value_error":
        return str(context["error"])
    if kind == "missing":
        return "is missing; add it"
    if kind == "literal_error":
        return f"must be {context['expected']}, is {shown}"
    if kind.startswith("tuple") and isinstance(detail["input"], dict):
        return f"must be an array of tables; write [[{detail['loc'][-1]}]], not one table"
    expected = next((text for start, text in _EXPECTED if kind.startswith(start)), None)
    if expected is None:
        return f"{detail['msg']} (is {shown})"
    return f"must be {expected}, is {shown}"


_EXPECTED = (
    ("string_type", 'a string in quotes, "..."'),
    ("string_too_short", "a string that is not empty"),
    ("int", "a whole number"),
    ("finite", "a finite number"),
    ("float", "a number"),
    ("tuple", "an array, [...]"),
    ("mapping", "a table"),
    ("dict", "a table"),
    ("model", "a table"),
    ("bool", "true or false"),
)


def _show(value: object) -> str:
    """Show a value as in TOML, shortened; of tables and arrays only that they are."""
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        return "an array"
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
