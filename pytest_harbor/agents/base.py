"""What an agent is: something that is set up once in a container and then takes turns.

An agent knows the container that it works in and the turn that it is asked to take; it knows
nothing of tasks, grading or pytest.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pytest_harbor.sandbox.container import Container, Ran
from pytest_harbor.sandbox.engine import Engine
from pytest_harbor.task.timeouts import Deadline

LOGS = "/logs/agent"
"""Where an agent's logs go inside main (harbor-format 4)."""

_LAST_LINE = 300
"""Characters of a command's last words in a message."""

Transport = Literal["stdio", "sse", "streamable-http"]
ALL_TRANSPORTS: frozenset[Transport] = frozenset({"stdio", "sse", "streamable-http"})


@dataclass(frozen=True)
class Capabilities:
    """What an agent can do and what it needs, known before anything starts."""

    is_utility: bool = False
    """Whether it stands outside the contest (oracle, nop, ...): exempt from MCP checks."""
    mcp_transports: frozenset[Transport] = ALL_TRANSPORTS
    """The MCP transports that it can speak."""
    needs_model: bool = False
    """Whether it asks a model: it gets the address of the model server ``policy``."""
    wire: Literal["chat", "responses", "messages", "gemini"] | None = None
    """The API that it asks the model by, where only one will do."""
    needs_network: bool = False
    """Whether main must be able to reach this host for it."""
    resumes: bool = False
    """Whether it can go on with an earlier turn's session."""
    plays_solution: bool = False
    """Whether it is shown the reference solution."""
    binaries: tuple[str, ...] = ()
    """Programs that main must have."""
    tool_aliases: Mapping[str, str] = field(default_factory=dict)
    """MCP tools, by their own names, that it must be offered under another one."""


@dataclass(frozen=True)
class ModelDoor:
    """Where an agent finds its model."""

    name: str
    """What to ask for."""
    url: str
    """The address of the episode's secret door at the gateway, without ``/v1``; the same from main
    and from this host. It is the key as well."""


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
    model: ModelDoor | None = None
    """Where the model is, for agents that need one."""
    effort: str | None = None
    """How hard the model shall think, in the agent's own words."""
    session: str | None = None
    """The session to go on with; None for a fresh one."""
    episode: str = ""
    """The name of the episode's run folder, the same in every run."""


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
    session: str | None = None
    """By what name a later turn may go on with this one's session."""
    extra: Mapping[str, Any] = field(default_factory=dict)


class Agent(ABC):
    """What an episode asks of an agent; only :meth:`run_turn` must be written."""

    name: str
    """The name by which it is chosen and reported."""
    version: str = ""
    """Its version, as exact as it is known before it runs."""
    model: str | None = None
    """The model behind it, if there is one."""
    capabilities: Capabilities = Capabilities()

    def prepare(self, engine: Engine, deadline: Deadline) -> Mapping[str, str]:  # noqa: ARG002
        """Install what is needed once for all episodes, before a group is there.

        Returns volumes of the engine by where main shall have them, read-only.

        Raises:
            AgentError: it cannot be installed.
        """
        return {}

    def setup(  # noqa: B027  most agents have nothing to prepare
        self, container: Container, *, user: str | int | None, deadline: Deadline
    ) -> None:
        """Prepare once per episode, before the first turn.

        Raises:
            AgentError: it cannot work in this container.
        """

    @abstractmethod
    def run_turn(self, turn: Turn) -> TurnResult:
        """Take one turn and come back when it is over or its deadline has passed.

        What is left running in the container is the caller's to end.

        Raises:
            AgentError: the turn could not be taken.
        """


def ended(ran: Ran, what: str, log: str, container: Container) -> TurnResult:
    """The result of a turn that was one command writing to ``log`` (a name in :data:`LOGS`)."""
    if ran.timed_out:
        return TurnResult("timeout", message=f"agent timed out: {ran.limit}", log=log)
    if ran.exit_code != 0:
        message = f"{what} exited with {ran.exit_code}: {last_line(container, log)}"
        return TurnResult("error", ran.exit_code, message, log)
    return TurnResult("exited", 0, log=log)


def last_line(container: Container, log: str) -> str:
    """The last words in a log of an agent's (a name in :data:`LOGS`), for a message."""
    said = (container.read(f"{LOGS}/{log}") or b"").decode("utf-8", "replace").split("\n")
    last = next((line.strip() for line in reversed(said) if line.strip()), "no output")
    return last[:_LAST_LINE]
