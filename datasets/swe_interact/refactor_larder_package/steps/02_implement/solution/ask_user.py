#!/usr/bin/env python3
"""Say one thing to the user over MCP and print the answer.

Standard library only, so that any image with a python3 can run it. One session per call:
initialize, initialized, tools/call. An answer may come as JSON or as an event stream.
"""

import json
import os
import sys
import urllib.request

URL = os.environ.get("USER_SERVER_URL") or "http://user-server:8000/mcp"
TIMEOUT = 900  # a user who thinks, looks around and thinks again takes minutes
VERSION = "2025-06-18"

# No proxy: the address is a neighbour's.
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def post(message, session):
    """Send one JSON-RPC message; return its answer and the session's name."""
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": VERSION,
    }
    if session:
        headers["Mcp-Session-Id"] = session
    request = urllib.request.Request(URL, data=json.dumps(message).encode(), headers=headers)
    with opener.open(request, timeout=TIMEOUT) as response:
        session = response.headers.get("Mcp-Session-Id") or session
        if "id" not in message:
            return None, session
        if response.headers.get_content_type() == "text/event-stream":
            return from_events(response, message["id"]), session
        return json.load(response), session


def from_events(lines, wanted):
    """Return the answer to request `wanted` from an event stream."""
    data = []
    for raw in lines:
        line = raw.decode().rstrip("\r\n")
        if line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
        elif not line and data:
            if "".join(data).strip():
                message = json.loads("\n".join(data))
                if message.get("id") == wanted:
                    return message
            data = []
    sys.exit("ask_user: the stream ended without an answer")


def main():
    """Ask what stands on the command line, or on stdin."""
    question = " ".join(sys.argv[1:]) or sys.stdin.read()
    client = {"name": "solution", "version": "1"}
    hello = {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": client}
    rpc = {"jsonrpc": "2.0"}
    answer, session = post({**rpc, "id": 1, "method": "initialize", "params": hello}, None)
    if "error" in answer:
        sys.exit(f"ask_user: {answer['error']}")
    post({**rpc, "method": "notifications/initialized"}, session)
    call = {"name": "ask_user", "arguments": {"question": question}}
    answer, _ = post({**rpc, "id": 2, "method": "tools/call", "params": call}, session)
    result = answer.get("result") or {}
    text = "\n".join(part.get("text", "") for part in result.get("content", ()))
    if "error" in answer or result.get("isError"):
        sys.exit(f"ask_user: {answer.get('error') or text}")
    print(text)


if __name__ == "__main__":
    main()
