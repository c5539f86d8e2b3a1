"""Text is made harmless, numbers readable."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_harbor.report import text


@given(st.text())
def test_clean_text_is_legal_xml_and_clean_again(raw: str) -> None:
    once = text.clean(raw)
    element = ET.Element("a", name=once)
    element.text = once
    ET.fromstring(ET.tostring(element))
    assert text.escape(once) == once


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("a\x1b[2Kb\x1bMc", "abc"),
        ("nul\x00 del\x7f", "nul#x00 del#x7F"),
        ("\ud800 \ufffe", "#xD800 #xFFFE"),
        ("tab\tline\nword 😀 é", "tab\tline\nword 😀 é"),
        ("\x1b", "#x1B"),
        ("exe\u202egpj.", "exe#x202Egpj."),
    ],
)
def test_clean(raw: str, clean: str) -> None:
    assert text.clean(raw) == clean


def test_a_log_is_what_was_left_on_the_screen() -> None:
    assert text.log_text("10%\r50%\r100%\r\ndone\r\nlast\r") == "100%\ndone\nlast"


@pytest.mark.parametrize(
    ("raw", "line"),
    [("one", "one"), ("one\ntwo", "one …"), ("x" * 20, "x" * 9 + "…"), ("", ""), ("\n\n a", "a")],
)
def test_one_line(raw: str, line: str) -> None:
    assert text.one_line(raw, 10) == line


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0.0 s"),
        (9.96, "10.0 s"),
        (12.4, "12 s"),
        (59.7, "1 min 00 s"),
        (75, "1 min 15 s"),
        (3600, "1 h 00 min"),
        (7384, "2 h 03 min"),
    ],
)
def test_duration(seconds: float, shown: str) -> None:
    assert text.duration(seconds) == shown


@pytest.mark.parametrize(
    ("usd", "shown"),
    [
        (None, "—"),
        (0.0, "$0.00"),
        (0.00001, "<$0.0001"),
        (0.0123, "$0.012"),
        (9.836, "$9.84"),
        (1234.5, "$1,234.50"),
    ],
)
def test_money(usd: float | None, shown: str) -> None:
    assert text.money(usd) == shown


@pytest.mark.parametrize(
    ("number", "shown"),
    [(None, "—"), (950, "950"), (9_999, "9999"), (12_345, "12.3k"), (4_500_000, "4.5M")],
)
def test_count(number: int | None, shown: str) -> None:
    assert text.count(number) == shown


@pytest.mark.parametrize(
    ("number", "shown"),
    [(None, "—"), (1.0, "1.0"), (0.3333333, "0.333"), (0.0, "0.0"), (-1, "-1.0")],
)
def test_reward(number: float | None, shown: str) -> None:
    assert text.reward(number) == shown


@given(st.text(max_size=40), st.integers(1, 30))
def test_fit_is_exact(raw: str, cells: int) -> None:
    assert text.width(text.fit(raw, cells)) == cells


def test_wide_letters_take_two_cells() -> None:
    assert text.width("日本 e\u0301") == 6
    assert text.fit("日本語", 4) == "日… "
    assert text.size(999) == "999 B"
    assert text.size(500_000_000) == "500 MB"
