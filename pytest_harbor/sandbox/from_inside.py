"""HTTP requests that are made by a process inside a container, to see what the container sees."""

from __future__ import annotations

from typing import Final

from pytest_harbor.errors import SandboxError
from pytest_harbor.sandbox.container import Container
from pytest_harbor.task.timeouts import Deadline

_FROM_INSIDE: Final = """
if [ -n "${BASH_VERSION:-}" ]; then
    exec 3<>"/dev/tcp/$HARBOR_HOST/$HARBOR_PORT" && printf '%s' "$HARBOR_REQUEST" >&3 && cat <&3
elif command -v python3 >/dev/null; then
    exec python3 -c 'import os, socket, sys
place = socket.create_connection((os.environ["HARBOR_HOST"], int(os.environ["HARBOR_PORT"])))
place.sendall(os.environ["HARBOR_REQUEST"].encode("latin-1"))
for block in iter(lambda: place.recv(65536), b""): sys.stdout.buffer.write(block)'
elif command -v nc >/dev/null; then
    printf '%s' "$HARBOR_REQUEST" | nc "$HARBOR_HOST" "$HARBOR_PORT"
else
    exit 127
fi
"""
_NO_CLIENT: Final = 127


class NoClientError(SandboxError):
    """The container has no program that could make a request."""


class UnreachableError(SandboxError):
    """What was asked did not answer; the message is what the container said."""


def request_from_inside(
    container: Container, host: str, port: int, request: str, deadline: Deadline
) -> bytes:
    """Send a raw HTTP request that closes its connection; returns the raw answer.

    Raises:
        NoClientError: the container has neither bash, python3 nor nc.
        UnreachableError: nobody answered in time, or not in HTTP.
    """
    ran = container.run(
        _FROM_INSIDE,
        env={"HARBOR_HOST": host, "HARBOR_PORT": str(port), "HARBOR_REQUEST": request},
        deadline=deadline,
    )
    if ran.exit_code == _NO_CLIENT:
        raise NoClientError(
            f"{container.service} has neither bash, python3 nor nc to make a request with"
        )
    if ran.exit_code != 0 or not ran.output.startswith(b"HTTP/"):
        said = ran.output.decode("utf-8", "replace").strip().splitlines()
        raise UnreachableError(said[-1] if said else "")
    return ran.output
