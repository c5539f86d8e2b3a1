"""The Docker engine that everything runs in: where it is, one client per thread, what it can do.

What is done with it (groups, images, processes) is its users' business.
"""

from __future__ import annotations

import os
import re
import socket
import threading
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pytest_harbor.errors import SandboxError

if TYPE_CHECKING:
    from docker import APIClient

OLDEST_VERSION: Final = 25
"""The first engine that knows a healthcheck's ``start_interval``."""

CALL_TIMEOUT: Final = 60.0
"""Seconds that one API call may take where its caller names no other limit."""

DEFAULT_SOCKET: Final = "unix:///var/run/docker.sock"

REMEDY: Final = (
    f"Start Docker Engine {OLDEST_VERSION} or newer (script/setup installs one), "
    "or set DOCKER_HOST to one that answers."
)


@dataclass(frozen=True)
class EngineFacts:
    """What the engine says about itself, asked once."""

    id: str
    server_version: str
    api_version: str
    cpus: int
    memory_mb: int
    platform: str
    """``linux/amd64``, ``linux/arm64``, ..."""
    is_local: bool
    """True when the engine is reached by a unix socket, so that it shares this host's kernel."""


class Engine:
    """A Docker engine, found by the environment as the ``docker`` command finds it.

    Safe to share between threads: each thread gets a client of its own, since a client's
    connection pool is not made for more. Nothing is contacted before the first use.
    """

    def __init__(
        self, environment: Mapping[str, str] | None = None, *, timeout: float = CALL_TIMEOUT
    ) -> None:
        self.environment: Final[Mapping[str, str]] = dict(
            os.environ if environment is None else environment
        )
        self._timeout = timeout
        self._local = threading.local()
        self._lock = threading.Lock()
        # weak: a thread that ends takes its client with it
        self._clients: weakref.WeakSet[APIClient] = weakref.WeakSet()
        self._place: dict[str, Any] | None = None
        self._facts: EngineFacts | None = None

    @property
    def api(self) -> APIClient:
        """The client of this thread; every call of it ends within the engine's timeout."""
        client: APIClient | None = getattr(self._local, "client", None)
        if client is None:
            client = self.connect()
            self._local.client = client
        return client

    @property
    def facts(self) -> EngineFacts:
        """Version and size of the engine; the first call makes sure that it is new enough."""
        with self._lock:
            if self._facts is None:
                self._facts = self._ask()
            return self._facts

    def connect(self, *, timeout: float | None = None) -> APIClient:
        """A further client, for a caller that needs another timeout; :meth:`close` closes it."""
        client = self._client(self.facts.api_version, self._timeout if timeout is None else timeout)
        with self._lock:
            self._clients.add(client)
        return client

    def close(self) -> None:
        """Close the connections of all threads; a later use opens new ones."""
        with self._lock:
            clients, self._clients = list(self._clients), weakref.WeakSet()
            self._local = threading.local()
        for client in clients:
            client.close()

    def _client(self, version: str, timeout: float) -> APIClient:
        from docker import APIClient

        # requests takes a float; the stubs say int
        client = APIClient(version=version, timeout=timeout, **self._where())  # type: ignore[arg-type]
        if self._socket() is not None:
            # no proxy and no .netrc is asked for a socket: a quarter of a call's CPU time
            client.trust_env = False
        return client

    def _where(self) -> dict[str, Any]:
        """Address and TLS settings: DOCKER_HOST, else the current context, else the socket."""
        if self._place is None:
            from docker.context import ContextAPI
            from docker.utils import kwargs_from_env

            if self.environment.get("DOCKER_HOST"):
                self._place = dict(kwargs_from_env(dict(self.environment)))
            else:
                context = ContextAPI.get_context(self.environment.get("DOCKER_CONTEXT"))
                self._place = {}
                if context and context.Host:
                    self._place["base_url"] = context.Host
                if context and context.TLSConfig:
                    self._place["tls"] = context.TLSConfig
        return self._place

    def _ask(self) -> EngineFacts:
        from docker.errors import DockerException
        from requests.exceptions import RequestException

        try:
            self._knock()
            # "1.44" is what engine 25 speaks: an older one refuses it and says so by its version
            client = self._client("1.44", min(self._timeout, 15.0))
            try:
                version: dict[str, Any] = client.version(api_version=False)
                server = str(version.get("Version", ""))
                refuse_old(server)
                info: dict[str, Any] = client.info()
            finally:
                client.close()
        except (DockerException, RequestException, OSError, ValueError) as fault:
            where = self.environment.get("DOCKER_HOST") or "its default socket"
            raise SandboxError(f"No Docker engine answers at {where}: {fault}. {REMEDY}") from fault
        return EngineFacts(
            id=str(info.get("ID") or info.get("Name") or "engine"),
            server_version=server,
            api_version=str(version["ApiVersion"]),
            cpus=int(info["NCPU"]),
            memory_mb=int(info["MemTotal"]) // (1024 * 1024),
            platform=f"{version.get('Os') or 'linux'}/{version.get('Arch') or 'amd64'}",
            is_local=self._socket() is not None,
        )

    def _socket(self) -> str | None:
        """Path of the unix socket, or None where the engine is reached in another way."""
        place = str(self._where().get("base_url") or DEFAULT_SOCKET)
        return place.removeprefix("unix://") if place.startswith(("unix://", "/")) else None

    def _knock(self) -> None:
        """Fail on a dead socket with the system's own words; the SDK would leak a descriptor."""
        if (path := self._socket()) is not None:
            with socket.socket(socket.AF_UNIX) as knock:
                knock.settimeout(10)
                knock.connect(path)


def refuse_old(server_version: str) -> None:
    """Raise when an engine of this version cannot run our groups."""
    major = re.match(r"\d+", server_version)
    if major is None or int(major.group()) < OLDEST_VERSION:
        raise SandboxError(
            f"Docker Engine {server_version or '(no version)'} is too old: groups need "
            f"version {OLDEST_VERSION} for healthchecks with a start_interval. {REMEDY}"
        )
