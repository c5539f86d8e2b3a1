"""The relay passes MCP on unharmed: a real server, a real client, and the relay between them."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from fake_model_server import FakeModelServer, Planned
from mcp import MCPError
from mcp_server import McpServer, connected, run, text, until

from pytest_harbor.gateway import Gateway, McpCall, Terms

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "bare", "version": "0"},
    },
}
ACCEPT = {"accept": "application/json, text/event-stream", "content-type": "application/json"}


def call(message_id: Any, tool: str = "ask_user", **arguments: Any) -> dict[str, Any]:
    params = {"name": tool, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": message_id, "method": "tools/call", "params": params}


@pytest.fixture(scope="module", params=["stream", "json"])
def shared(request: pytest.FixtureRequest) -> Iterator[McpServer]:
    """One that nothing happens to, answering in both ways."""
    server = McpServer(json_replies=request.param == "json")
    yield server
    server.stop()


@pytest.fixture
def server() -> Iterator[McpServer]:
    server = McpServer()
    yield server
    server.stop()


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    with Gateway(secrets=["canary-0123456789"]) as gateway:
        gateway.begin("ep1", Terms(relay_log=tmp_path / "mcp-calls.jsonl"))
        yield gateway


def tool_calls(gateway: Gateway, episode: str = "ep1") -> list[McpCall]:
    return [each for each in gateway.mcp_calls(episode) if each.is_tool_call]


def test_tools_are_listed_and_called_and_all_of_it_is_on_the_record(
    shared: McpServer, gateway: Gateway, tmp_path: Path
) -> None:
    relay = gateway.relay("ep1", "user-server", shared.url)
    gateway.step("ep1", "one")

    async def talk() -> None:
        async with connected(relay.url) as client:
            assert [tool.name for tool in (await client.list_tools()).tools][:2] == [
                "ask_user",
                "fail",
            ]
            result = await client.call_tool("ask_user", {"question": "tea ☕?"})
            assert (text(result), result.is_error) == ("about tea ☕?: yes", False)
            gateway.step("ep1", "two")
            result = await client.call_tool("fail", {"why": "no reason"})
            assert result.is_error
            assert text(result) == "Error executing tool fail"

    run(talk)
    calls = gateway.mcp_calls("ep1")
    told = [(each.method, each.tool, each.step, each.ended, each.is_error) for each in calls]
    assert told == [
        ("initialize", None, "one", "answered", False),
        ("tools/list", None, "one", "answered", False),
        ("tools/call", "ask_user", "one", "answered", False),
        ("tools/call", "fail", "two", "answered", True),
    ]
    hello, listed, asked, failed = calls
    assert hello.reply == "small 1.2"
    assert hello.arguments["clientInfo"]["name"] == "mcp"
    assert listed.reply.startswith("ask_user, fail, large")
    assert asked.arguments == {"question": "tea ☕?"}
    assert (asked.reply, asked.reply_size) == ("about tea ☕?: yes", 17)
    assert (asked.server, asked.status, asked.fault) == ("user-server", 200, "")
    assert (asked.episode, asked.try_number) == ("ep1", 1)
    assert 0 < asked.seconds < 5
    assert asked.went_well
    assert not failed.went_well
    assert (failed.reply, failed.arguments) == ("Error executing tool fail", {"why": "no reason"})
    lines = (tmp_path / "mcp-calls.jsonl").read_text(encoding="utf-8").splitlines()
    assert [McpCall(**json.loads(line)) for line in lines] == list(calls)


def test_requests_arrive_as_they_were_sent(shared: McpServer, gateway: Gateway) -> None:
    shared.seen.clear()
    relay = gateway.relay("ep1", "u", shared.url, headers={"X-Grant": "g", "Authorization": "B x"})

    async def talk() -> None:
        mine = {"x-mine": "m", "authorization": "of the agent"}
        async with connected(relay.url, headers=mine) as client:
            await client.call_tool("ask_user", {"question": "a"})

    run(talk)
    methods = [method for method, _, _ in shared.seen]
    assert sorted(set(methods)) == ["DELETE", "GET", "POST"]
    for method, path, headers in shared.seen:
        assert path == "/mcp"
        assert headers["host"] == shared.origin.removeprefix("http://")
        assert (headers["x-mine"], headers["x-grant"]) == ("m", "g")
        assert headers["authorization"] == "B x"
        if method != "POST":
            assert headers["mcp-session-id"]
            assert headers["mcp-protocol-version"]


def test_a_server_behind_another_address_gets_the_host_it_is_known_by(
    server: McpServer, gateway: Gateway
) -> None:
    relay = gateway.relay("ep1", "u", "http://user-server:8000/mcp")
    gateway.aim(relay, f"{server.origin}/elsewhere")
    answer = httpx2.post(relay.url, json=INITIALIZE, headers=ACCEPT)
    assert answer.status_code == 421  # the server's own guard against foreign hosts
    assert server.seen[0][2]["host"] == "user-server:8000"
    assert server.seen[0][1] == "/mcp"


def test_a_large_reply_arrives_whole_and_is_cut_in_the_record(
    shared: McpServer, gateway: Gateway
) -> None:
    relay = gateway.relay("ep1", "u", shared.url)

    async def talk() -> None:
        async with connected(relay.url) as client:
            result = await client.call_tool("large", {"size": 5_000_000})
            assert text(result) == "x" * 5_000_000

    run(talk)
    [large] = tool_calls(gateway)
    assert large.reply == "x" * 20_000 + " [... 4980000 more characters]"
    assert large.reply_size == 5_000_000


def test_progress_arrives_while_a_slow_call_goes_on(server: McpServer, gateway: Gateway) -> None:
    relay = gateway.relay("ep1", "u", server.url)
    seen: list[str | None] = []

    async def talk() -> None:
        async def progress(now: float, total: float | None, message: str | None) -> None:
            seen.append(message)
            if len(seen) == 3:
                assert not tool_calls(gateway)
                server.go_on.set()

        async with connected(relay.url) as client:
            result = await client.call_tool("slow", {"told": 3}, progress_callback=progress)
            assert text(result) == "at last"

    run(talk)
    assert seen == ["part 1", "part 2", "part 3"]
    [slow] = tool_calls(gateway)
    assert (slow.ended, slow.reply, slow.arguments) == ("answered", "at last", {"told": 3})


def test_what_the_server_says_unasked_arrives(server: McpServer, gateway: Gateway) -> None:
    relay = gateway.relay("ep1", "u", server.url)

    async def talk() -> None:
        heard = anyio.Event()

        async def hear(message: Any) -> None:
            if "tools/list_changed" in str(getattr(message, "method", message)):
                heard.set()

        async with connected(relay.url, message_handler=hear) as client:
            while "GET" not in {method for method, _, _ in server.seen}:
                await anyio.sleep(0.01)
            await client.call_tool("announce", {})
            await heard.wait()

    run(talk)


def test_two_sessions_at_once_keep_their_answers_apart(shared: McpServer, gateway: Gateway) -> None:
    relay = gateway.relay("ep1", "u", shared.url)

    async def one(name: str) -> None:
        async with connected(relay.url) as client:
            for number in range(10):
                result = await client.call_tool("ask_user", {"question": f"{name}{number}"})
                assert text(result) == f"about {name}{number}: yes"

    async def talk() -> None:
        async with anyio.create_task_group() as group:
            for name in ("a", "b"):
                group.start_soon(one, name)

    run(talk)
    calls = tool_calls(gateway)
    assert len(calls) == 20
    for each in calls:
        assert each.reply == f"about {each.arguments['question']}: yes"


def test_a_session_ends_when_the_client_ends_it(shared: McpServer, gateway: Gateway) -> None:
    relay = gateway.relay("ep1", "u", shared.url)
    with httpx2.Client(headers=ACCEPT, timeout=10) as client:
        begun = client.post(relay.url, json=INITIALIZE)
        client.headers["mcp-session-id"] = begun.headers["mcp-session-id"]
        ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        assert client.post(relay.url, json=ready).status_code == 202
        assert client.delete(relay.url).status_code == 200
        after = client.post(relay.url, json=call(7))
    assert after.status_code == 404
    last = gateway.mcp_calls("ep1")[-1]
    assert (last.ended, last.status) == ("failed", 404)
    assert last.fault.startswith("HTTP 404 without an answer: ")


def test_the_modern_dialect_passes_too(shared: McpServer, gateway: Gateway) -> None:
    relay = gateway.relay("ep1", "u", shared.url)

    async def talk() -> None:
        async with connected(relay.url, mode="auto") as client:
            assert text(await client.call_tool("ask_user", {"question": "x"})) == "about x: yes"

    run(talk)
    assert next(each.method for each in gateway.mcp_calls("ep1")) == "server/discover"
    assert [each.reply for each in tool_calls(gateway)] == ["about x: yes"]


def test_an_alias_is_offered_and_translated_back(shared: McpServer, gateway: Gateway) -> None:
    relay = gateway.relay("ep1", "u", shared.url, aliases={"ask_user": "ask_the_user"})

    async def talk() -> None:
        async with connected(relay.url) as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            assert names[:2] == ["ask_the_user", "fail"]
            result = await client.call_tool("ask_the_user", {"question": "ask_the_user"})
            assert text(result) == "about ask_the_user: yes"
            assert text(await client.call_tool("ask_user", {"question": "q"})) == "about q: yes"

    run(talk)
    assert [each.tool for each in tool_calls(gateway)] == ["ask_user", "ask_user"]


def test_a_call_without_an_answer_in_time_gets_an_error(
    server: McpServer, gateway: Gateway
) -> None:
    relay = gateway.relay("ep1", "user-server", server.url, seconds=0.3)

    async def talk() -> None:
        async with connected(relay.url) as client:
            with pytest.raises(MCPError, match="'user-server' gave no answer"):
                await client.call_tool("slow", {"told": 1})
            assert text(await client.call_tool("ask_user", {"question": "x"})) == "about x: yes"

    run(talk)
    late, well = tool_calls(gateway)
    assert (late.ended, late.status, late.reply) == ("timeout", 200, "")
    assert late.fault == "MCP server 'user-server' gave no answer within 0.3 s"
    assert 0.3 <= late.seconds < 2
    assert well.went_well


def test_a_stream_of_the_servers_own_messages_has_no_deadline(
    server: McpServer, gateway: Gateway
) -> None:
    relay = gateway.relay("ep1", "u", server.url, seconds=0.2)

    async def talk() -> None:
        heard = anyio.Event()

        async def hear(message: Any) -> None:
            heard.set()

        async with connected(relay.url, message_handler=hear) as client:
            await anyio.sleep(0.4)
            await client.call_tool("announce", {})
            await heard.wait()

    run(talk)


def test_a_stream_that_goes_on_after_the_answer_has_no_deadline_any_more(
    gateway: Gateway, upstream: FakeModelServer, served: Any
) -> None:
    answer = b"data: " + json.dumps(answer_to(1, "one")).encode() + b"\n\n"
    upstream.plan(Planned(events=[answer, 0.5, b": later\n\n"]))
    relay = gateway.relay("ep1", "u", f"{served[1]}/mcp", seconds=0.3)
    assert httpx2.post(relay.url, json=call(1)).content == answer + b": later\n\n"


@pytest.mark.parametrize("message_id", [7, "7", "a-b"])
def test_the_error_at_the_deadline_has_the_id_of_the_call(
    message_id: object, gateway: Gateway, upstream: FakeModelServer, served: Any
) -> None:
    upstream.plan(Planned(body={}, delay=5.0))
    relay = gateway.relay("ep1", "u", f"{served[1]}/mcp", seconds=0.2)
    answer = httpx2.post(relay.url, json=call(message_id))
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["id"] == message_id
    assert answer.json()["error"]["code"] == -32001
    [late] = gateway.mcp_calls("ep1")
    assert (late.ended, late.status) == ("timeout", None)


def answer_to(message_id: Any, said: str) -> dict[str, Any]:
    result = {"content": [{"type": "text", "text": said}]}
    return {"jsonrpc": "2.0", "id": message_id, "result": result}


def test_a_batch_is_read_call_by_call(
    gateway: Gateway, upstream: FakeModelServer, served: Any
) -> None:
    body = json.dumps([answer_to("1", "text"), answer_to(1, "number")]).encode()
    upstream.plan(Planned(body=body))
    relay = gateway.relay("ep1", "u", f"{served[1]}/mcp")
    asked = [call(1, question="n"), {"jsonrpc": "2.0", "method": "x"}, call("1", question="t")]
    answer = httpx2.post(relay.url, json=asked)
    assert answer.content == body
    assert upstream.got[-1].body == asked
    replies = {each.arguments["question"]: each.reply for each in tool_calls(gateway)}
    assert replies == {"n": "number", "t": "text"}


def test_of_a_batch_only_what_is_open_at_the_deadline_is_an_error(
    gateway: Gateway, upstream: FakeModelServer, served: Any
) -> None:
    first = b"data: " + json.dumps([answer_to(1, "one")]).encode() + b"\n\n"
    upstream.plan(Planned(events=[first, threading.Event()]))
    relay = gateway.relay("ep1", "u", f"{served[1]}/mcp", seconds=0.3)
    answer = httpx2.post(relay.url, json=[call(1), call(2)])
    assert answer.content.startswith(first + b"event: message\ndata: ")
    told = json.loads(answer.content.removeprefix(first).split(b"data: ")[1])
    assert (told["id"], told["error"]["code"]) == (2, -32001)
    assert [each.ended for each in tool_calls(gateway)] == ["answered", "timeout"]


def test_streams_pass_byte_by_byte_as_they_are(
    gateway: Gateway, upstream: FakeModelServer, served: Any
) -> None:
    """Comments, odd line ends, ids, several data lines, requests of the server, no end."""
    parts = [
        b": hello\n\n",
        b"id: 1\r\nretry: 5\r\ndata: \r\n\r\n",
        b'event: message\ndata: {"jsonrpc":"2.0","id":1,"method":"sampling/createMessage"}\n\n',
        b'data: {"jsonrpc": "2.0", "id": 1,\ndata:  "result": {"content": []}}\n\n',
        b"data: not json\n\n",
        b"data: no end",
    ]
    upstream.plan(Planned(events=parts))
    relay = gateway.relay("ep1", "u", f"{served[1]}/mcp")
    answer = httpx2.post(relay.url, json=call(1))
    assert answer.content == b"".join(parts)
    [asked] = tool_calls(gateway)
    assert (asked.ended, asked.reply) == ("answered", "")


def test_an_event_arrives_before_the_next_one_is_there(
    gateway: Gateway, upstream: FakeModelServer, served: Any
) -> None:
    more = threading.Event()
    upstream.plan(Planned(events=[b"data: 1\n\n", more, b"data: 2\n\n"]))
    relay = gateway.relay("ep1", "u", f"{served[1]}/mcp")
    with httpx2.stream("POST", relay.url, json=call(1)) as answer:
        arriving = answer.iter_bytes()
        assert next(arriving) == b"data: 1\n\n"
        more.set()
        assert next(arriving) == b"data: 2\n\n"
        assert not list(arriving)
    [asked] = tool_calls(gateway)
    assert (asked.ended, asked.fault) == ("failed", "the stream ended without an answer")


@pytest.mark.parametrize(
    "body",
    [b"{", b"[" * 100_000, b"", b"5", b'{"id": 1}', b'{"id":1,"method":"tools/call","params":3}'],
)
def test_what_cannot_be_read_passes_all_the_same(
    body: bytes, gateway: Gateway, upstream: FakeModelServer, served: Any
) -> None:
    upstream.plan(Planned(status=418, body=b'{"result":' + body))
    relay = gateway.relay("ep1", "u", f"{served[1]}/mcp")
    readable = body if body.endswith((b"}", b"5")) else b""  # by the server of this test
    for asked in (readable, json.dumps(call(1)).encode()):
        answer = httpx2.post(relay.url, content=asked)
        assert (answer.status_code, answer.content) == (418, b'{"result":' + body)
        assert answer.headers["content-length"] == str(len(answer.content))


def test_an_answer_without_meaning_is_not_an_answer(
    gateway: Gateway, upstream: FakeModelServer, served: Any
) -> None:
    odd = {"jsonrpc": "2.0", "id": 1, "result": {"content": [3, {"type": "image"}]}}
    upstream.plan(Planned(body=odd))
    relay = gateway.relay("ep1", "u", f"{served[1]}/mcp")
    assert httpx2.post(relay.url, json=call(1)).json() == odd
    [asked] = tool_calls(gateway)
    assert asked.reply == "[None]\n[image]"


def test_unknown_addresses_and_paths_are_not_there(
    shared: McpServer, gateway: Gateway, client: httpx2.Client
) -> None:
    relay = gateway.relay("ep1", "u", shared.url)
    shared.seen.clear()
    root = relay.url.removesuffix("/mcp")
    for url in (
        f"{gateway.url}/mcp",
        f"{root}x/mcp",
        root,
        f"{root}/",
        f"{root}/admin",
        f"{root}/mcp/x",
        f"{root}/x/%2e%2e/mcp",
        f"{root}//mcp",
    ):
        answer = client.post(url, json=call(1))
        assert (url, answer.status_code, answer.text) == (url, 404, "Not Found")
    assert not shared.seen
    assert relay.secret not in repr(relay)
    assert relay.at("http://10.0.0.1:1").url == f"http://10.0.0.1:1/{relay.secret}/mcp"


def test_a_redirect_leads_through_the_relay_again(
    gateway: Gateway, upstream: FakeModelServer, served: Any, client: httpx2.Client
) -> None:
    relay = gateway.relay("ep1", "u", "http://user-server:8000/mcp?a=b")
    gateway.aim(relay, served[1])
    for given, seen in (
        ("http://user-server:8000/mcp/v2?a=b", f"/{relay.secret}/mcp/v2?a=b"),
        ("/mcp/v3", f"/{relay.secret}/mcp/v3"),
        (f"{served[1]}/mcp/v4", f"/{relay.secret}/mcp/v4"),
        ("http://example.org/mcp", "http://example.org/mcp"),
        ("//example.org/mcp", "//example.org/mcp"),
    ):
        upstream.plans.clear()
        upstream.plan(Planned(status=307, headers={"location": given}))
        answer = client.post(relay.url, json=call(1))
        assert (answer.status_code, answer.headers["location"]) == (307, seen)
        assert upstream.got[-1].query == "a=b"
    upstream.plans.clear()
    upstream.plan(Planned(body=answer_to(1, "there")))
    moved = client.post(f"{gateway.url}/{relay.secret}/mcp/v2", json=call(1))
    assert moved.json() == answer_to(1, "there")


def test_a_call_under_way_ends_with_the_episode(
    server: McpServer, gateway: Gateway, client: httpx2.Client
) -> None:
    relay = gateway.relay("ep1", "u", server.url)
    gateway.begin("ep2", Terms())
    other = gateway.relay("ep2", "u", server.url)

    async def talk() -> None:
        async with connected(relay.url) as client, anyio.create_task_group() as group:

            async def ask() -> None:
                with pytest.raises(MCPError):
                    await client.call_tool("slow", {"told": 0})

            group.start_soon(ask)
            await anyio.to_thread.run_sync(until, server.entered.is_set)
            await anyio.to_thread.run_sync(gateway.revoke, "ep1")
            [slow] = tool_calls(gateway)
            assert (slow.ended, slow.tool) == ("revoked", "slow")

    run(talk)
    server.seen.clear()
    assert client.post(relay.url, json=call(1)).status_code == 404
    assert client.get(relay.url).status_code == 404
    assert not server.seen
    assert client.post(other.url, json=INITIALIZE, headers=ACCEPT).status_code == 200
    assert [each.method for each in gateway.mcp_calls("ep2")] == ["initialize"]


def test_a_call_that_is_cancelled_is_told_from_one_that_is_lost(
    server: McpServer, gateway: Gateway
) -> None:
    relay = gateway.relay("ep1", "u", server.url)

    async def talk() -> None:
        async with connected(relay.url) as client:
            with anyio.move_on_after(0.3):
                await client.call_tool("slow", {"told": 0})

    run(talk)
    until(lambda: tool_calls(gateway))
    [slow] = tool_calls(gateway)
    assert (slow.ended, slow.fault) == ("client_gone", "the agent cancelled the call")


def test_a_client_whose_connection_is_lost_is_gone(server: McpServer, gateway: Gateway) -> None:
    relay = gateway.relay("ep1", "u", server.url)
    with httpx2.Client(headers=ACCEPT) as client:
        begun = client.post(relay.url, json=INITIALIZE)
        client.headers["mcp-session-id"] = begun.headers["mcp-session-id"]
        client.post(relay.url, json={"jsonrpc": "2.0", "method": "notifications/initialized"})
        with pytest.raises(httpx2.ReadTimeout):
            client.post(relay.url, json=call(1, "slow", told=0), timeout=0.3)
    until(lambda: tool_calls(gateway))
    [slow] = tool_calls(gateway)
    assert (slow.ended, slow.status) == ("client_gone", 200)


def test_a_server_that_dies_in_a_call_is_told_from_one_that_says_no(
    server: McpServer, gateway: Gateway
) -> None:
    relay = gateway.relay("ep1", "user-server", server.url)

    async def talk() -> None:
        async with connected(relay.url) as client:
            async with anyio.create_task_group() as group:

                async def ask() -> None:
                    with pytest.raises(MCPError):
                        await client.call_tool("slow", {"told": 0})

                group.start_soon(ask)
                await anyio.to_thread.run_sync(until, server.entered.is_set)
                server.break_off()
            server.stop()
            with pytest.raises(MCPError, match="MCP server 'user-server' cannot be reached"):
                await client.call_tool("ask_user", {"question": "still there?"})

    run(talk)
    slow, dead = tool_calls(gateway)
    assert (slow.ended, slow.status) == ("failed", 200)
    assert slow.fault.startswith("the answer broke off: ")
    assert (dead.ended, dead.status) == ("failed", None)
    assert "ConnectError" in dead.fault


def test_a_stream_that_breaks_off_breaks_off(
    gateway: Gateway, upstream: FakeModelServer, served: Any
) -> None:
    upstream.plan(Planned(events=[b"data: 1\n\n", None]))
    relay = gateway.relay("ep1", "u", f"{served[1]}/mcp")
    with httpx2.stream("POST", relay.url, json=call(1)) as answer:
        arriving = answer.iter_bytes()
        assert next(arriving) == b"data: 1\n\n"
        with pytest.raises(httpx2.RemoteProtocolError):
            next(arriving)
    until(lambda: tool_calls(gateway))
    [asked] = tool_calls(gateway)
    assert (asked.ended, asked.status) == ("failed", 200)


def test_a_server_that_is_not_there_is_502(gateway: Gateway, client: httpx2.Client) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    relay = gateway.relay("ep1", "u", f"http://127.0.0.1:{port}/mcp")
    answer = client.post(relay.url, json=[call(3)])
    assert (answer.status_code, answer.json()[0]["id"]) == (502, 3)
    assert client.get(relay.url).status_code == 502


def test_secrets_are_not_written_down(shared: McpServer, gateway: Gateway, tmp_path: Path) -> None:
    relay = gateway.relay("ep1", "u", shared.url)
    asked = "x" * 19_980 + "canary-0123456789"

    async def talk() -> None:
        async with connected(relay.url) as client:
            await client.call_tool("ask_user", {"question": asked})
            await client.call_tool("ask_user", {"question": "canary-0123456789"})

    run(talk)
    written = (tmp_path / "mcp-calls.jsonl").read_text()
    assert "canary" not in written
    assert "[redacted]" in written


def test_another_try_begins_a_new_count_and_keeps_the_old_one(
    shared: McpServer, gateway: Gateway, client: httpx2.Client
) -> None:
    client.post(gateway.relay("ep1", "u", shared.url).url, json=INITIALIZE, headers=ACCEPT)
    gateway.revoke("ep1")
    gateway.begin("ep1", Terms())
    client.post(gateway.relay("ep1", "u", shared.url).url, json=INITIALIZE, headers=ACCEPT)
    assert [each.try_number for each in gateway.mcp_calls("ep1")] == [1, 2]


def test_a_slow_call_holds_up_no_other(server: McpServer, gateway: Gateway) -> None:
    relay = gateway.relay("ep1", "u", server.url)

    async def talk() -> None:
        async with connected(relay.url) as client, anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "slow", {"told": 0})
            await anyio.to_thread.run_sync(until, server.entered.is_set)
            began = time.monotonic()
            assert text(await client.call_tool("ask_user", {"question": "x"})) == "about x: yes"
            assert time.monotonic() - began < 2
            server.go_on.set()

    run(talk)
    assert [each.tool for each in tool_calls(gateway)] == ["ask_user", "slow"]
