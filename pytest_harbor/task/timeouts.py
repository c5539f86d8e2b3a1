"""Every time budget and every deadline: who set it, how it was computed, what it is for.

One resolver (:func:`resolve`) turns what step, task, recipe and options say into a
:class:`Budget`; every wait elsewhere takes a :class:`Deadline` made from one. Harbor's own
arithmetic (harbor-format 9; sharp edges 5, 7, 34) caps before it multiplies and takes defaults
for declarations; here the order is fixed: explicit step value, else task, else default; times the
multiplier, once; then the hard cap.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from pytest_harbor.errors import RecipeError

Phase = Literal["environment start", "agent setup", "step setup", "agent", "verifier"]

DEFAULTS: Final[Mapping[Phase, float | None]] = {
    "environment start": 600.0,
    "agent setup": 360.0,
    "step setup": 600.0,  # ours: Harbor lets a setup.sh run for ever (sharp edge 8)
    "agent": None,
    "verifier": 600.0,
}
"""Seconds per phase when nothing is declared, None for no limit (harbor-format 2.3-2.5, 9.1)."""


@dataclass(frozen=True)
class Declared:
    """A number of seconds that a file or option names, or ``seconds=None`` where none does.

    ``source`` is where it stands: ``[[steps]] 01_plan [agent] timeout_sec``, or ``not set``.
    """

    seconds: float | None
    source: str

    def or_else(self, other: Declared) -> Declared:
        """Return this declaration, or the other one where this is not set."""
        return self if self.seconds is not None else other


NOT_SET: Final = Declared(None, "not set")


@dataclass(frozen=True)
class Budget:
    """What a phase may take: seconds (None: no limit) and the sum that led there, to be shown."""

    seconds: float | None
    source: str

    def __str__(self) -> str:
        return self.source


def resolve(
    phase: Phase,
    step: Declared | None = None,
    task: Declared | None = None,
    *,
    multiplier: float = 1.0,
    multiplier_source: str = "",
    cap: float | None = None,
    cap_source: str = "",
    override: float | None = None,
    override_source: str = "",
) -> Budget:
    """Compute the budget of a phase.

    The base is ``override`` (an operator's absolute value), else the step's declaration, else the
    task's, else the phase's default. It is multiplied once, wherever it came from, and ``cap`` is
    the last word. All values are seconds; None means "not given". ``*_source`` says in the printed
    sum where a value was written.

    Raises RecipeError when an override, multiplier or cap is zero, negative, infinite or NaN: an
    operator who writes 0 did not mean "unset" (in a task.toml it is a warning, and unset).
    """
    _check(override, override_source or f"the {phase} timeout")
    _check(multiplier, multiplier_source or f"the {phase} timeout multiplier")
    _check(cap, cap_source or f"the cap of the {phase} timeout")
    base = _base(phase, step, task, override, override_source)
    seconds, text = base.seconds, _amount(base.seconds, base.source)
    if seconds is not None and multiplier != 1:
        seconds *= multiplier
        text += f" × {_amount(multiplier, multiplier_source, unit='')} = {_amount(seconds)}"  # noqa: RUF001
    if cap is not None and (seconds is None or seconds > cap):
        seconds = cap
        text += f", capped at {_amount(cap, cap_source)}"
    return Budget(seconds, text)


def _base(
    phase: Phase,
    step: Declared | None,
    task: Declared | None,
    override: float | None,
    override_source: str,
) -> Declared:
    """Pick the value that counts, before any arithmetic."""
    if override is not None:
        return Declared(override, override_source or "override")
    chosen = (step or NOT_SET).or_else(task or NOT_SET)
    return chosen.or_else(Declared(DEFAULTS[phase], "default"))


def _check(value: float | None, what: str) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not math.isfinite(value) or value <= 0:
        raise RecipeError(f"{what} is {value}; give a number above 0, or leave it out")


def _amount(value: float | None, source: str = "", *, unit: str = " s") -> str:
    """Write a number as a person would, with its unit and where it came from."""
    text = "no limit" if value is None else f"{round(value, 3):.15g}{unit}"
    return f"{text} ({source})" if source else text


@dataclass(frozen=True)
class Deadline:
    """A moment on the monotonic clock, and the limit that ends there.

    ``what`` names the limit ("agent budget, 600 s ([agent] timeout_sec)"), so that whoever is
    stopped by it can say which of several nested limits fired, and after how long.
    """

    what: str
    started: float
    ends: float | None

    @classmethod
    def after(cls, limit: float | Budget | None, what: str = "") -> Deadline:
        """Start the clock now; ``limit`` in seconds, or a budget, None for no limit."""
        if isinstance(limit, Budget):
            what = f"{what}: {limit.source}" if what else limit.source
            limit = limit.seconds
        now = time.monotonic()
        return cls(what, now, None if limit is None else now + limit)

    @classmethod
    def never(cls, what: str = "") -> Deadline:
        """Return a deadline that does not come."""
        return cls.after(None, what)

    def remaining(self) -> float | None:
        """Seconds left, never below 0; None without a limit (fits any ``timeout=``)."""
        return None if self.ends is None else max(0.0, self.ends - time.monotonic())

    @property
    def expired(self) -> bool:
        """Whether the moment has come."""
        return self.ends is not None and time.monotonic() >= self.ends

    @property
    def elapsed(self) -> float:
        """Seconds since the clock was started."""
        return time.monotonic() - self.started

    def sooner(self, other: Deadline | None) -> Deadline:
        """Return whichever of the two comes first; it keeps its own name and start."""
        if other is None or other.ends is None:
            return self
        return self if self.ends is not None and self.ends <= other.ends else other

    def describe(self) -> str:
        """Say which limit this is and how long it has run, for an error message."""
        return f"{self.what or 'time limit'}, after {_amount(round(self.elapsed, 1))}"
