"""An engine that answers what a test wants, or never: for cleanup that must end all the same."""

from __future__ import annotations

import contextlib
import json
import re
import socketserver
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

Answer = Callable[[str, str], tuple[int, Any] | None]
"""From method and path to status and JSON body; None hangs until the test is over."""

VERSION = {"Version": "26.1.5", "ApiVersion": "1.45", "MinAPIVersion": "1.24"}
INFO = {"ID": "fake", "NCPU": 2, "MemTotal": 1 << 30}


@contextlib.contextmanager
def fake_engine(folder: Path, answer: Answer) -> Iterator[dict[str, str]]:
    """Serve on a socket in a folder; yields an environment that leads there."""
    over = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self) -> None:
            path = re.sub(r"^/v[\d.]+", "", self.path)
            fixed = {"/version": (200, VERSION), "/info": (200, INFO)}
            said = fixed.get(path) or answer(self.command, path)
            if said is None:
                over.wait(60)
                self.close_connection = True
                return
            status, content = said
            body = b"" if content is None else json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_DELETE = handle_any

        def log_message(self, *_: Any) -> None:
            pass

        def address_string(self) -> str:
            return "unix"

    class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            pass

    path = folder / "engine.sock"
    with Server(str(path), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield {
                "DOCKER_HOST": f"unix://{path}",
                "PATH": "/usr/bin:/bin",
                "PYTEST_HARBOR_STATE_DIR": str(folder / "state"),
            }
        finally:
            over.set()
            server.shutdown()
            thread.join()
