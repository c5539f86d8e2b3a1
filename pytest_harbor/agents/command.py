"""The agent that is any shell command, run in main once per turn.

It finds its instruction on stdin and in the file named by ``HARBOR_INSTRUCTION_FILE``, and its
MCP servers in the JSON file named by ``HARBOR_MCP_FILE``, in the ``mcpServers`` form that most
clients read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pytest_harbor.agents.base import LOGS, Agent, Grant, Turn, TurnResult, ended
from pytest_harbor.sandbox.container import Entry

_LOG = "command.txt"
_INSTRUCTION = f"{LOGS}/instruction.md"
_SERVERS = f"{LOGS}/mcp.json"


@dataclass(frozen=True)
class CommandAgent(Agent):
    """Runs ``command`` under the shell of main."""

    command: str
    model: str | None = None
    name: str = "command"
    version: str = "1"

    def run_turn(self, turn: Turn) -> TurnResult:
        """Lay instruction and server list into the container and run the command."""
        owner = turn.container.user(turn.user)
        servers = json.dumps({"mcpServers": mcp_servers(turn.grants)}, indent=2) + "\n"
        turn.container.put(
            [
                Entry(_INSTRUCTION, turn.instruction.encode(), 0o644, owner.uid, owner.gid),
                Entry(_SERVERS, servers.encode(), 0o600, owner.uid, owner.gid),
            ]
        )
        known = {"HARBOR_MODEL": self.model, "HARBOR_EFFORT": turn.effort}
        ran = turn.container.run_logged(
            self.command,
            log=f"{LOGS}/{_LOG}",
            stdin=_INSTRUCTION,
            user=turn.user,
            env={
                "HARBOR_INSTRUCTION_FILE": _INSTRUCTION,
                "HARBOR_MCP_FILE": _SERVERS,
                **{name: value for name, value in known.items() if value},
                **turn.env,
            },
            deadline=turn.deadline,
        )
        return ended(ran, "the command", _LOG, turn.container)


def mcp_servers(grants: Iterable[Grant]) -> dict[str, Any]:
    """Grants in the ``mcpServers`` form; ``type`` is http, sse or stdio."""
    return {grant.name: _server(grant) for grant in grants}


def _server(grant: Grant) -> dict[str, Any]:
    if grant.transport == "stdio":
        return {"type": "stdio", "command": grant.command, "args": list(grant.args)}
    server = {
        "type": "http" if grant.transport == "streamable-http" else "sse",
        "url": grant.url,
    }
    return {**server, "headers": dict(grant.headers)} if grant.headers else server
