"""Models for tests: an upstream that can be killed, and a shell that calls a model.

with Upstream(say="hello") as upstream: ...   # upstream.url, upstream.got, upstream.stop()
"""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

KEY = "sk-canary-0123456789abcdef-UPSTREAM"
"""The key that an upstream wants to see; no file and no container may hold it."""

MODEL = """
model() {
    local place=${1#http://} body path
    path=/${place#*/}; place=${place%%/*}
    body='{"model":"any","messages":[{"role":"user","content":"'$2'"}]}'
    exec 3<> /dev/tcp/${place%:*}/${place#*:}
    printf '%s\\r\\n' "POST $path/v1/chat/completions HTTP/1.1" "Host: x" "Connection: close" \\
        "Content-Type: application/json" "Content-Length: ${#body}" "" >&3
    printf '%s' "$body" >&3
    cat <&3
}
"""
"""A shell function: ``model URL QUESTION`` asks a model and prints the whole answer."""


class Upstream:
    """An OpenAI-like server on this machine: says one thing, and takes 100 and 20 tokens for it."""

    def __init__(self, say: str = "hello from upstream", model: str = "real-1-2026-01-01") -> None:
        self.say = say
        self.model = model
        self.stops_after: int | None = None
        """How many calls it answers; further ones find the connection closed."""
        self.got: list[dict[str, str]] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Be gone: nobody answers at the address any more."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()

    def _answer(self) -> dict[str, Any]:
        message = {"role": "assistant", "content": self.say}
        return {
            "id": "1",
            "object": "chat.completion",
            "model": self.model,
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 100, "completion_tokens": 20},
        }

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        upstream = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["content-length"]))
                upstream.got.append(dict(self.headers.items()))
                if upstream.stops_after is not None and len(upstream.got) > upstream.stops_after:
                    return
                allowed = self.headers.get("authorization") == f"Bearer {KEY}"
                body = json.dumps(upstream._answer()).encode() if allowed else b"{}"
                self.send_response(200 if allowed else 401)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        return Handler
