"""What a reader is: it turns the log of one CLI into a trajectory, and says how the turn ended.

Exit codes lie, so the end is read from the log too. A reader never raises over a log: what it
cannot read becomes a note.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Final, Literal, Protocol, runtime_checkable

from pytest_harbor.errors import RecipeError
from pytest_harbor.trajectory import Trajectory

BUILT_IN: Final = (
    "aider",
    "claude-code",
    "codex",
    "gemini-cli",
    "kimi-code",
    "mini-swe-agent",
    "opencode",
    "qwen-code",
)


@dataclass(frozen=True)
class Reading:
    """What the logs of one turn say."""

    trajectory: Trajectory | None
    """Of this turn only: what a resumed session held before is left out. None when there is
    nothing to tell, not even an instruction."""
    ended: Literal["exited", "error"]
    """How the turn really ended, whatever the exit code."""
    message: str = ""
    """The words of the provider or the CLI, when it did not end well."""
    session: str | None = None
    """The id by which the CLI resumes this session."""
    input_tokens: int | None = None
    """By the CLI's own count, like the next three; cached ones included."""
    output_tokens: int | None = None
    cached_tokens: int | None = None
    cost_usd: float | None = None
    notes: tuple[str, ...] = ()
    """What could not be read and what is missing: nothing is dropped without a word."""


@runtime_checkable
class Reader(Protocol):
    """Reads the logs of one CLI."""

    def read(
        self,
        logs: Path,
        *,
        stdout: Path,
        exit_code: int | None,
        instruction: str,
        agent_name: str,
        agent_version: str,
        model: str | None,
    ) -> Reading:
        """Read one turn.

        ``logs`` is a folder of this host with what the CLI's log folder held, ``stdout`` the file
        with what it printed; both may be missing. ``exit_code`` is None when the turn was ended
        from outside.
        """


def find_reader(name: str) -> Reader:
    """A reader by its name, or ``module:attribute``.

    Raises:
        RecipeError: there is no such reader.
    """
    module, _, attribute = name.partition(":")
    if name in BUILT_IN:
        module, attribute = f"{__package__}.{name.replace('-', '_')}", "READER"
    elif not attribute:
        known = ", ".join(BUILT_IN)
        raise RecipeError(f"there is no reader {name!r}; known: {known}, module:attribute")
    try:
        reader = getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise RecipeError(f"the reader {name!r} cannot be loaded: {error}") from error
    if not isinstance(reader, Reader):
        raise RecipeError(f"{name!r} is no reader; see pytest_harbor.agents.readers.base.Reader")
    return reader
