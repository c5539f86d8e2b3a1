"""MCP servers that the agent is granted, and whether they can really be used.

The recipe key ``task_mcp_grants`` says how much that matters: ``off`` (none are given),
``optional`` (trouble is noted), ``required`` (trouble ends the episode before the first turn).
"""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

from pytest_harbor.agents.base import Agent, Grant
from pytest_harbor.errors import HarborError, UserError
from pytest_harbor.sandbox.container import Container
from pytest_harbor.sandbox.group import Group
from pytest_harbor.settings import GrantMode
from pytest_harbor.task import templates
from pytest_harbor.task.schema import McpServer
from pytest_harbor.task.timeouts import Deadline

if TYPE_CHECKING:
    from pytest_harbor.user.mcp import Handshake

_PAUSE = 0.1


@dataclass(frozen=True)
class Seen:
    """A grant and what was found when it was tried; ``trouble`` is empty when it works."""

    grant: Grant
    tools: tuple[str, ...] = ()
    trouble: str = ""
    note: str = ""
    from_host: bool = False
    """Whether this host can use it, too, and so pass on what the agent asks of it."""


def make_grants(
    servers: Iterable[McpServer], mode: GrantMode, variables: Mapping[str, str]
) -> tuple[Grant, ...]:
    """The task's servers as grants, their header templates filled from ``variables``.

    Raises:
        RecipeError: a header asks for a variable that is not set.
    """
    if mode == "off":
        return ()
    return tuple(
        Grant(
            name=server.name,
            transport=server.transport,
            url=server.url,
            command=server.command,
            args=server.args,
            headers={
                key: templates.resolve_embedded(
                    value, variables, where=f"[[environment.mcp_servers]] {server.name} {key}"
                )
                for key, value in server.headers.items()
            },
        )
        for server in servers
    )


def is_relayable(grant: Grant) -> bool:
    """Whether somebody else than the agent could talk to the server in its place."""
    return grant.url is not None and not _is_loopback(urlsplit(grant.url).hostname or "")


def url_variables(grants: Iterable[Grant]) -> dict[str, str]:
    """``<NAME>_URL`` for each granted server, for scripts in main: ``USER_SERVER_URL``."""
    return {
        re.sub(r"[^A-Z0-9]+", "_", grant.name.upper()).strip("_") + "_URL": grant.url
        for grant in grants
        if grant.url
    }


def refuse_unfit_agent(agent: Agent, grants: Sequence[Grant], mode: GrantMode) -> tuple[str, ...]:
    """Say what the agent cannot use; with ``required`` grants, refuse it by name.

    Raises:
        UserError: a required grant that the agent cannot use.
    """
    if agent.capabilities.is_utility:
        return ()
    unfit = [
        f"agent {agent.name} cannot use the MCP server {grant.name!r} ({grant.transport})"
        for grant in grants
        if grant.transport not in agent.capabilities.mcp_transports
    ]
    if unfit and mode == "required":
        raise UserError(
            f"{'; '.join(unfit)}. Take an agent that can, or set task_mcp_grants: optional"
        )
    return tuple(unfit)


def try_grants(
    grants: Sequence[Grant], mode: GrantMode, group: Group, main: Container, seconds: float
) -> tuple[Seen, ...]:
    """Greet every granted server from main and, where it can be reached, from this host.

    Each server has ``seconds`` of its own, so that a dead one does not speak for the next.

    Raises:
        UserError: ``mode`` is ``required`` and a server does not answer or has no tools; names it.
    """
    found = tuple(
        _try(grant, group, main, Deadline.after(seconds, "mcp_ready_seconds")) for grant in grants
    )
    bad = [f"MCP server {seen.grant.name!r}: {seen.trouble}" for seen in found if seen.trouble]
    if bad and mode == "required":
        raise UserError("; ".join(bad))
    return found


def _try(grant: Grant, group: Group, main: Container, deadline: Deadline) -> Seen:
    if grant.transport == "stdio":
        return Seen(grant, note="runs inside main as a child of the agent; not tried")
    from pytest_harbor.user.mcp import Address, shake_hands

    here = address_from_host(grant.url or "", group)
    from_host = None if here is None else Address(here, grant.headers)
    from_main = Address(grant.url or "", grant.headers, main)
    # Only the decisive view is waited for; main cannot hold the stream that plain SSE needs.
    first = from_main if grant.transport == "streamable-http" else from_host
    if first is None:
        return Seen(grant, note="an SSE server is tried from this host only, which cannot reach it")
    try:
        if here is not None:
            _wait_for_listener(here, grant.url or "", deadline)
        hello = _patiently(lambda: shake_hands(grant, first, deadline), deadline)
        if not hello.tools:
            return Seen(grant, trouble=f"{grant.url} answers, but offers no tools")
    except HarborError as error:
        return Seen(grant, trouble=str(error))
    if first is from_main and from_host is not None:
        try:
            shake_hands(grant, from_host, deadline)
        except HarborError as error:
            return Seen(grant, hello.tools, note=f"reached from main, but not from here: {error}")
    return Seen(grant, hello.tools, from_host=from_host is not None)


def address_from_host(url: str, group: Group) -> str | None:
    """The URL by which this host reaches what main reaches as ``url``; None where it cannot."""
    parts = urlsplit(url)
    name = parts.hostname or ""
    if _is_loopback(name):
        return None  # main's own, which nobody else can see
    if name not in group.services:
        return url
    address = group.address(name)
    if address is None:
        return None
    place = address if parts.port is None else f"{address}:{parts.port}"
    return urlunsplit(parts._replace(netloc=place))


def _is_loopback(name: str) -> bool:
    return name == "localhost" or name.startswith("127.") or name == "::1"


def _wait_for_listener(url: str, shown: str, deadline: Deadline) -> None:
    """Knock at the port until somebody listens; a knock is far cheaper than a handshake."""
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    while True:
        try:
            socket.create_connection((parts.hostname or "", port), timeout=2).close()
        except OSError as error:
            if deadline.expired:
                raise UserError(f"nothing listens at {shown}: {error} ({deadline.what})") from None
            time.sleep(_PAUSE)
        else:
            return


def _patiently(greet: Callable[[], Handshake], deadline: Deadline) -> Handshake:
    """Greet again until it works or the time is up; then the last trouble is the answer.

    The greeting that the deadline cuts short knows nothing of why the ones before it failed.
    """
    trouble: UserError | None = None
    while True:
        try:
            return greet()
        except UserError as error:
            if deadline.expired:
                raise trouble or error from None
            trouble = error
            time.sleep(_PAUSE)
