"""Small parts of the HTTP provider: addresses, laying tables over each other, events."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_harbor.gateway.sse import Splitter, data_of, encode, json_of
from pytest_harbor.gateway.upstream import address, merge


@pytest.mark.parametrize(
    ("base", "at"),
    [
        ("https://api.example.org", "https://api.example.org/v1/responses"),
        ("https://api.example.org/", "https://api.example.org/v1/responses"),
        ("https://api.example.org/v1", "https://api.example.org/v1/responses"),
        ("https://x.example/api/paas/v4/", "https://x.example/api/paas/v4/responses"),
        ("https://x.example/v1beta/openai", "https://x.example/v1beta/openai/responses"),
        ("http://127.0.0.1:4000/llm", "http://127.0.0.1:4000/llm/v1/responses"),
    ],
)
def test_a_version_is_added_where_there_is_none(base: str, at: str) -> None:
    assert address(base, "responses") == at


@pytest.mark.parametrize(
    ("body", "over", "merged"),
    [
        ({"a": 1}, {"b": 2}, {"a": 1, "b": 2}),
        ({"a": {"x": 1, "y": 2}}, {"a": {"y": 3}}, {"a": {"x": 1, "y": 3}}),
        ({"a": {"x": 1}}, {"a": {"x": None}}, {"a": {}}),
        ({"a": [1]}, {"a": [2]}, {"a": [2]}),
        ({"a": 1}, {"a": None, "b": None}, {}),
    ],
)
def test_tables_are_laid_over_each_other(
    body: dict[str, Any], over: dict[str, Any], merged: dict[str, Any]
) -> None:
    assert merge(body, over) == merged


@pytest.mark.parametrize("end", [b"\n\n", b"\r\n\r\n", b"\r\r"])
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_a_stream_is_cut_into_events_wherever_the_network_cuts_it(end: bytes, size: int) -> None:
    events = [b"data: one" + end, b": ping" + end, b"event: x" + end[:1] + b"data: two" + end]
    stream = b"".join(events) + b"data: half"
    splitter = Splitter()
    parts = [stream[start : start + size] for start in range(0, len(stream), size)]
    found = [event for part in parts for event in splitter.feed(part)]
    assert b"".join(found) + splitter.rest() == stream
    assert [data_of(each) for each in found][:3:2] == ["one", "two"]


def test_data_of_several_lines_is_joined_and_only_lines_end_lines() -> None:
    assert data_of(b"data: a\ndata:b\nid: 1\n\n") == "a\nb"
    text = "a\u2028b"
    assert json_of(encode({"text": text})) == {"text": text}
    assert json_of(b"data: [1]\n\n") is None
