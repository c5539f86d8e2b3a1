"""``${NAME}`` and ``${NAME:-default}`` in the values of a task (harbor-format 7 and 8).

In ``env`` tables a value is a template only if the whole string is one; in the headers of MCP
servers templates may stand inside text. Values come from a mapping that the caller chose, never
from this process's own environment.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pytest_harbor.errors import RecipeError

_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
# A whole value; its default may hold braces, but "${A:-x}${B}" is two templates, so a literal.
_WHOLE = re.compile(rf"\$\{{({_NAME})(?::-((?:(?!\}}\$\{{).)*))?\}}", re.DOTALL)
_PURE = re.compile(rf"(?:\$\{{{_NAME}(?::-)?\}})+")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9-]*")
_INSIDE = re.compile(rf"\$\{{({_NAME})(?::-([^}}]*))?\}}")


@dataclass(frozen=True)
class Reference:
    """A variable that a template asks for; ``default`` is None when it must be set."""

    name: str
    default: str | None = None


def referenced_names(values: Iterable[str], *, embedded: bool = False) -> tuple[Reference, ...]:
    """List what the templates among ``values`` ask for, in order, each once.

    ``embedded`` also finds templates inside text, as in MCP headers.
    """
    found = []
    for value in values:
        matches = _INSIDE.finditer(value) if embedded else filter(None, [_WHOLE.fullmatch(value)])
        found += [Reference(match[1], match[2]) for match in matches]
    return tuple(dict.fromkeys(found))


def is_pure_reference(text: str) -> bool:
    """Tell whether a header's value holds nothing but references, after an optional scheme.

    ``Bearer ${TOKEN}`` does; ``Bearer abc`` and ``${TOKEN:-abc}`` do not (harbor-format 8).
    """
    scheme, _, rest = text.strip().rpartition(" ")
    return bool(_PURE.fullmatch(rest)) and (not scheme or bool(_SCHEME.fullmatch(scheme)))


def resolve_value(value: str, variables: Mapping[str, str], *, where: str) -> str:
    """Resolve one value of an ``env`` table; text that is no whole template stays as it is.

    A variable that is set but empty counts as set. Raises RecipeError naming the variable and
    ``where`` (table and key) when it is neither set nor given a default.
    """
    match = _WHOLE.fullmatch(value)
    return value if match is None else _look_up(match, variables, where)


def resolve_table(
    table: Mapping[str, str], variables: Mapping[str, str], *, where: str
) -> dict[str, str]:
    """Resolve a whole ``env`` table; ``where`` is its name, for example ``[verifier.env]``."""
    return {
        key: resolve_value(value, variables, where=f"{where} {key}") for key, value in table.items()
    }


def resolve_embedded(text: str, variables: Mapping[str, str], *, where: str) -> str:
    """Resolve every template inside ``text`` (MCP headers); the rest stays as it is."""
    return _INSIDE.sub(lambda match: _look_up(match, variables, where), text)


def _look_up(match: re.Match[str], variables: Mapping[str, str], where: str) -> str:
    name, default = match[1], match[2]
    if name in variables:
        return variables[name]
    if default is not None:
        return default
    raise RecipeError(
        f"{where} asks for the variable {name}, which is not set; "
        f"set it for this run, or write a default: ${{{name}:-value}}"
    )
