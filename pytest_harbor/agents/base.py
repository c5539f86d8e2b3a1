"""What an agent is: something that is set up once in a container and then takes turns.

An agent knows the container that it works in and the turn that it is asked to take; it knows
nothing of tasks, grading or pytest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

from pytest_harbor.sandbox.container import Container, Ran
from pytest_harbor.task.timeouts import Deadline

LOGS = "/logs/agent"
"""Where an agent's logs go inside main (harbor-format 4)."""

Transport = Literal["stdio", "sse", "streamable-http"]


@dataclass(frozen=True)
class Grant:
    """An MCP server that the agent may use in a turn; addresses are as seen from main."""

    name: str
    transport: Transport
    url: str | None = None
    command: str | None = None
    args: tuple[str, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Turn:
    """The agent's part of one step."""

    step: str
    index: int
    instruction: str
    container: Container
    user: str | int | None
    deadline: Deadline
    env: Mapping[str, str] = field(default_factory=dict)
    grants: tuple[Grant, ...] = ()
    solution: Path | None = None
    """The reference solution's folder; only the oracle looks at it."""
    solution_env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class TurnResult:
    """How a turn ended. Files that it names lie in :data:`LOGS` and are named relative to it."""

    ended: Literal["exited", "timeout", "error"]
    exit_code: int | None = None
    message: str = ""
    log: str | None = None
    trajectory: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    cost_usd: float | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


@runtime_checkable
class Agent(Protocol):
    """What an episode asks of an agent."""

    @property
    def name(self) -> str:
        """The name by which it is chosen and reported."""

    @property
    def version(self) -> str:
        """Its version, as exact as it is known before it runs."""

    @property
    def model(self) -> str | None:
        """The model behind it, if there is one."""

    @property
    def is_utility(self) -> bool:
        """Whether it stands outside the contest (oracle, nop, ...): exempt from MCP checks."""

    @property
    def mcp_transports(self) -> frozenset[Transport]:
        """The MCP transports that it can speak."""

    def setup(self, container: Container, *, user: str | int | None, deadline: Deadline) -> None:
        """Prepare once per episode, before the first turn.

        Raises:
            AgentError: it cannot work in this container.
        """

    def run_turn(self, turn: Turn) -> TurnResult:
        """Take one turn and come back when it is over or its deadline has passed.

        What is left running in the container is the caller's to end.
        """


def ended(ran: Ran, what: str, log: str) -> TurnResult:
    """The result of a turn that was one command writing to ``log`` (a name in :data:`LOGS`)."""
    if ran.timed_out:
        return TurnResult("timeout", message=f"agent timed out: {ran.limit}", log=log)
    if ran.exit_code != 0:
        return TurnResult("error", ran.exit_code, f"{what} exited with {ran.exit_code}", log)
    return TurnResult("exited", 0, log=log)
