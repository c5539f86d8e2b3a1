"""The agent that does nothing, to show what a task's verifier says of untouched work."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_harbor.agents.base import Agent, Capabilities, Turn, TurnResult


@dataclass(frozen=True)
class NopAgent(Agent):
    """Does nothing, always succeeds."""

    name: str = "nop"
    version: str = "1"
    model: str | None = None
    capabilities = Capabilities(is_utility=True)

    def run_turn(self, turn: Turn) -> TurnResult:  # noqa: ARG002  the turn passes unused
        """Let the turn pass."""
        return TurnResult("exited", 0)
