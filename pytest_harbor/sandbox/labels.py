"""Who owns a container, network or volume: the labels that say it, and whether he still lives.

A process is known by its id *and* its start time, so that a recycled id is never taken for it.
Standard library only: the janitor's watch imports this.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

RUN: Final = "pytest-harbor.run"
EPISODE: Final = "pytest-harbor.episode"
OWNER_PID: Final = "pytest-harbor.owner-pid"
OWNER_HOST: Final = "pytest-harbor.owner-host"
OWNER_BIRTH: Final = "pytest-harbor.owner-birth"
"""Boot, pid namespace and start time: what tells two processes of one id apart."""
EXPIRES: Final = "pytest-harbor.expires"
"""Unix time after which anybody may remove it, for owners on hosts that nobody can ask."""

KEEP: Final = "pytest-harbor.keep"
"""On what stays when its owner ends: for an operator to look at, and to remove."""

TOOLS: Final = "pytest-harbor.tools"
"""On volumes with installed tools: a cache without an owner, which goes when the images go."""

PROJECT: Final = "com.docker.compose.project"
SERVICE: Final = "com.docker.compose.service"

LIFETIME: Final = 48 * 3600
"""Seconds until a group of an unknown host counts as left behind."""


@dataclass(frozen=True)
class Owner:
    """The process that a group belongs to, and what the group is for."""

    run_id: str
    episode: str
    pid: int
    host: str
    birth: str

    @classmethod
    def of_this_process(cls, run_id: str, episode: str = "") -> Owner:
        """The owner that stands for the calling process."""
        pid = os.getpid()
        return cls(run_id, episode, pid, socket.gethostname(), birth_of(pid) or "unknown")

    @classmethod
    def of_labels(cls, labels: Mapping[str, str]) -> Owner | None:
        """The owner that labels name; None where they are not ours."""
        if not labels.get(OWNER_PID, "").isdigit():
            return None
        return cls(
            labels.get(RUN, ""),
            labels.get(EPISODE, ""),
            int(labels[OWNER_PID]),
            labels.get(OWNER_HOST, ""),
            labels.get(OWNER_BIRTH, ""),
        )

    def labels(self, lifetime: float = LIFETIME) -> dict[str, str]:
        """Everything that a container, network or volume of this owner carries."""
        return {
            RUN: self.run_id,
            EPISODE: self.episode,
            OWNER_PID: str(self.pid),
            OWNER_HOST: self.host,
            OWNER_BIRTH: self.birth,
            EXPIRES: str(int(time.time() + lifetime)),
        }

    def is_dead(self, *, same_machine: bool = True) -> bool:
        """Whether it is certain that the process has ended.

        ``same_machine``: a host of this name is this host (true where the engine is local; two
        users of a remote engine may both sit at a host called "runner"). A process of another
        host or pid namespace cannot be looked at from here and never counts as dead.
        """
        if self.host != socket.gethostname():
            return False
        there, _, _ = self.birth.rpartition(":")
        boot, _, space = there.partition(":")
        boot_here, _, space_here = _place().partition(":")
        if boot != boot_here:
            return same_machine
        return space == space_here and birth_of(self.pid) != self.birth


def has_expired(labels: Mapping[str, str]) -> bool:
    """Whether the expiry that labels name has passed."""
    moment = labels.get(EXPIRES, "")
    return moment.isdigit() and int(moment) < time.time()


def birth_of(pid: int) -> str | None:
    """Boot, pid namespace and start time of a living process; None when there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except FileNotFoundError:
        return f"{_place()}:?" if not Path("/proc/self/stat").exists() and _answers(pid) else None
    except ProcessLookupError:
        return None
    # the name in parentheses may hold anything, also spaces and parentheses
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else f"{_place()}:{fields[19]}"


def _answers(pid: int) -> bool:
    """Whether a process of this id exists, where there is no /proc (macOS)."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _place() -> str:
    """This boot and this pid namespace, as far as the system tells."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()[:8]
        space = os.stat("/proc/self/ns/pid").st_ino  # noqa: PTH116 (a link into nsfs)
    except OSError:
        return "?:?"
    return f"{boot}:{space}"
