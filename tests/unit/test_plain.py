"""Whatever goes in, what comes out crosses processes: exact types, valid UTF-8, JSON."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_harbor.episode.outcome import Outcome
from pytest_harbor.episode.result import Fault
from pytest_harbor.plain import TOO_DEEP, Plain, plain, plain_text


class Colour(Enum):
    RED = "red"


class Number(IntEnum):
    ONE = 1


@dataclass
class Point:
    x: int
    where: Path


class Hostile:
    def __str__(self) -> str:
        raise ValueError("no")

    __repr__ = __str__


class Text(str):
    __slots__ = ()


ANY_TEXT = st.text(st.characters(exclude_categories=()))  # surrogates, too
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    ANY_TEXT,
    ANY_TEXT.map(Text),
    st.binary(),
    st.decimals(),
    st.dates(),
    st.datetimes(),
    st.timedeltas(),
    st.sampled_from([*Colour, *Number, *Outcome]),
    st.builds(Path, st.text(st.characters(exclude_characters="\x00"))),
    st.complex_numbers(),
    st.builds(Hostile),
)
KEYS = st.one_of(ANY_TEXT, st.integers(), st.none(), st.sampled_from(Outcome), st.builds(Path))
ANYTHING = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner),
        st.tuples(inner, inner),
        st.frozensets(st.integers()),
        st.dictionaries(KEYS, inner),
        st.builds(Point, inner, inner),
    ),
    max_leaves=20,
)


def is_exact(value: Plain) -> bool:
    if type(value) is list:
        return all(map(is_exact, value))
    if type(value) is dict:
        return all(type(key) is str and is_exact(entry) for key, entry in value.items())
    return type(value) in (str, int, float, bool, type(None))


@given(ANYTHING)
def test_anything_becomes_json_and_stays_as_it_is(value: Any) -> None:
    made = plain(value)
    assert is_exact(made)
    encoded = json.dumps(made, allow_nan=False, ensure_ascii=False).encode("utf-8")
    assert json.loads(encoded) == made
    assert plain(made) == made


@given(ANYTHING)
def test_anything_crosses_the_channel_of_xdist(value: Any) -> None:
    from execnet.gateway_base import dumps, loads

    made = plain(value)
    assert loads(dumps(made)) == made


@given(ANY_TEXT)
def test_text_that_was_fine_is_not_changed(text: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        assert "?" in plain_text(text)
    else:
        assert plain_text(text) == text


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Outcome.PASSED, "passed"),
        (Number.ONE, 1),
        (Path("/a/b"), "/a/b"),
        (datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02T00:00:00+00:00"),
        (date(2026, 1, 2), "2026-01-02"),
        (timedelta(minutes=1), 60.0),
        (Decimal("1.5"), "1.5"),
        (math.nan, None),
        (-math.inf, None),
        (2**70, str(2**70)),
        (-(2**70), str(-(2**70))),
        (2**33, 2**33),
        (-(2**33), float(-(2**33))),
        (b"ab\xff", "ab\ufffd"),
        ((1, {2: True}), [1, {"2": True}]),
        (Point(1, Path("x")), {"x": 1, "where": "x"}),
        (Point, str(Point)),
        (Hostile(), "(Hostile that cannot be shown)"),
        (
            Fault(outcome=Outcome.INTERNAL, phase="start", message="m"),
            {"outcome": "internal", "phase": "start", "message": "m"},
        ),
    ],
)
def test_what_becomes_of(value: object, expected: Plain) -> None:
    assert plain(value) == expected
    assert type(plain(value)) is type(expected)


def test_data_that_contains_itself_ends() -> None:
    circle: list[Any] = []
    circle.append(circle)
    assert TOO_DEEP in json.dumps(plain(circle))
