"""One command inside a container, as the engine's API runs it: its output, its input, its end.

The connection is read here and not by the SDK, whose two ways of reading lose what matters: a
socket read ends with the client's timeout when a command is silent for long, and a plain stream
cannot be waited for with a deadline. Who runs what, and what an exit code means, is
:mod:`~pytest_harbor.sandbox.container`'s business.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from docker import APIClient

_PIECE: Final = 1 << 16
_FRAME: Final = struct.Struct(">BxxxL")
"""Stream number and length, before each piece of output on the engine's connection."""


class Execution:
    """A started command. Close it; that does not end the command."""

    def __init__(
        self,
        api: APIClient,
        container_id: str,
        argv: Sequence[str],
        *,
        user: str = "",
        workdir: str | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bool = False,
    ) -> None:
        self._api = api
        created: dict[str, Any] = api.exec_create(
            container_id,
            list(argv),
            stdin=stdin,
            user=user,
            workdir=workdir,
            environment=[f"{name}={value}" for name, value in (env or {}).items()],
        )
        self.id: Final[str] = created["Id"]
        raw: Any = api.exec_start(self.id, socket=True)
        self._response: Any = raw._response
        self._socket: socket.socket = getattr(raw, "_sock", raw)
        self._buffer = bytearray(self._already_read())

    def _already_read(self) -> bytes:
        """Output that came so fast that it was read along with the answer's headers."""
        reader: Any = getattr(self._response.raw._fp, "fp", None)
        if not hasattr(reader, "peek"):
            return b""
        self._socket.settimeout(0)
        try:
            return bytes(reader.peek())
        except (ssl.SSLWantReadError, BlockingIOError):
            return b""

    def read(self, seconds: float | None) -> bytes | None:
        """The next piece of output, ``b""`` at its end, None when none came in time."""
        while (piece := self._next_frame()) is None:
            # 0 would mean "do not wait at all", which a TLS socket reports in another way
            self._socket.settimeout(seconds if seconds is None else max(seconds, 0.001))
            try:
                data = self._socket.recv(_PIECE)
            except TimeoutError:
                return None
            except ConnectionResetError:
                return b""
            if not data:
                return b""
            self._buffer += data
        return piece

    def _next_frame(self) -> bytes | None:
        while len(self._buffer) >= _FRAME.size:
            _, length = _FRAME.unpack_from(self._buffer)
            end = _FRAME.size + length
            if len(self._buffer) < end:
                return None
            piece = bytes(self._buffer[_FRAME.size : end])
            del self._buffer[:end]
            if piece:
                return piece
        return None

    def send(self, data: bytes, seconds: float | None) -> None:
        """Give the command input; it was started with ``stdin``."""
        self._socket.settimeout(seconds)
        self._socket.sendall(data)

    def exit_code(self) -> int | None:
        """Its exit code, None while it runs."""
        state: dict[str, Any] = self._api.exec_inspect(self.id)
        return None if state["Running"] or state["ExitCode"] is None else int(state["ExitCode"])

    def close(self) -> None:
        """Let go of the connection."""
        with contextlib.suppress(OSError):
            self._socket.close()
        self._response.close()
