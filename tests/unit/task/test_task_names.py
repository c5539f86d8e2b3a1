"""Names that a task gives: what is refused, and which two are one."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_harbor.task import names

GOOD = [
    "a",
    "01_plan",
    "a b",
    " a",
    "é",
    "a.b",
    "con2",
    "console",
    "日本",
    "a[1]",
    ".hidden",
    "x" * 255,
]
BAD = ["", ".", "..", "a.", "a ", "a/b", "a\\b", "a:b", "a::b", "a|b", "a?", "a*", "<a", "a>", '"']
DEVICES = ["CON", "con", "Nul", "aux.txt", "COM1", "lpt9", "com¹", "prn.tar.gz", "con .x"]


@pytest.mark.parametrize("name", GOOD)
def test_a_step_may_be_called(name: str) -> None:
    assert names.step_name(name) == name


@pytest.mark.parametrize("name", [*BAD, *DEVICES, "a\n", "\x00", "a\x7f", "é" * 128, "x" * 256])
def test_a_step_may_not_be_called(name: str) -> None:
    with pytest.raises(ValueError, match=r"; (rename|name|shorten)"):
        names.step_name(name)


@pytest.mark.parametrize(
    ("one", "other"),
    [("Plan", "plan"), ("e\u0301", "é"), ("É", "e\u0301"), ("straße", "STRASSE"), ("a", "a")],
)
def test_twins(one: str, other: str) -> None:
    assert names.twins([one, "else", other]) == (one, other)


def test_no_twins() -> None:
    assert names.twins(["a", "b", "ab"]) is None


@given(st.text(min_size=1, max_size=300))
def test_an_accepted_name_is_one_safe_path_component(name: str) -> None:
    try:
        names.step_name(name)
    except ValueError:
        return
    assert not set(name) & set('/\\\x00:*?"<>|')
    assert name not in (".", "..")
    assert len(name.encode()) <= 255


@given(st.text(min_size=1))
def test_a_name_is_the_twin_of_its_other_forms(name: str) -> None:
    for form in ("NFC", "NFD"):
        assert names.twins([name, unicodedata.normalize(form, name)])


@pytest.mark.parametrize("name", ["a/b", "Org-1/x.y_z", "0/1"])
def test_package_name(name: str) -> None:
    assert names.package_name(name) == name


@pytest.mark.parametrize(
    "name", ["a", "a/b/c", "/b", "a/", "-a/b", "a/.b", "a/b..c", "a b/c", "ä/b"]
)
def test_no_package_name(name: str) -> None:
    with pytest.raises(ValueError, match="org/name"):
        names.package_name(name)


@pytest.mark.parametrize(
    ("header", "secret"),
    [
        ("Authorization", True),
        ("X-API-Key", True),
        ("Proxy-Authorization", True),
        ("X-Auth-Token", True),
        ("cookie", True),
        ("Accept", False),
        ("X-Author", False),
        ("X-Keyboard", False),
    ],
)
def test_headers_that_hold_a_secret(header: str, secret: bool) -> None:
    assert names.is_credential(header) is secret
