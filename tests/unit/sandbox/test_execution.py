"""Reading an exec's connection, against an engine that chooses how its bytes arrive."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from pytest_harbor.sandbox.execution import Execution

HEAD = (
    b"HTTP/1.1 101 UPGRADED\r\nContent-Type: application/vnd.docker.raw-stream\r\n"
    b"Connection: Upgrade\r\nUpgrade: tcp\r\n\r\n"
)


def frame(body: bytes, stream: int = 1) -> bytes:
    return struct.pack(">BxxxL", stream, len(body)) + body


class FakeEngine:
    """Answers the calls of one exec; after the start it plays ``script`` and hangs up."""

    def __init__(self, folder: Path, script: list[bytes | float]) -> None:
        self.script = script
        self.heard = b""
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(str(folder / "s"))
        self._server.listen()
        self.address = f"unix://{folder / 's'}"
        self._threads = [threading.Thread(target=self._serve)]
        self._threads[0].start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            with connection:
                self._answer(connection)

    def _answer(self, connection: socket.socket) -> None:
        if b"/start " in self._request(connection):
            self._play(connection)
        else:
            body = json.dumps({"Id": "e1", "Running": False, "ExitCode": 7}).encode()
            connection.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + body)

    def _request(self, connection: socket.socket) -> bytes:
        data = b""
        while b"\r\n\r\n" not in data and (piece := connection.recv(4096)):
            data += piece
        head, _, body = data.partition(b"\r\n\r\n")
        for line in head.lower().split(b"\r\n"):
            if line.startswith(b"content-length:"):
                while len(body) < int(line.split(b":")[1]):
                    body += connection.recv(4096)
        return head

    def _play(self, connection: socket.socket) -> None:
        for part in self.script:
            if isinstance(part, float):
                time.sleep(part)
            else:
                connection.sendall(part)
        connection.settimeout(0.05)
        with contextlib.suppress(TimeoutError):
            self.heard = connection.recv(4096)

    def close(self) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        for thread in self._threads:
            thread.join()


@contextlib.contextmanager
def execution(folder: Path, *script: bytes | float) -> Iterator[Execution]:
    engine = FakeEngine(folder, list(script))
    api = docker.APIClient(base_url=engine.address, version="1.44", timeout=1)
    try:
        with contextlib.closing(Execution(api, "c1", ["true"])) as command:
            yield command
    finally:
        api.close()
        engine.close()


def everything(command: Execution) -> bytes:
    said = b""
    while piece := command.read(5):
        said += piece
    return said


def test_output_that_arrives_with_the_headers(tmp_path: Path) -> None:
    """A busy host reads answer and output in one go; the SDK loses such output."""
    with execution(
        tmp_path, HEAD + frame(b"one") + frame(b"two", 2) + frame(b"three")[:9]
    ) as command:
        assert command.read(5) == b"one"
        assert command.read(5) == b"two"


def test_output_in_pieces_of_any_size(tmp_path: Path) -> None:
    data = frame(b"hello ") + frame(b"") + frame(b"w" * 100_000, 2) + frame(b"orld")
    pieces = [data[at : at + 1] for at in range(20)] + [data[20:70_000], 0.05, data[70_000:]]
    with execution(tmp_path, HEAD, *pieces) as command:
        assert everything(command) == b"hello " + b"w" * 100_000 + b"orld"
        assert command.exit_code() == 7


def test_silence_is_no_end(tmp_path: Path) -> None:
    """Longer than the client's own timeout of a second, and in the midst of a frame."""
    data = frame(b"late")
    with execution(tmp_path, HEAD + data[:10], 1.3, data[10:]) as command:
        assert command.read(0.05) is None
        assert command.read(0) is None
        assert command.read(None) == b"late"
        assert command.read(5) == b""


def test_a_connection_that_breaks_is_an_end(tmp_path: Path) -> None:
    with execution(tmp_path, HEAD, frame(b"all")[:9]) as command:
        assert command.read(5) == b""


@pytest.mark.parametrize("text", [b"input\n"])
def test_input(tmp_path: Path, text: bytes) -> None:
    engine = FakeEngine(tmp_path, [HEAD, frame(b"ready")])
    api = docker.APIClient(base_url=engine.address, version="1.44", timeout=1)
    with contextlib.closing(Execution(api, "c1", ["cat"], stdin=True)) as command:
        assert command.read(5) == b"ready"
        command.send(text, 5)
        assert command.read(5) == b""
    api.close()
    engine.close()
    assert engine.heard == text
