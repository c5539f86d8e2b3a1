"""The folder in which processes of one user agree: locks, records, registered groups.

``$PYTEST_HARBOR_STATE_DIR``, else ``$XDG_STATE_HOME/pytest-harbor``, else
``~/.local/state/pytest-harbor``; private to the user. Losing it loses no correctness, only time.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pytest_harbor.errors import SandboxError
from pytest_harbor.task.timeouts import Deadline


class State:
    """The state folder of a user."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> State:
        """The folder that an environment names; a private one below /tmp where home is not ours."""
        if given := environment.get("PYTEST_HARBOR_STATE_DIR"):
            return cls(Path(given))
        base = environment.get("XDG_STATE_HOME")
        home = environment.get("HOME")
        root = Path(base) if base else Path(home) / ".local/state" if home else None
        if root is not None and root.is_absolute() and _is_writable(root):
            return cls(root / "pytest-harbor")
        return cls(Path(tempfile.gettempdir()) / f"pytest-harbor-{os.getuid()}")

    def folder(self, *names: str) -> Path:
        """A folder below, made where it is missing, closed to other users."""
        place = self.root.joinpath(*names)
        if not place.is_dir():
            try:
                for part in (self.root, *_between(self.root, place)):
                    part.mkdir(mode=0o700, parents=True, exist_ok=True)
                if self.root.stat().st_uid != os.getuid():
                    raise PermissionError(13, "it belongs to another user", str(self.root))
            except OSError as fault:
                raise SandboxError(
                    f"The state folder {self.root} cannot be used: {fault.strerror}. "
                    "Set PYTEST_HARBOR_STATE_DIR to a folder of your own."
                ) from fault
        return place

    @contextlib.contextmanager
    def lock(self, name: str, deadline: Deadline, *, poll: float = 0.02) -> Iterator[None]:
        """Hold a lock that only one thread of all processes can hold."""
        with (self.folder("locks") / f"{name}.lock").open("wb") as file:
            while not try_lock(file.fileno()):
                if deadline.expired:
                    raise SandboxError(
                        f"Waited in vain for another process to release the lock {file.name} "
                        f"({deadline.describe()})."
                    )
                time.sleep(poll)
            yield


def try_lock(descriptor: int) -> bool:
    """Take a file's lock if nobody has it; closing the file releases it.

    Bare flock and not the filelock package, whose import costs 50 ms in each worker.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def write_json(path: Path, content: Any) -> None:
    """Write a file that others see either whole or not at all, closed to other users."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(content, file)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def read_json(path: Path) -> Any:
    """The content of a file, None where it is missing or damaged."""
    try:
        return json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return None


def _between(root: Path, place: Path) -> Iterator[Path]:
    at = root
    for part in place.relative_to(root).parts:
        at = at / part
        yield at


def _is_writable(folder: Path) -> bool:
    """Whether the nearest existing folder at or above may be written."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return os.access(folder, os.W_OK)
