"""The exceptions of this package: one tree, each with a message that says what to do.

    HarborError
    ├── TaskError       the task folder is wrong                 (author: fix the file named)
    ├── RecipeError     harbor.yaml, an ini key or an option is  (operator: fix the key named)
    ├── ImageError      an image could not be built or pulled
    ├── SandboxError    the Compose group did not start, died or could not be cleaned
    ├── AgentError      the agent could not be prepared
    ├── VerifierError   grading gave no usable reward
    ├── UserError       the simulated user or an MCP grant is not there
    └── TrajectoryError a file that should be an ATIF trajectory is none

Each names the outcome that an episode ends with when it is stopped by it.
"""

from __future__ import annotations


class HarborError(Exception):
    """Anything this package raises on purpose.

    ``outcome`` names the member of :class:`pytest_harbor.episode.outcome.Outcome` that an episode
    ends with when this error stops it.
    """

    outcome = "internal"

    def __init__(self, message: str, *, outcome: str | None = None) -> None:
        super().__init__(message)
        if outcome is not None:
            self.outcome = outcome


class TaskError(HarborError):
    """A task folder that cannot be run; the message names file, key or line, and remedy."""

    outcome = "task_invalid"


class RecipeError(HarborError):
    """A recipe value that cannot be used; the message names where it came from."""

    outcome = "task_invalid"


class ImageError(HarborError):
    """An image that could not be built, pulled or found."""

    outcome = "image_failed"


class SandboxError(HarborError):
    """A Compose group that did not start, died, or could not be cleaned."""

    outcome = "start_failed"


class AgentError(HarborError):
    """An agent that could not be found, prepared or started."""

    outcome = "setup_failed"


class VerifierError(HarborError):
    """Grading that gave no usable reward."""

    outcome = "no_reward"


class UserError(HarborError):
    """A simulated user or MCP server that is not there or cannot be used."""

    outcome = "mcp_unavailable"


class TrajectoryError(HarborError):
    """A file that was given as a trajectory and is none; the message names file and key."""

    outcome = "setup_failed"
