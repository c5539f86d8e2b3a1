"""The simulated user as the rest of the house sees it: a service that remembers.

Its memory is its process: a restart in between gives an amnesiac user, so the container that
answered first must be the one that answers last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from pytest_harbor.agents.base import Grant
from pytest_harbor.errors import UserError
from pytest_harbor.sandbox.group import Group


@dataclass(frozen=True)
class SimulatedUser:
    """The sidecar behind a granted MCP server."""

    service: str
    url: str
    _group: Group
    _born: str

    def check_memory(self) -> None:
        """Make sure that it is still the process that it was at the start of the episode.

        Raises:
            UserError: it was restarted or is gone (outcome ``user_lost``).
        """
        now = _identity(self._group, self.service)
        if now != self._born:
            raise UserError(
                f"the simulated user ({self.service}) was restarted or has ended during the "
                "episode: what it knew of the conversation is lost",
                outcome="user_lost",
            )

    def logs(self) -> bytes:
        """What the sidecar printed so far."""
        return self._group.logs(self.service)


def find_user(grants: Sequence[Grant], group: Group) -> SimulatedUser | None:
    """The simulated user of a group: the first granted server that is one of its sidecars."""
    for grant in grants:
        service = urlsplit(grant.url or "").hostname
        if service is not None and service != "main" and service in group.services:
            born = _identity(group, service)
            return SimulatedUser(service, grant.url or "", group, born)
    return None


def _identity(group: Group, service: str) -> str:
    state = group.state(service)
    if not state.running:
        return "not running"
    return f"{state.container_id} {state.started_at}"
