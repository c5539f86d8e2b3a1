"""The gateway's thread: an event loop with one web server, and sockets that come and go.

One server object serves all sockets. Docker's bridges appear while groups start, so an address
may be bound before the machine has it (IP_FREEBIND): its URL is known before the group is.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
import sys
import threading
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pytest_harbor.errors import HarborError

if TYPE_CHECKING:
    import uvicorn

T = TypeVar("T")

_IP_FREEBIND: Final = 15
_START_SECONDS: Final = 30.0
_STOP_SECONDS: Final = 10.0
_KEEP_ALIVE_SECONDS: Final = 120
"""An agent that comes back from a long tool call finds its connection still there."""
_GRACE_SECONDS: Final = 1
"""For answers under way when the gateway closes."""


class Host:
    """Runs an ASGI application in a thread of its own."""

    def __init__(self, application: Callable[..., Any]) -> None:
        self._application = application
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._server: uvicorn.Server | None = None
        self._listeners: dict[str, asyncio.Server] = {}
        self._ready = threading.Event()
        self._trouble: BaseException | None = None

    def start(self) -> None:
        """Start the thread, and wait until it serves."""
        self._thread = threading.Thread(target=self._run, name="pytest-harbor-gateway", daemon=True)
        self._thread.start()
        if not self._ready.wait(_START_SECONDS) or self._trouble is not None:
            raise _error(f"the model gateway did not start: {self._trouble or 'no answer'}")

    def stop(self) -> None:
        """Close all sockets and end the thread."""
        if self._thread is None or self._loop is None or self._server is None:
            return
        with contextlib.suppress(RuntimeError):  # the loop is closed already
            self._loop.call_soon_threadsafe(setattr, self._server, "should_exit", True)
        self._thread.join(_STOP_SECONDS)
        self._thread = None

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Run something in the gateway's thread and wait for its result."""
        if self._loop is None or self._thread is None:
            work.close()
            raise HarborError("the model gateway is not running; call start() first")
        try:
            return asyncio.run_coroutine_threadsafe(work, self._loop).result(_START_SECONDS)
        except TimeoutError:
            raise HarborError("the model gateway's thread does not answer") from None

    def listen(self, address: str, port: int = 0) -> str:
        """Serve at an address too; returns the URL."""
        bound = bind(address, port)
        try:
            return self.do(self._serve(bound))
        except BaseException:
            bound.close()
            raise

    def unlisten(self, url: str) -> None:
        """Stop serving at a URL that :meth:`listen` gave."""
        self.do(self._unserve(url))

    def _run(self) -> None:
        try:
            asyncio.run(self._main())
        except BaseException as error:
            self._trouble = error
        finally:
            self._ready.set()

    async def _main(self) -> None:
        import uvicorn

        config = uvicorn.Config(
            self._application,
            lifespan="off",
            ws="none",
            log_config=None,
            access_log=False,  # addresses are secrets
            server_header=False,
            timeout_graceful_shutdown=_GRACE_SECONDS,
            timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        )
        self._server = uvicorn.Server(config)
        self._loop = asyncio.get_running_loop()
        serving = asyncio.create_task(self._server.serve(sockets=[]))
        while not self._server.started and not serving.done():
            await asyncio.sleep(0.002)
        self._ready.set()
        await serving

    async def _serve(self, bound: socket.socket) -> str:
        server = self._server
        assert server is not None, "listen() comes after start()"
        kept = server.servers
        await server.startup(sockets=[bound])  # replaces the list of those it serves already
        new = server.servers
        server.servers = [*kept, *new]
        url = url_of(bound)
        self._listeners[url] = new[0]
        return url

    async def _unserve(self, url: str) -> None:
        listener = self._listeners.pop(url, None)
        if listener is not None and self._server is not None:
            self._server.servers.remove(listener)
            listener.close()


def bind(address: str, port: int = 0) -> socket.socket:
    """Bind a socket to one address of this machine, there already or not.

    Raises:
        HarborError: the address stands for all addresses, is none, or cannot be bound.
    """
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        raise _error(f"the gateway cannot listen at {address!r}: give an IP address") from None
    if ip.is_unspecified:
        raise _error(f"the gateway does not listen at {address}: anybody could reach it there")
    bound = socket.socket(socket.AF_INET if ip.version == 4 else socket.AF_INET6)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if sys.platform == "linux":
            bound.setsockopt(socket.IPPROTO_IP, _IP_FREEBIND, 1)
        bound.bind((address, port))
    except OSError as error:
        bound.close()
        raise _error(f"the gateway cannot listen at {address}:{port}: {error.strerror}") from None
    return bound


def url_of(bound: socket.socket) -> str:
    """The URL of a bound socket."""
    address, port = bound.getsockname()[:2]
    return f"http://[{address}]:{port}" if ":" in address else f"http://{address}:{port}"


def _error(message: str) -> HarborError:
    return HarborError(message, outcome="start_failed")
