"""A session with a real MCP server, used from synchronous code for many calls."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from mcp_server import McpServer

from pytest_harbor.agents.base import Grant
from pytest_harbor.errors import UserError
from pytest_harbor.task.timeouts import Deadline
from pytest_harbor.user.session import McpReply, open_session


@pytest.fixture(params=["streamable-http", "sse"])
def grant(request: pytest.FixtureRequest) -> Iterator[tuple[McpServer, Grant]]:
    server = McpServer(older=request.param == "sse")
    yield server, Grant("u", request.param, server.url)
    server.stop()


def soon() -> Deadline:
    return Deadline.after(20, "a test")


def test_one_session_serves_many_calls(grant: tuple[McpServer, Grant]) -> None:
    server, given = grant
    with open_session(given, soon()) as session:
        tools = {tool.name: tool for tool in session.tools(soon())}
        assert {"ask_user", "fail", "large"} <= tools.keys()
        assert tools["ask_user"].schema["required"] == ["question"]
        answer = session.call("ask_user", {"question": "it"}, soon())
        assert answer == McpReply("about it: yes", is_error=False)
        assert session.call("fail", {"why": "no reason"}, soon()).is_error
        assert len(session.call("large", {"size": 500_000}, soon()).text) == 500_000
        if given.transport == "streamable-http":  # mcp lets an event of the older one be 1 MiB
            assert len(session.call("large", {"size": 5_000_000}, soon()).text) == 5_000_000
    if given.transport == "streamable-http":
        ids = {headers.get("mcp-session-id") for _, _, headers in server.seen[1:]}
        assert len(ids) == 1


def test_a_call_ends_at_its_deadline_and_the_next_one_works(
    grant: tuple[McpServer, Grant],
) -> None:
    with open_session(grant[1], soon()) as session:
        began = time.monotonic()
        with pytest.raises(TimeoutError):
            session.call("slow", {"told": 0}, Deadline.after(0.3))
        assert time.monotonic() - began < 5
        assert session.call("ask_user", {"question": "x"}, soon()).text == "about x: yes"


def test_a_server_that_is_not_there_is_named() -> None:
    nowhere = Grant("user-server", "streamable-http", "http://127.0.0.1:9/mcp")
    with (
        pytest.raises(UserError, match="the MCP server user-server cannot be used from this host"),
        open_session(nowhere, soon()),
    ):
        pass


def test_a_server_that_dies_is_an_error() -> None:
    server = McpServer()  # of the older transport, mcp's own client leaves streams open here
    with open_session(Grant("u", "streamable-http", server.url), soon()) as session:
        session.tools(soon())
        server.stop()
        with pytest.raises(UserError, match="the MCP server u failed"):
            session.call("ask_user", {"question": "x"}, Deadline.after(5))


class Sullen(BaseHTTPRequestHandler):
    """A server that greets or not, and then says nothing for a long time."""

    greets = True
    over = threading.Event()

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if not self.greets or message["method"] != "initialize":
            self.over.wait(30)
        server = {"name": "sullen", "version": "1"}
        result = {"protocolVersion": "2025-03-26", "capabilities": {}, "serverInfo": server}
        body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.mark.parametrize("greets", [True, False])
def test_a_server_that_says_nothing_keeps_nobody(
    greets: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Sullen, "greets", greets)
    monkeypatch.setattr(Sullen, "over", threading.Event())
    server = ThreadingHTTPServer(("127.0.0.1", 0), Sullen)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    grant = Grant("u", "streamable-http", f"http://127.0.0.1:{server.server_port}/mcp")
    began = time.monotonic()
    deadline = Deadline.after(0.5)
    with pytest.raises(TimeoutError), open_session(grant, deadline) as session:
        session.tools(deadline)
    assert time.monotonic() - began < 10
    Sullen.over.set()
    server.shutdown()
    server.server_close()
