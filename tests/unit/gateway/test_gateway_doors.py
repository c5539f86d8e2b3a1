"""Secret addresses: who gets in, until when, and where the gateway listens."""

from __future__ import annotations

import json
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest
from fake_model_server import CANARY, FakeModelServer, Planned
from wire_shapes import CHAT, DONE, chunk

from pytest_harbor.errors import HarborError, RecipeError
from pytest_harbor.gateway import Access, Gateway, ModelServer, Terms
from pytest_harbor.gateway.app import split_path

ASK = {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}


def test_an_unknown_address_gets_no_detail(gateway: Gateway, client: httpx2.Client) -> None:
    answers = [
        client.request(method, f"{gateway.url}/{path}")
        for method in ("GET", "POST")
        for path in ("", "v1/models", "wrong/v1/chat/completions", "wrong", "%00/x", "a//b/../c")
    ]
    assert {(each.status_code, each.text) for each in answers} == {(404, "Not Found")}


def test_another_path_at_a_known_address_says_what_there_is(
    access: Access, client: httpx2.Client
) -> None:
    wrong = client.post(f"{access.v1}/embeddings", json={})
    assert wrong.status_code == 404
    assert "/v1/chat/completions, /v1/responses, /v1/messages" in wrong.json()["error"]["message"]
    assert client.get(f"{access.v1}/chat/completions").status_code == 405
    upgrade = {"connection": "Upgrade", "upgrade": "websocket"}
    # by this word, and by no other, codex knows at once that it must do without
    assert client.get(f"{access.v1}/responses", headers=upgrade).status_code == 426


def test_the_address_is_no_part_of_what_is_shown(access: Access) -> None:
    assert access.secret not in repr(access)
    assert len(access.secret) >= 32


def test_an_address_dies_with_its_episode_and_no_other(
    gateway: Gateway,
    access: Access,
    policy: ModelServer,
    upstream: FakeModelServer,
    client: httpx2.Client,
) -> None:
    other = gateway.open("ep2", "agent", policy)
    upstream.plan(Planned(body=CHAT))
    assert client.post(f"{access.v1}/chat/completions", json=ASK).status_code == 200
    summary = gateway.revoke("ep1")
    assert summary.calls == 1
    assert client.post(f"{access.v1}/chat/completions", json=ASK).status_code == 404
    assert client.get(f"{access.v1}/models").status_code == 404
    assert client.post(f"{other.v1}/chat/completions", json=ASK).status_code == 200
    assert gateway.summary("ep1").calls == 1


def test_revoking_breaks_off_what_is_under_way(
    gateway: Gateway, access: Access, upstream: FakeModelServer, client: httpx2.Client
) -> None:
    upstream.plan(Planned(events=[chunk("H"), threading.Event()]))
    asked = {**ASK, "stream": True}
    with client.stream("POST", f"{access.v1}/chat/completions", json=asked) as answer:
        arriving = answer.iter_bytes()
        assert next(arriving) == chunk("H")
        summary = gateway.revoke("ep1")
        with pytest.raises(httpx2.RemoteProtocolError):
            next(arriving)
    assert (summary.calls, summary.abandoned) == (1, 1)
    assert gateway.calls("ep1")[0].ended == "revoked"
    assert upstream.hung_up.wait(5)


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_hangs_up_ends_the_call_at_the_server(
    stream: bool, gateway: Gateway, access: Access, upstream: FakeModelServer
) -> None:
    if stream:
        upstream.plan(Planned(events=[chunk("H"), threading.Event()]))
    else:
        upstream.plan(Planned(body=CHAT, delay=3.0))
    with pytest.raises(httpx2.ReadTimeout):
        httpx2.post(f"{access.v1}/chat/completions", json={**ASK, "stream": stream}, timeout=0.3)
    deadline = time.monotonic() + 2
    while not gateway.calls("ep1") and time.monotonic() < deadline:
        time.sleep(0.02)
    assert gateway.calls("ep1")[0].ended == "client_gone"
    assert gateway.summary("ep1").abandoned == 1


def test_a_request_that_was_coming_in_when_the_episode_ended_is_not_served(
    gateway: Gateway, access: Access, upstream: FakeModelServer
) -> None:
    upstream.plan(Planned(body=CHAT))
    body = json.dumps(ASK).encode()
    host, port = access.base_url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as half:
        path = access.v1.removeprefix(access.base_url)
        head = f"POST {path}/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}"
        half.sendall(f"{head}\r\n\r\n".encode() + body[:10])
        time.sleep(0.1)
        gateway.revoke("ep1")
        half.sendall(body[10:])
        assert half.recv(100).startswith(b"HTTP/1.1 404")
    assert upstream.got == []


def test_an_account_outlives_an_attempt(
    gateway: Gateway,
    access: Access,
    policy: ModelServer,
    upstream: FakeModelServer,
    client: httpx2.Client,
) -> None:
    upstream.plan(Planned(body=CHAT))
    client.post(f"{access.v1}/chat/completions", json=ASK)
    gateway.revoke("ep1")
    gateway.begin("ep1", Terms())
    again = gateway.open("ep1", "agent", policy)
    assert again.secret != access.secret
    assert gateway.summary("ep1", latest=True).calls == 0
    client.post(f"{again.v1}/chat/completions", json=ASK)
    assert gateway.summary("ep1", latest=True).tokens == 1100
    assert gateway.revoke("ep1").tokens == 2200
    assert [call.try_number for call in gateway.calls("ep1")] == [1, 2]


def test_an_episode_under_way_cannot_begin_again(gateway: Gateway, access: Access) -> None:
    with pytest.raises(HarborError, match="revoke it first"):
        gateway.begin("ep1", Terms())


def test_calls_are_entered_under_the_step_in_which_they_began(
    gateway: Gateway, access: Access, upstream: FakeModelServer, client: httpx2.Client
) -> None:
    upstream.plan(Planned(body=CHAT))
    for name in (None, "01_plan", "02_implement"):
        gateway.step("ep1", name)
        client.post(f"{access.v1}/chat/completions", json=ASK)
    assert [call.step for call in gateway.calls("ep1")] == [None, "01_plan", "02_implement"]


def test_one_application_behind_several_addresses(
    gateway: Gateway, access: Access, upstream: FakeModelServer, client: httpx2.Client
) -> None:
    upstream.plan(Planned(body=CHAT))
    second = gateway.listen("127.0.0.2")
    there = access.at(second)
    assert there.url.startswith("http://127.0.0.2:")
    assert client.post(f"{there.v1}/chat/completions", json=ASK).status_code == 200
    gateway.unlisten(second)
    with pytest.raises(httpx2.ConnectError):
        httpx2.get(f"{there.v1}/models", trust_env=False, verify=False)
    assert client.get(f"{access.v1}/models").status_code == 200


def test_an_address_that_is_not_there_yet_can_be_listened_at(gateway: Gateway) -> None:
    assert gateway.listen("192.0.2.1").startswith("http://192.0.2.1:")


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "", "example.org"])
def test_it_never_listens_for_everybody(address: str, gateway: Gateway) -> None:
    with pytest.raises(HarborError, match="listen at"):
        gateway.listen(address)


def test_a_taken_port_is_named(gateway: Gateway) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(HarborError, match=f"cannot listen at 127.0.0.1:{taken.getsockname()[1]}"),
    ):
        gateway.listen("127.0.0.1", taken.getsockname()[1])


def test_a_key_that_is_not_set_is_said_before_anything_starts(gateway: Gateway) -> None:
    server = ModelServer("judge", base_url="http://localhost", key_env="JUDGE_KEY")
    with pytest.raises(RecipeError, match="'judge' takes its key from JUDGE_KEY, which is not set"):
        gateway.open("ep1", "judge", server)


def test_what_is_not_running_says_so(policy: ModelServer) -> None:
    gateway = Gateway(environment={"POLICY_KEY": CANARY})
    with pytest.raises(HarborError, match="call start"):
        gateway.open("ep1", "agent", policy)
    with pytest.raises(HarborError, match="call start"):
        gateway.listen("127.0.0.1")
    gateway.close()


def test_after_closing_nothing_listens_and_sums_can_be_read(
    policy: ModelServer, upstream: FakeModelServer
) -> None:
    upstream.plan(Planned(body=CHAT))
    with Gateway(environment={"POLICY_KEY": CANARY}) as gateway:
        access = gateway.open("ep1", "agent", policy)
        httpx2.post(f"{access.v1}/chat/completions", json=ASK, trust_env=False, verify=False)
    with pytest.raises(httpx2.ConnectError):
        httpx2.get(access.url, trust_env=False, verify=False)
    assert gateway.summary("ep1").tokens == 1100


def test_sixteen_streams_at_once(
    gateway: Gateway, policy: ModelServer, upstream: FakeModelServer
) -> None:
    slow = [part for number in range(20) for part in (chunk(str(number)), 0.005)]
    upstream.plan(Planned(events=[*slow, chunk("", "stop"), DONE]))
    doors = [gateway.open(f"ep{number}", "agent", policy) for number in range(16)]
    start = threading.Barrier(16)

    def run(access: Access) -> bytes:
        with httpx2.Client(timeout=30, trust_env=False, verify=False) as client:
            start.wait(10)
            answer = client.post(
                f"{access.v1}/chat/completions",
                json={**ASK, "stream": True, "stream_options": {"include_usage": True}},
            )
            return answer.content

    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(run, doors))
    assert {len(each.split(b"\n\n")) for each in answers} == {23}
    assert len({*answers}) == 1
    assert upstream.most_under_way == 16
    assert [gateway.summary(f"ep{number}").calls for number in range(16)] == [1] * 16


@pytest.mark.parametrize(
    ("path", "split"),
    [
        ("/s/v1/chat/completions", ("s", "chat/completions")),
        ("/s/v1/v1/messages/", ("s", "messages")),
        ("/s//responses", ("s", "responses")),
        ("/s/v1beta/models/m:generateContent", ("s", "models/m:generateContent")),
        ("/s", ("s", "")),
        ("/", ("", "")),
    ],
)
def test_paths(path: str, split: tuple[str, str]) -> None:
    assert split_path(path) == split
