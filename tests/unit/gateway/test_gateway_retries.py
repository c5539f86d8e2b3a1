"""What is tried again, when, and what a client sees when it was in vain."""

from __future__ import annotations

import socket
import time
from typing import Any

import httpx2
import pytest
from fake_model_server import CANARY, FakeModelServer, Planned
from wire_shapes import CHAT, CHAT_STREAM, DONE, chunk

from pytest_harbor.gateway import Access, Gateway, ModelServer
from pytest_harbor.gateway.faults import LONGEST_WAIT, kind_of, pause_before, worth_retry

ASK = {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}
BUSY = {"error": {"message": "slow down", "type": "rate_limit_error"}}


def post(client: httpx2.Client, access: Access, **more: Any) -> httpx2.Response:
    return client.post(f"{access.v1}/chat/completions", json={**ASK, **more})


@pytest.mark.parametrize("stream", [False, True])
def test_a_busy_server_is_asked_again_after_the_time_it_names(
    stream: bool, gateway: Gateway, access: Access, upstream: FakeModelServer, client: httpx2.Client
) -> None:
    busy = Planned(status=429, body=BUSY, headers={"retry-after": "0.3"})
    upstream.plan(busy, Planned(status=503, body=b"down"))
    upstream.plan(Planned(events=[*CHAT_STREAM]) if stream else Planned(body=CHAT))
    began = time.monotonic()
    answer = post(client, access, stream=stream)
    assert answer.status_code == 200
    assert time.monotonic() - began >= 0.3
    (call,) = gateway.calls("ep1")
    assert call.retries == ("429", "503")
    assert (call.ended, call.fault) == ("done", None)
    assert gateway.summary("ep1").retries == 2


def test_when_tries_are_used_up_the_servers_own_answer_is_given(
    gateway: Gateway, policy: ModelServer, upstream: FakeModelServer, client: httpx2.Client
) -> None:
    server = ModelServer(**{**vars(policy), "retries": 2})
    access = gateway.open("ep1", "user", server)
    upstream.plan(Planned(status=429, body=BUSY, headers={"retry-after": "0"}))
    answer = post(client, access)
    assert (answer.status_code, answer.json()) == (429, BUSY)
    assert answer.headers["retry-after"] == "0"
    assert len(upstream.got) == 3
    assert gateway.calls("ep1")[0].fault == "rate_limited"


def test_a_pause_that_is_too_long_is_left_to_the_client(
    access: Access, upstream: FakeModelServer, client: httpx2.Client
) -> None:
    upstream.plan(Planned(status=429, body=BUSY, headers={"retry-after": "3600"}))
    assert post(client, access).status_code == 429
    assert len(upstream.got) == 1


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (400, {"error": {"code": "context_length_exceeded"}}, "context_overflow"),
        (500, {"error": {"message": "prompt is too long: 9 tokens"}}, "context_overflow"),
        (429, {"error": {"code": "insufficient_quota"}}, "quota"),
        (401, {"error": {"message": "bad key"}}, "auth"),
        (422, {"detail": "no"}, "bad_request"),
    ],
)
def test_b88_what_would_fail_again_is_tried_once(
    status: int,
    body: Any,
    kind: str,
    gateway: Gateway,
    access: Access,
    upstream: FakeModelServer,
    client: httpx2.Client,
) -> None:
    upstream.plan(Planned(status=status, body=body))
    answer = post(client, access)
    assert (answer.status_code, answer.json()) == (status, body)
    assert len(upstream.got) == 1
    assert gateway.calls("ep1")[0].fault == kind


def test_a_connection_that_breaks_before_the_first_event_is_tried_again(
    gateway: Gateway, access: Access, upstream: FakeModelServer, client: httpx2.Client
) -> None:
    upstream.plan(Planned(events=["cut"]), Planned(events=[chunk("Hi", "stop"), DONE]))
    answer = post(client, access, stream=True)
    assert answer.content == chunk("Hi", "stop") + DONE
    assert gateway.calls("ep1")[0].retries == ("RemoteProtocolError",)


def test_a_server_that_is_not_there_is_an_error_of_the_wire(
    gateway: Gateway, client: httpx2.Client
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    server = ModelServer("judge", base_url=f"http://127.0.0.1:{port}", key=CANARY, retries=1)
    access = gateway.open("ep1", "judge", server)
    chat = post(client, access)
    messages = client.post(f"{access.v1}/messages", json=ASK)
    assert (chat.status_code, messages.status_code) == (502, 502)
    assert chat.json()["error"]["code"] == "unreachable"
    assert "model server 'judge' cannot be reached" in chat.json()["error"]["message"]
    assert messages.json()["type"] == "error"
    assert messages.json()["error"]["type"] == "api_error"
    assert str(port) not in chat.text
    assert [call.fault for call in gateway.calls("ep1")] == ["unreachable"] * 2
    assert [call.retries for call in gateway.calls("ep1")] == [("ConnectError",)] * 2


def test_a_server_that_is_silent_is_not_asked_twice(
    gateway: Gateway, policy: ModelServer, upstream: FakeModelServer, client: httpx2.Client
) -> None:
    access = gateway.open("ep1", "agent", ModelServer(**{**vars(policy), "timeout": 0.2}))
    upstream.plan(Planned(body=CHAT, delay=1.0))
    answer = post(client, access)
    assert answer.status_code == 504
    assert "sent nothing for 0.2 s" in answer.text
    assert len(upstream.got) == 1
    assert gateway.calls("ep1")[0].fault == "timeout"


def test_pauses_grow_and_differ() -> None:
    pauses = [[pause_before(attempt) or 0 for _ in range(50)] for attempt in range(12)]
    assert all(len({*each}) > 40 for each in pauses)
    assert max(pauses[0]) < min(pauses[2])
    assert max(max(each) for each in pauses) <= 30


@pytest.mark.parametrize(
    ("headers", "least", "most"),
    [
        ({"retry-after": "2"}, 2, 2.2),
        ({"retry-after-ms": "1500", "retry-after": "2"}, 1.5, 1.65),
        ({"retry-after": "-1"}, 0, 0),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0, 0),
        ({"retry-after": "soon"}, 0, 1),
    ],
)
def test_the_ways_to_ask_for_a_pause(headers: dict[str, str], least: float, most: float) -> None:
    pause = pause_before(0, headers)
    assert pause is not None
    assert least <= pause <= most


def test_no_pause_is_longer_than_the_longest() -> None:
    assert pause_before(0, {"retry-after": str(LONGEST_WAIT + 1)}) is None


@pytest.mark.parametrize(
    ("status", "said", "again"),
    [
        (500, "", True),
        (400, "", False),
        (400, "true", True),
        (500, "false", False),
        (529, "", True),
    ],
)
def test_the_server_may_say_whether_to_try_again(status: int, said: str, again: bool) -> None:
    assert worth_retry(status, {"x-should-retry": said}, b"{}") is again


def test_kinds_of_faults() -> None:
    said = {status: kind_of(status, b"") for status in (200, 402, 413, 408, 504, 500, 404)}
    assert list(said.values()) == [
        None,
        "quota",
        "context_overflow",
        "timeout",
        "timeout",
        "server",
        "bad_request",
    ]
