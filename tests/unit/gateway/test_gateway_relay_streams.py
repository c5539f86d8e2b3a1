"""Answers on another stream than the call's: resumed sessions, and the older transport."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import anyio
import pytest
from mcp import MCPError
from mcp.server.streamable_http import EventMessage, EventStore
from mcp_server import McpServer, connected, run, text, until

from pytest_harbor.gateway import Gateway, McpCall


class Store(EventStore):
    """Keeps all events, for clients that come back."""

    def __init__(self) -> None:
        self.events: list[tuple[str, Any]] = []

    async def store_event(self, stream_id: str, message: Any) -> str:
        self.events.append((stream_id, message))
        return str(len(self.events))

    async def replay_events_after(self, last_event_id: str, send_callback: Any) -> str | None:
        stream, _ = self.events[int(last_event_id) - 1]
        for number, (each, message) in enumerate(self.events, 1):
            if number > int(last_event_id) and each == stream and message is not None:
                await send_callback(EventMessage(message, str(number)))
        return stream


@pytest.fixture
def resumable() -> Iterator[McpServer]:
    server = McpServer(store=Store())
    yield server
    server.stop()


@pytest.fixture
def older() -> Iterator[McpServer]:
    server = McpServer(older=True)
    yield server
    server.stop()


@pytest.fixture
def gateway() -> Iterator[Gateway]:
    with Gateway() as gateway:
        yield gateway


def tool_calls(gateway: Gateway) -> list[McpCall]:
    return [each for each in gateway.mcp_calls("ep1") if each.is_tool_call]


def test_an_answer_on_a_resumed_stream_is_the_calls(resumable: McpServer, gateway: Gateway) -> None:
    relay = gateway.relay("ep1", "u", resumable.url)

    async def talk() -> None:
        async with connected(relay.url) as client:
            assert text(await client.call_tool("elsewhere", {})) == "from elsewhere"

    run(talk)
    assert any("last-event-id" in headers for _, _, headers in resumable.seen)
    [call] = tool_calls(gateway)
    assert (call.ended, call.reply, call.status) == ("answered", "from elsewhere", 200)


def test_a_resumed_stream_gets_the_error_at_the_deadline(
    resumable: McpServer, gateway: Gateway
) -> None:
    relay = gateway.relay("ep1", "u", resumable.url, seconds=0.6)

    async def talk() -> None:
        async with connected(relay.url) as client:
            with pytest.raises(MCPError, match="'u' gave no answer"):
                await client.call_tool("elsewhere", {"seconds": 3})

    run(talk)
    [call] = tool_calls(gateway)
    assert (call.ended, call.status) == ("timeout", 200)


def test_the_older_transport_is_relayed_and_recorded(older: McpServer, gateway: Gateway) -> None:
    relay = gateway.relay("ep1", "u", older.url, aliases={"ask_user": "ask_the_user"})

    async def one(name: str) -> None:
        async with connected(relay.url, older=True) as client:
            assert (await client.list_tools()).tools[0].name == "ask_the_user"
            for number in range(5):
                result = await client.call_tool("ask_the_user", {"question": f"{name}{number}"})
                assert text(result) == f"about {name}{number}: yes"

    async def talk() -> None:
        async with anyio.create_task_group() as group:
            for name in ("a", "b"):
                group.start_soon(one, name)

    run(talk)
    calls = tool_calls(gateway)
    assert len(calls) == 10
    for each in calls:
        assert each.reply == f"about {each.arguments['question']}: yes"
    assert {path for _, path, _ in older.seen} == {"/sse", "/messages/"}


def test_the_older_transport_has_deadlines_too(older: McpServer, gateway: Gateway) -> None:
    relay = gateway.relay("ep1", "u", older.url, seconds=0.3)

    async def talk() -> None:
        async with connected(relay.url, older=True) as client:
            with pytest.raises(MCPError, match="'u' gave no answer"):
                await client.call_tool("slow", {"told": 0})
            assert text(await client.call_tool("ask_user", {"question": "x"})) == "about x: yes"

    run(talk)
    late, _ = tool_calls(gateway)
    assert (late.ended, late.status) == ("timeout", 202)


@pytest.mark.parametrize(
    ("end", "ended"), [("server", "failed"), *[("episode", "revoked")] * 4]
)  # which of an episode's tasks ends first is chance
def test_the_end_of_an_older_session_ends_its_calls(
    end: str, ended: str, older: McpServer, gateway: Gateway
) -> None:
    relay = gateway.relay("ep1", "u", older.url)

    async def talk() -> None:
        async with connected(relay.url, older=True) as client, anyio.create_task_group() as group:

            async def ask() -> None:
                with pytest.raises(MCPError):
                    await client.call_tool("slow", {"told": 0})

            group.start_soon(ask)
            await anyio.to_thread.run_sync(until, older.entered.is_set)
            if end == "server":
                older.break_off()
            else:
                await anyio.to_thread.run_sync(gateway.revoke, "ep1")

    run(talk)
    until(lambda: tool_calls(gateway))
    assert [each.ended for each in tool_calls(gateway)] == [ended]


def test_a_client_that_leaves_an_older_session_is_gone(older: McpServer, gateway: Gateway) -> None:
    relay = gateway.relay("ep1", "u", older.url)

    async def talk() -> None:
        async with connected(relay.url, older=True) as client, anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "slow", {"told": 0})
            await anyio.to_thread.run_sync(until, older.entered.is_set)
            group.cancel_scope.cancel()

    run(talk)
    until(lambda: tool_calls(gateway))
    assert len(tool_calls(gateway)) == 1
