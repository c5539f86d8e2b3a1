"""The agent that does nothing, to show what a task's verifier says of untouched work."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_harbor.agents.base import Transport, Turn, TurnResult
from pytest_harbor.sandbox.container import Container
from pytest_harbor.task.timeouts import Deadline


@dataclass(frozen=True)
class NopAgent:
    """Does nothing, always succeeds."""

    name: str = "nop"
    version: str = "1"
    model: str | None = None
    is_utility: bool = True
    mcp_transports: frozenset[Transport] = frozenset()

    def setup(self, container: Container, *, user: str | int | None, deadline: Deadline) -> None:
        """Nothing to prepare."""

    def run_turn(self, turn: Turn) -> TurnResult:  # noqa: ARG002  the turn passes unused
        """Let the turn pass."""
        return TurnResult("exited", 0)
