"""Server-sent events, cut at any byte."""

from __future__ import annotations

import pytest

from pytest_harbor.gateway.sse import Splitter, data_of, has_id, name_of, with_data

EVENTS = [b"data: a\n\n", b"event: x\r\nid: 1\r\ndata: b\r\n\r\n", b": c\n\n", b"data: d\r\r"]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 1000])
def test_events_are_the_same_in_whatever_pieces_they_come(size: int) -> None:
    stream, splitter, found = b"".join(EVENTS) + b"rest", Splitter(), []
    for start in range(0, len(stream), size):
        found += splitter.feed(stream[start : start + size])
    assert found == EVENTS
    assert (splitter.rest(), splitter.rest()) == (b"rest", b"")


def test_an_event_with_other_data_keeps_the_rest() -> None:
    event = with_data(b"id: 1\r\nevent: x\r\ndata: {\r\ndata: }\r\n\r\n", "new")
    assert event == b"id: 1\nevent: x\ndata: new\n\n"
    assert (name_of(event), data_of(event), has_id(event)) == ("x", "new", True)
    assert (name_of(b"data: a\n\n"), has_id(b"data: a\n\n")) == ("message", False)
