"""Is a group up? Every service runs, is healthy where it can say so, or has ended with 0 (B69)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

_LOG_CHARS: Final = 2000
_RESTARTS: Final = 3
"""How often a service may come back before it counts as failed."""

_NEVER: Final = "0001-01-01T00:00:00Z"


_NOT_FOUND: Final = 127
_NO_SHELL: Final = (
    ", as a command does that is not there: without a shell, /bin/sh, an image cannot be main, "
    "for every command of an episode goes through it"
)


@dataclass(frozen=True)
class ServiceState:
    """One container of a group, as the engine sees it now."""

    service: str
    container_id: str
    status: str
    """The engine's word: created, running, restarting, exited, dead, ..."""
    running: bool
    exit_code: int | None
    """None while it runs or was never started."""
    oom_killed: bool
    health: str | None
    """starting, healthy or unhealthy; None without a healthcheck."""
    started_at: str
    probes: tuple[tuple[int, str], ...] = ()
    """Exit code and output of the last probes."""
    restarts_by_itself: bool = False
    restarts: int = 0

    @classmethod
    def of(cls, service: str, seen: Mapping[str, Any]) -> ServiceState:
        """Read what the engine's inspect says."""
        state = seen["State"]
        health = state.get("Health") or {}
        started = str(state.get("StartedAt") or _NEVER)
        # while the engine waits to restart it, it says "Running" and "Restarting"
        alive = bool(state["Running"]) and not state.get("Restarting")
        ended = not alive and started != _NEVER
        policy = ((seen.get("HostConfig") or {}).get("RestartPolicy") or {}).get("Name")
        return cls(
            service=service,
            container_id=str(seen["Id"]),
            status=str(state.get("Status", "")),
            running=alive,
            exit_code=int(state["ExitCode"]) if ended else None,
            oom_killed=bool(state.get("OOMKilled")),
            health=None if health.get("Status") in (None, "none") else str(health["Status"]),
            started_at=started,
            probes=tuple(
                (int(probe["ExitCode"]), str(probe["Output"])) for probe in health.get("Log") or ()
            ),
            restarts_by_itself=policy in ("always", "unless-stopped", "on-failure"),
            restarts=int(seen.get("RestartCount") or 0),
        )

    @property
    def story(self) -> str:
        """What happened to it, with the health log's last word."""
        if not self.running and self.exit_code is not None:
            killed = ", killed for lack of memory" if self.oom_killed else ""
            again = f", again after {self.restarts} restarts" if self.restarts else ""
            lacks_shell = self.service == "main" and self.exit_code == _NOT_FOUND
            hint = _NO_SHELL if lacks_shell else ""
            return f"ended with exit code {self.exit_code}{killed}{again}{hint}"
        if self.health in ("unhealthy", "starting") and self.probes:
            code, output = self.probes[-1]
            said = output.strip()[-_LOG_CHARS:] or "no output"
            return f"is not healthy; its last probe ended with {code}: {said}"
        if self.health == "starting":
            return "is not healthy yet; no probe of its healthcheck has ended"
        return f"is {self.status}"


def verdict(
    state: ServiceState, *, overdue: bool, must_end: bool = False
) -> Literal["ready", "wait", "failed"]:
    """Judge one service. ``overdue``: the time in which its probes may fail is over; ``must_end``:
    main depends on its having completed.

    The engine's own verdict comes later, since probes do not count while its start period runs; a
    service whose probes still fail when the task's own patience is over will not be waited for.
    """
    if state.running and must_end:
        return "wait"
    if state.running:
        if state.health in (None, "healthy"):
            return "ready"
        last_failed = bool(state.probes) and state.probes[-1][0] != 0
        return "failed" if state.health == "unhealthy" or (overdue and last_failed) else "wait"
    if state.exit_code is None:
        return "wait"
    if state.restarts_by_itself:
        return "wait" if state.restarts < _RESTARTS else "failed"
    return "ready" if state.exit_code == 0 and state.service != "main" else "failed"


def trouble(states: Sequence[ServiceState]) -> str:
    """One line per service that is in the way."""
    return "\n".join(f"service {state.service} {state.story}" for state in states)
