"""Google's Gemini API goes through the gateway: to Google, from a recording, refused, blocked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fake_model_server import CANARY, FakeModelServer, Planned
from wire_shapes import COST, event

from pytest_harbor.gateway import Access, Gateway, ModelServer, Usage
from pytest_harbor.gateway.preflight import try_once
from pytest_harbor.gateway.wires.gemini import Gemini

USAGE = {
    "promptTokenCount": 900,
    "toolUsePromptTokenCount": 100,
    "candidatesTokenCount": 70,
    "cachedContentTokenCount": 400,
    "thoughtsTokenCount": 30,
    "totalTokenCount": 1100,
}
ASK = {"contents": [{"role": "user", "parts": [{"text": "Hello"}]}]}


def answer(text: str, finish: str | None = "STOP", usage: Any = USAGE) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": [{"text": text}]}}
    if finish:
        candidate["finishReason"] = finish
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "real-1"}


WHOLE = answer("Hi")
STREAM = [event(answer("H", None, {"promptTokenCount": 900})), event(answer("i"))]
PLAIN, STREAMED = "models/asked-1:generateContent", "models/asked-1:streamGenerateContent?alt=sse"


@pytest.fixture
def google(policy: ModelServer, gateway: Gateway, terms: Any) -> Access:
    """A door that lets the client's choice of a model through."""
    gateway.begin("ep1", terms)
    server = ModelServer(**{**vars(policy), "model": None})
    return gateway.open("ep1", "agent", server)


@pytest.mark.parametrize("version", ["v1beta", "v1"])
def test_both_kinds_of_answer_come_unchanged_and_are_counted(
    version: str, google: Access, gateway: Gateway, upstream: FakeModelServer, client: httpx2.Client
) -> None:
    upstream.plan(Planned(body=WHOLE), Planned(events=[*STREAM]))
    dummy = {"x-goog-api-key": "dummy"}
    whole = client.post(f"{google.url}/{version}/{PLAIN}", json=ASK, headers=dummy)
    streamed = client.post(f"{google.url}/{version}/{STREAMED}", json=ASK, headers=dummy)
    assert whole.json() == WHOLE
    assert streamed.content == b"".join(STREAM)
    assert [(got.path, got.query, got.body) for got in upstream.got] == [
        ("/v1beta/models/asked-1:generateContent", "", ASK),
        ("/v1beta/models/asked-1:streamGenerateContent", "alt=sse", ASK),
    ]
    assert {got.headers["x-goog-api-key"] for got in upstream.got} == {CANARY}
    assert not any("authorization" in got.headers for got in upstream.got)
    calls = gateway.calls("ep1")
    assert [(call.wire, call.streamed, call.fault) for call in calls] == [
        ("gemini", False, None),
        ("gemini", True, None),
    ]
    for call in calls:
        assert call.usage == Usage(input=1000, output=100, cached=400, reasoning=30)
        assert (call.asked_model, call.served_model) == ("asked-1", "real-1")
        assert call.cost_usd == pytest.approx(COST)


def test_the_servers_own_model_goes_into_the_path(
    access: Access, upstream: FakeModelServer, client: httpx2.Client
) -> None:
    upstream.plan(Planned(body=WHOLE))
    client.post(f"{access.url}/v1beta/models/another:generateContent", json=ASK)
    assert upstream.got[0].path == "/v1beta/models/real-1:generateContent"


def test_one_address_serves_googles_own_api_and_the_compatible_one() -> None:
    base = "https://generativelanguage.googleapis.com/v1beta/openai"
    place = Gemini().place(base, {"model": "m", "stream": True, **ASK})
    assert place == (base.removesuffix("/openai"), "models/m:streamGenerateContent?alt=sse", ASK)


def test_a_stream_without_its_end_is_cut_and_a_blocked_prompt_is_no_answer(
    google: Access, gateway: Gateway, upstream: FakeModelServer, client: httpx2.Client
) -> None:
    blocked = {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": USAGE}
    upstream.plan(
        Planned(events=STREAM[:1]),
        Planned(events=[event(blocked)]),
        Planned(body=blocked),
        Planned(events=[event({"error": {"code": 503, "message": "Overloaded"}})]),
    )
    for path in (STREAMED, STREAMED, PLAIN, STREAMED):
        client.post(f"{google.url}/v1beta/{path}", json=ASK)
    assert [(call.fault, call.message) for call in gateway.calls("ep1")] == [
        ("cut", "the stream ended without its last event"),
        ("server", "the prompt was blocked: SAFETY"),
        ("server", "the prompt was blocked: SAFETY"),
        ("server", "Overloaded"),
    ]


def test_what_is_not_there_is_said_in_googles_words(google: Access, client: httpx2.Client) -> None:
    models = client.get(f"{google.url}/v1beta/models").json()
    assert [each["id"] for each in models["data"]] == ["policy"]
    unknown = client.post(f"{google.url}/v1beta/models/m:countTokens", json=ASK)
    assert unknown.status_code == 404
    assert "/v1beta/models/<model>:generateContent" in unknown.json()["error"]["message"]
    broken = client.post(f"{google.url}/v1beta/{PLAIN}", content=b"no json")
    assert broken.json()["error"] == {
        "code": 400,
        "message": "the request is not JSON (bad_request)",
        "status": "INVALID_ARGUMENT",
    }


def test_a_recording_answers_again(
    policy: ModelServer, upstream: FakeModelServer, client: httpx2.Client, tmp_path: Path
) -> None:
    def turn(base: str, number: str, result: str) -> httpx2.Response:
        call = {"functionCall": {"id": number, "name": "f", "args": {"id": 7}}}
        back = {"functionResponse": {"id": number, "name": "f", "response": {"output": result}}}
        contents = [
            *ASK["contents"],
            {"role": "model", "parts": [{**call, "thoughtSignature": f"c2ln{number}"}]},
            {"role": "user", "parts": [back]},
        ]
        return client.post(f"{base}/v1beta/{STREAMED}", json={"contents": contents})

    upstream.plan(Planned(events=[*STREAM]))
    with Gateway(record=tmp_path, environment={"POLICY_KEY": CANARY}) as gateway:
        turn(gateway.open("ep1", "agent", policy).url, "1", "at 10:15:00")
    with Gateway(replay=tmp_path, environment={}) as gateway:
        base = gateway.open("ep1", "agent", policy).url
        differs = turn(base, "2", "another result")
        assert "functionResponse.response.output" in differs.json()["error"]["message"]
        assert turn(base, "2", "at 11:30:59").content == b"".join(STREAM)
        assert gateway.unreplayed("ep1") == {}


def test_it_can_be_tried_before_anything_is_spent(
    gateway: Gateway, policy: ModelServer, upstream: FakeModelServer
) -> None:
    upstream.plan(Planned(body=WHOLE))
    try_once(gateway, replace(policy, try_with="gemini"), "real-1")
    assert upstream.got[0].path == "/v1beta/models/real-1:generateContent"
    assert upstream.got[0].body["contents"][0]["parts"][0]["text"].startswith("Answer")
