"""How an episode can end: a closed set, each member with one fixed meaning.

The meaning has three parts: what pytest shows, whether a fresh attempt is worth making, and
whether the reward beside the outcome can be trusted. docs/outcomes.md is the same table in prose.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

Shown = Literal["passed", "failed", "error"]


class Outcome(StrEnum):
    """The name under which an episode, or one step of it, ended."""

    # Graded: the verifier spoke, or a gate that it decided stopped the episode.
    PASSED = "passed"
    FAILED = "failed"
    AGENT_TIMEOUT = "agent_timeout"
    AGENT_ERROR = "agent_error"
    GATE_STOPPED = "gate_stopped"
    # Errors: nobody can say how good the agent is.
    TASK_INVALID = "task_invalid"
    IMAGE_FAILED = "image_failed"
    START_FAILED = "start_failed"
    SETUP_FAILED = "setup_failed"
    SANDBOX_DIED = "sandbox_died"
    CLEANING_FAILED = "cleaning_failed"
    VERIFIER_TIMEOUT = "verifier_timeout"
    NO_REWARD = "no_reward"
    REWARD_UNREADABLE = "reward_unreadable"
    MCP_UNAVAILABLE = "mcp_unavailable"
    USER_LOST = "user_lost"
    USER_DEGRADED = "user_degraded"
    BUDGET_SPENT = "budget_spent"
    INTERRUPTED = "interrupted"
    INTERNAL = "internal"

    @property
    def meaning(self) -> Meaning:
        """What this outcome stands for in pytest, for retries and for trust."""
        return _MEANINGS[self]

    @property
    def is_graded(self) -> bool:
        """Whether the reward beside this outcome says something about the agent."""
        return self.meaning.trusted


@dataclass(frozen=True)
class Meaning:
    """The fixed consequences of one outcome."""

    shown: Shown
    retry: bool
    trusted: bool
    text: str


def _graded(shown: Shown, text: str) -> Meaning:
    return Meaning(shown=shown, retry=False, trusted=True, text=text)


def _error(text: str, *, retry: bool) -> Meaning:
    return Meaning(shown="error", retry=retry, trusted=False, text=text)


_MEANINGS: dict[Outcome, Meaning] = {
    Outcome.PASSED: _graded("passed", "the reward meets the pass rule"),
    Outcome.FAILED: _graded("failed", "the reward does not meet the pass rule"),
    Outcome.AGENT_TIMEOUT: _graded("failed", "failed, and the agent ran out of time in a step"),
    Outcome.AGENT_ERROR: _graded("failed", "failed, and the agent ended with an error in a step"),
    Outcome.GATE_STOPPED: _graded("failed", "a step's min_reward was missed; later steps not run"),
    Outcome.TASK_INVALID: _error("the task or its recipe cannot be run as written", retry=False),
    Outcome.IMAGE_FAILED: _error("an image could not be built or pulled", retry=True),
    Outcome.START_FAILED: _error("the Compose group did not become ready", retry=True),
    Outcome.SETUP_FAILED: _error("setup of the agent or of a step failed", retry=True),
    Outcome.SANDBOX_DIED: _error("main stopped running during a step", retry=True),
    Outcome.CLEANING_FAILED: _error("what grading brought could not be removed", retry=True),
    Outcome.VERIFIER_TIMEOUT: _error("the verifier ran out of time", retry=False),
    Outcome.NO_REWARD: _error("the verifier wrote no reward", retry=False),
    Outcome.REWARD_UNREADABLE: _error("the verifier's reward is not a reward", retry=False),
    Outcome.MCP_UNAVAILABLE: _error("a required MCP server cannot be used", retry=True),
    Outcome.USER_LOST: _error("the simulated user was restarted and forgot", retry=True),
    Outcome.USER_DEGRADED: _error("the simulated user could not think", retry=True),
    Outcome.BUDGET_SPENT: _error("a budget in USD or tokens is used up", retry=False),
    Outcome.INTERRUPTED: _error("the run was stopped from outside", retry=True),
    Outcome.INTERNAL: _error("a fault that has no name yet; please report it", retry=True),
}
