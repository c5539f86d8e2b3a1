"""A simulated user for tests, run in a sidecar by Python's standard library alone.

LATE is how many seconds it waits before it listens, LISTENS=no lets it only live, TOOLS names its
tools. Asked for anything else than MCP it dies, and forgets how often it was asked.
"""

import json
import os
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ASKED = 0


def answer(method: str) -> dict:
    global ASKED
    if method == "initialize":
        return {
            "protocolVersion": "2025-03-26",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "small-user", "version": "1"},
        }
    if method == "tools/list":
        names = os.environ["TOOLS"].split()
        return {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in names]}
    if method == "tools/call":
        ASKED += 1
        return {"content": [{"type": "text", "text": f"asked {ASKED}"}]}
    return {}


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        if self.path != "/mcp":
            os._exit(1)
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        body = b""
        if "id" in message:
            result = answer(message["method"])
            body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
        self.send_response(200 if body else 202)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


print("the user lives", flush=True)  # noqa: T201
time.sleep(float(os.environ["LATE"]))
if os.environ["LISTENS"] == "no":
    time.sleep(10_000)
ThreadingHTTPServer(("0.0.0.0", 8000), Handler).serve_forever()
