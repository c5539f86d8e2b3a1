"""The janitor's watch: a process of its own that outlives the run and sleeps until an owner dies.

Started as a plain script, detached, once per run (:mod:`~pytest_harbor.sandbox.registry`); standard
library only, so that it costs one bare interpreter. When an owner ends, however it ended, and
groups are still registered to it, the janitor proper (:mod:`~pytest_harbor.sandbox.janitor`) is
called to remove them. When no owner is left it leaves, too.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

RETRIES = (5, 15, 60, 120)
"""Seconds before each further try to remove what could not be removed."""

TOGETHER = 0.2
"""Seconds to wait for the other workers, when one has died: a killed run loses all at once."""

CLEANING_SECONDS = 300
WITHOUT_PIDFD = 1000
"""Milliseconds between looks, where the system cannot wait for a process that is no child."""


def main(root: Path, run: Path) -> None:
    """Watch the owners of a run until none is left."""
    watch = _Watch(root, run)
    with contextlib.suppress(KeyboardInterrupt):
        while not watch.is_over():
            watch.sleep()


class _Watch:
    def __init__(self, root: Path, run: Path) -> None:
        self.root, self.run = root, run
        self.bell = os.open(run / "bell", os.O_RDWR | os.O_NONBLOCK)
        self.poll = select.poll()
        self.poll.register(self.bell, select.POLLIN)
        self.watched: dict[Path, int] = {}

    def is_over(self) -> bool:
        """Look after the owners that are dead; say whether there is nobody left to watch."""
        self._adopt()
        if any(self._is_dead(owner) for owner in self.watched):
            time.sleep(TOGETHER)
            self._bury([owner for owner in self.watched if self._is_dead(owner)])
        if self.watched:
            return False
        with self._gate():
            # whoever registers holds the gate, and starts another watch once this one is gone
            if list((self.run / "owners").iterdir()):
                return False
            if not list((self.run / "projects").iterdir()):
                shutil.rmtree(self.run, ignore_errors=True)
            os._exit(0)  # with the gate held; that frees it and the watch's own lock

    def sleep(self) -> None:
        """Wait until an owner dies or a new one rings."""
        blind = -1 in self.watched.values()
        self.poll.poll(WITHOUT_PIDFD if blind else None)
        with contextlib.suppress(BlockingIOError):
            os.read(self.bell, 4096)

    def _adopt(self) -> None:
        for owner in (self.run / "owners").iterdir():
            if owner in self.watched or owner.name.startswith("."):
                continue
            self.watched[owner] = -1
            with contextlib.suppress(OSError, AttributeError):
                self.watched[owner] = os.pidfd_open(_pid(owner))
                self.poll.register(self.watched[owner], select.POLLIN)

    def _is_dead(self, owner: Path) -> bool:
        descriptor = self.watched[owner]
        if descriptor >= 0 and select.select([descriptor], [], [], 0)[0]:
            return True
        # the id may have been taken over before it was opened
        return owner.read_text() != (_birth(_pid(owner)) or "dead")

    def _bury(self, owners: Sequence[Path]) -> None:
        """Remove what dead owners left."""
        for owner in owners:
            descriptor = self.watched.pop(owner)
            if descriptor >= 0:
                self.poll.unregister(descriptor)
                os.close(descriptor)
            for folder in (self.root / "tmp").glob(f"compose-{_pid(owner)}-*"):
                shutil.rmtree(folder, ignore_errors=True)
        for pause in (*RETRIES, None):
            left = list(self._projects({owner.name for owner in owners}))
            if not left or self._clean(left) or pause is None:
                break
            time.sleep(pause)
        for owner in owners:
            owner.unlink(missing_ok=True)

    def _projects(self, owners: Collection[str]) -> Iterator[Path]:
        """Registrations of these owners."""
        for file in (self.run / "projects").iterdir():
            with contextlib.suppress(OSError, ValueError):
                registered: dict[str, Any] = json.loads(file.read_text("utf-8"))
                if registered.get("owner") in owners:
                    yield file

    def _clean(self, files: Sequence[Path]) -> bool:
        names = [file.name for file in files]
        end_compose(names)
        command = [sys.executable, "-P", "-m", "pytest_harbor.sandbox.janitor", *names]
        try:
            done = subprocess.run(command, timeout=CLEANING_SECONDS, check=False)
        except (OSError, subprocess.TimeoutExpired) as fault:
            print(f"janitor: {fault}", flush=True)  # noqa: T201 (its log)
            return False
        if done.returncode != 0:
            return False
        for file in files:
            file.unlink(missing_ok=True)
        return True

    @contextlib.contextmanager
    def _gate(self) -> Iterator[None]:
        with (self.root / "locks" / "registry.lock").open("wb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def end_compose(projects: Sequence[str]) -> None:
    """Kill Compose commands that still work for these projects; their caller is dead."""
    wanted = {name.encode() for name in projects}
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (process / "cmdline").read_bytes().split(b"\0")
            at = words.index(b"--project-name") + 1 if b"--project-name" in words[:-1] else 0
            if at and words[at] in wanted:
                os.kill(int(process.name), signal.SIGKILL)


def _pid(owner: Path) -> int:
    return int(owner.name.partition("-")[0])


def _birth(pid: int) -> str | None:
    """When a living process was started; see labels.birth_of, which this script cannot import."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return "?" if not Path("/proc/self/stat").exists() and _answers(pid) else None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else fields[19]


def _answers(pid: int) -> bool:
    with contextlib.suppress(PermissionError):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
    return True


if __name__ == "__main__":
    if os.fork() == 0:  # its starter reaps the first process; this one is nobody's child
        main(Path(sys.argv[1]), Path(sys.argv[2]))
