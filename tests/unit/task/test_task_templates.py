"""Templates in env tables and headers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_harbor.errors import RecipeError
from pytest_harbor.task.templates import (
    Reference,
    is_pure_reference,
    referenced_names,
    resolve_embedded,
    resolve_table,
    resolve_value,
)

SET = {"A": "alpha", "EMPTY": "", "_x1": "y"}


@pytest.mark.parametrize(
    ("value", "resolved"),
    [
        ("${A}", "alpha"),
        ("${A:-other}", "alpha"),
        ("${EMPTY:-other}", ""),
        ("${_x1}", "y"),
        ("${NONE:-}", ""),
        ("${NONE:-a:-b}", "a:-b"),
        ("${NONE:-{}}", "{}"),
        ("${NONE:-${A}}", "${A}"),
        ("${NONE:-two\nlines}", "two\nlines"),
        ("pre-${A}", "pre-${A}"),
        ("${A} ", "${A} "),
        ("${A}\n", "${A}\n"),
        ("${A}${A}", "${A}${A}"),
        ("${A:-x}${A}", "${A:-x}${A}"),
        ("$A", "$A"),
        ("${1A}", "${1A}"),
        ("${A-b}", "${A-b}"),
        ("$${A}", "$${A}"),
        ("", ""),
    ],
)
def test_only_a_whole_string_is_a_template(value: str, resolved: str) -> None:
    assert resolve_value(value, SET, where="[verifier.env] K") == resolved


def test_a_missing_variable_is_named_with_its_table() -> None:
    with pytest.raises(RecipeError) as caught:
        resolve_table({"OK": "${A}", "KEY": "${NONE}"}, SET, where="[verifier.env]")
    message = str(caught.value)
    assert "NONE" in message
    assert "[verifier.env] KEY" in message
    assert "${NONE:-value}" in message


def test_a_table() -> None:
    table = {"K": "${A}", "L": "literal"}
    assert resolve_table(table, SET, where="[e]") == {"K": "alpha", "L": "literal"}
    assert table["K"] == "${A}"


def test_the_process_environment_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOST_ONLY", "secret")
    with pytest.raises(RecipeError, match="HOST_ONLY"):
        resolve_value("${HOST_ONLY}", {}, where="[environment.env] K")


@pytest.mark.parametrize(
    ("text", "resolved"),
    [
        ("Bearer ${A}", "Bearer alpha"),
        ("${A}-${_x1}-${N:-d}", "alpha-y-d"),
        ("$A ${}", "$A ${}"),
    ],
)
def test_inside_a_header(text: str, resolved: str) -> None:
    assert resolve_embedded(text, SET, where="h") == resolved


def test_inside_a_header_a_missing_variable_is_an_error() -> None:
    with pytest.raises(RecipeError, match=r"headers\] X asks for the variable NONE"):
        resolve_embedded("Bearer ${NONE}", SET, where="[mcp headers] X")


def test_a_value_is_not_resolved_again() -> None:
    variables = {"A": "${B}", "B": "no"}
    assert resolve_value("${A}", variables, where="w") == "${B}"
    assert resolve_embedded("x${A}", variables, where="w") == "x${B}"


def test_what_is_asked_for() -> None:
    values = ["${A}", "x", "${B:-b}", "${A}", "x${C}"]
    assert referenced_names(values) == (Reference("A"), Reference("B", "b"))
    assert referenced_names(values, embedded=True)[-1] == Reference("C")


@pytest.mark.parametrize("text", ["${A}", "Bearer ${A}", "${A}${B}", " Basic ${A} ", "${A:-}"])
def test_nothing_but_references(text: str) -> None:
    assert is_pure_reference(text)


@pytest.mark.parametrize("text", ["abc", "Bearer abc", "x${A}", "${A:-abc}", "", "a b ${A}"])
def test_more_than_references(text: str) -> None:
    assert not is_pure_reference(text)


@given(st.text())
def test_text_without_a_dollar_sign_is_never_touched(text: str) -> None:
    plain = text.replace("$", "")
    assert resolve_value(plain, {}, where="w") == plain
    assert resolve_embedded(plain, {}, where="w") == plain


@given(st.from_regex(r"[A-Za-z_][A-Za-z0-9_]*", fullmatch=True), st.text())
def test_any_value_comes_through_whole(name: str, value: str) -> None:
    assert resolve_value(f"${{{name}}}", {name: value}, where="w") == value
    assert resolve_embedded(f"a${{{name}}}b", {name: value}, where="w") == f"a{value}b"


@given(st.text().filter(lambda text: "}${" not in text))
def test_any_default_comes_through_whole(default: str) -> None:
    assert resolve_value(f"${{NAME:-{default}}}", {}, where="w") == default
