"""Calls pass through the gateway in all wires, whole and piece by piece, and faults as they are."""

from __future__ import annotations

import json
import threading
from typing import Any

import httpx2
import pytest
from fake_model_server import CANARY, FakeModelServer, Planned
from wire_shapes import (
    CHAT,
    CHAT_STREAM,
    COST,
    DONE,
    MESSAGE,
    MESSAGES_STREAM,
    RESPONSE,
    RESPONSES_STREAM,
    USAGE_CHUNK,
    chunk,
)

from pytest_harbor.gateway import Access, Gateway, ModelServer, Usage

USAGE = Usage(input=1000, output=100, cached=400, reasoning=30)
WIRES = [
    pytest.param("chat/completions", CHAT, CHAT_STREAM, id="chat"),
    pytest.param("responses", RESPONSE, RESPONSES_STREAM, id="responses"),
    pytest.param("messages", MESSAGE, MESSAGES_STREAM, id="messages"),
]
ASK = {"model": "asked-1", "messages": [{"role": "user", "content": "Hello"}]}


@pytest.mark.parametrize(("path", "whole", "_stream"), WIRES)
def test_a_whole_answer_comes_unchanged_and_is_counted(
    path: str,
    whole: dict[str, Any],
    _stream: list[bytes],
    gateway: Gateway,
    access: Access,
    upstream: FakeModelServer,
    client: httpx2.Client,
) -> None:
    upstream.plan(Planned(body=whole))
    answer = client.post(f"{access.v1}/{path}", json=ASK)
    assert (answer.status_code, answer.json()) == (200, whole)
    (call,) = gateway.calls("ep1")
    assert call.usage is not None
    assert (call.usage.input, call.usage.output, call.usage.cached) == (1000, 100, 400)
    assert (call.asked_model, call.served_model) == ("asked-1", "real-1")
    assert call.cost_usd == pytest.approx(COST)
    assert (call.status, call.ended, call.fault, call.streamed) == (200, "done", None, False)


@pytest.mark.parametrize(("path", "_whole", "stream"), WIRES)
def test_a_streamed_answer_comes_unchanged_and_is_counted(
    path: str,
    _whole: dict[str, Any],
    stream: list[bytes],
    gateway: Gateway,
    access: Access,
    upstream: FakeModelServer,
    client: httpx2.Client,
) -> None:
    upstream.plan(Planned(events=[*stream]))
    asked = {**ASK, "stream": True, "stream_options": {"include_usage": True}}
    answer = client.post(f"{access.v1}/{path}", json=asked)
    assert answer.content == b"".join(stream)
    assert answer.headers["content-type"].startswith("text/event-stream")
    (call,) = gateway.calls("ep1")
    assert call.usage is not None
    assert (call.usage.input, call.usage.output, call.usage.cached) == (1000, 100, 400)
    assert call.cost_usd == pytest.approx(COST)
    assert (call.ended, call.streamed) == ("done", True)


def test_a_stream_arrives_as_it_comes(
    access: Access, upstream: FakeModelServer, client: httpx2.Client
) -> None:
    gate = threading.Event()
    first, second = chunk("H")[:10], chunk("H")[10:]  # cut where the network likes to cut
    upstream.plan(Planned(events=[first, 0.01, second, gate, chunk("i", "stop"), DONE]))
    asked = {**ASK, "stream": True, "stream_options": {"include_usage": True}}
    with client.stream("POST", f"{access.v1}/chat/completions", json=asked) as answer:
        arriving = answer.iter_bytes()
        assert next(arriving) == chunk("H")
        gate.set()
        assert b"".join(arriving) == chunk("i", "stop") + DONE


def test_usage_is_asked_for_and_not_shown_to_a_client_that_did_not_ask(
    gateway: Gateway, access: Access, upstream: FakeModelServer, client: httpx2.Client
) -> None:
    with_null = [chunk("Hi", usage=None), chunk("", "stop", usage=None)]
    upstream.plan(Planned(events=[b": ping\n\n", *with_null, USAGE_CHUNK, DONE]))
    answer = client.post(f"{access.v1}/chat/completions", json={**ASK, "stream": True})
    assert upstream.got[0].body["stream_options"] == {"include_usage": True}
    assert answer.content == b": ping\n\n" + chunk("Hi") + chunk("", "stop") + DONE
    assert gateway.calls("ep1")[0].usage == USAGE


def test_what_a_server_sends_beside_the_end_of_a_text_is_kept(
    access: Access, upstream: FakeModelServer, client: httpx2.Client
) -> None:
    last = chunk("i", "stop", usage={"prompt_tokens": 5, "completion_tokens": 1})
    upstream.plan(Planned(events=[chunk("H"), last, DONE]))
    answer = client.post(f"{access.v1}/chat/completions", json={**ASK, "stream": True})
    assert answer.content == chunk("H") + chunk("i", "stop") + DONE


@pytest.mark.parametrize("prefix", ["", "/v1", "/v1/v1"])
def test_clients_may_add_the_version_or_not(
    prefix: str, access: Access, upstream: FakeModelServer, client: httpx2.Client
) -> None:
    upstream.plan(Planned(body=CHAT))
    assert client.post(f"{access.url}{prefix}/chat/completions", json=ASK).json() == CHAT
    assert upstream.got[0].path == "/v1/chat/completions"
    models = client.get(f"{access.url}{prefix}/models").json()
    assert [each["id"] for each in models["data"]] == ["real-1"]


def test_the_server_gets_its_key_and_model_and_nothing_of_the_clients(
    access: Access, upstream: FakeModelServer, client: httpx2.Client
) -> None:
    upstream.plan(Planned(body=MESSAGE))
    dummies = {
        "authorization": "Bearer dummy",
        "x-api-key": "dummy",
        "x-goog-api-key": "dummy",
        "cookie": "a=b",
        "anthropic-beta": "feature-1",
    }
    client.post(f"{access.url}/v1/messages?beta=true&x=1", json=ASK, headers=dummies)
    (got,) = upstream.got
    assert got.body == {**ASK, "model": "real-1"}
    assert got.query == "beta=true"
    assert got.headers["x-api-key"] == CANARY
    assert (got.headers["anthropic-beta"], got.headers["anthropic-version"]) == (
        "feature-1",
        "2023-06-01",
    )
    assert "dummy" not in str(got.headers)
    assert "cookie" not in got.headers
    assert "authorization" not in got.headers


def test_the_definition_is_laid_over_the_request(
    gateway: Gateway,
    policy: ModelServer,
    upstream: FakeModelServer,
    client: httpx2.Client,
) -> None:
    extra = {"reasoning": {"effort": "high"}, "max_tokens": None, "temperature": 0}
    given = {**vars(policy), "extra_body": extra, "headers": {"X-Title": "bench"}}
    access = gateway.open("ep1", "user", ModelServer(**given))
    upstream.plan(Planned(body=CHAT))
    asked = {**ASK, "max_tokens": 9, "reasoning": {"summary": "auto", "effort": "low"}}
    client.post(f"{access.v1}/chat/completions", json=asked)
    (got,) = upstream.got
    assert got.body["reasoning"] == {"summary": "auto", "effort": "high"}
    assert got.body["temperature"] == 0
    assert "max_tokens" not in got.body
    assert got.headers["x-title"] == "bench"
    assert got.headers["authorization"] == f"Bearer {CANARY}"


def test_a_servers_error_comes_unchanged_with_its_safe_headers(
    gateway: Gateway, access: Access, upstream: FakeModelServer, client: httpx2.Client
) -> None:
    body = {"error": {"message": "maximum context length is 8192", "code": "x"}}
    headers = {
        "x-request-id": "req-1",
        "x-ratelimit-remaining-tokens": "7",
        "openai-organization": "my-company",
        "set-cookie": "a=b",
    }
    upstream.plan(Planned(status=400, body=body, headers=headers))
    answer = client.post(f"{access.v1}/chat/completions", json=ASK)
    assert (answer.status_code, answer.json()) == (400, body)
    assert answer.headers["x-request-id"] == "req-1"
    assert answer.headers["x-ratelimit-remaining-tokens"] == "7"
    assert "openai-organization" not in answer.headers
    assert "set-cookie" not in answer.headers
    (call,) = gateway.calls("ep1")
    assert (call.ended, call.fault, call.status) == ("failed", "context_overflow", 400)
    assert call.message == "maximum context length is 8192"


def test_an_error_inside_a_stream_passes_and_is_entered(
    gateway: Gateway, access: Access, upstream: FakeModelServer, client: httpx2.Client
) -> None:
    error = b'data: {"error": {"message": "Overloaded", "code": 503}}\n\n'
    upstream.plan(Planned(events=[chunk("H"), error]))
    answer = client.post(f"{access.v1}/chat/completions", json={**ASK, "stream": True})
    assert answer.content == chunk("H") + error
    (call,) = gateway.calls("ep1")
    assert (call.ended, call.fault, call.message) == ("failed", "server", "Overloaded")


def test_a_stream_that_breaks_off_breaks_off_for_the_client_too(
    gateway: Gateway, access: Access, upstream: FakeModelServer, client: httpx2.Client
) -> None:
    upstream.plan(Planned(events=[chunk("H"), 0.02, "cut"]))
    with pytest.raises(httpx2.RemoteProtocolError):
        client.post(f"{access.v1}/chat/completions", json={**ASK, "stream": True})
    (call,) = gateway.calls("ep1")
    assert (call.ended, call.fault) == ("failed", "cut")
    assert len(upstream.got) == 1  # something was passed on: no second try


def test_a_connection_that_breaks_after_all_was_said_is_no_fault(
    gateway: Gateway, access: Access, upstream: FakeModelServer, client: httpx2.Client
) -> None:
    upstream.plan(Planned(events=[chunk("Hi", "stop"), DONE, 0.05, "cut"]))
    answer = client.post(f"{access.v1}/chat/completions", json={**ASK, "stream": True})
    assert answer.content == chunk("Hi", "stop") + DONE
    assert gateway.calls("ep1")[0].ended == "done"


def test_a_stream_without_its_end_is_entered_as_cut(
    gateway: Gateway, access: Access, upstream: FakeModelServer, client: httpx2.Client
) -> None:
    upstream.plan(Planned(events=[chunk("H")]))
    client.post(f"{access.v1}/chat/completions", json={**ASK, "stream": True})
    assert gateway.calls("ep1")[0].fault == "cut"


@pytest.mark.parametrize(
    ("content", "status"), [(b"no json", 400), (b"[1]", 400), (json.dumps(ASK).encode(), 200)]
)
def test_only_json_objects_are_requests(
    content: bytes, status: int, access: Access, upstream: FakeModelServer, client: httpx2.Client
) -> None:
    upstream.plan(Planned(body=CHAT))
    answer = client.post(f"{access.v1}/chat/completions", content=content)
    assert answer.status_code == status
    assert len(upstream.got) == (status == 200)


def test_token_ids_and_logprobs_are_kept_on_request(
    gateway: Gateway,
    policy: ModelServer,
    terms: Any,
    upstream: FakeModelServer,
    client: httpx2.Client,
) -> None:
    gateway.begin("ep1", terms)
    access = gateway.open("ep1", "agent", ModelServer(**{**vars(policy), "keep_tokens": True}))

    def part(text: str, finish: str | None, ids: list[int], **more: Any) -> bytes:
        choice = {
            "index": 0,
            "delta": {"content": text},
            "finish_reason": finish,
            "token_ids": ids,
            "logprobs": {"content": [{"token": text, "logprob": -0.5}]},
        }
        return (
            b"data: " + json.dumps({"model": "m", "choices": [choice], **more}).encode() + b"\n\n"
        )

    first = part("H", None, [5], prompt_token_ids=[1, 2, 3])
    upstream.plan(Planned(events=[first, part("i", "stop", [6, 7]), DONE]))
    client.post(f"{access.v1}/chat/completions", json={**ASK, "stream": True})
    kept = json.loads((terms.ledger.parent / "ledger.tokens.jsonl").read_text())
    assert kept["call"] == gateway.calls("ep1")[0].id
    assert kept["prompt_token_ids"] == [1, 2, 3]
    assert kept["token_ids"] == [5, 6, 7]
    assert [each["token"] for each in kept["logprobs"]] == ["H", "i"]
