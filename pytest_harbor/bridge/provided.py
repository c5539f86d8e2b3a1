"""The one container of a sandbox provider of Harbor's, in the clothes of a container of ours.

A provider runs a command and returns when it has ended, takes a file and gives one back. All else
is made of these by ``sh``, ``tar`` and ``base64`` in there; nothing is seen from outside.
"""

from __future__ import annotations

import asyncio
import base64
import concurrent.futures
import contextlib
import functools
import math
import shlex
import tarfile
import tempfile
import threading
import time
import uuid
from collections.abc import Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any, Final, TypeVar, cast

from pytest_harbor.errors import SandboxError
from pytest_harbor.sandbox.bounded import PIECE
from pytest_harbor.sandbox.command import BIRTH, Command
from pytest_harbor.sandbox.container import Container, ContainerState, Stat, stat_of_member
from pytest_harbor.sandbox.transfer import Entry, pack
from pytest_harbor.sandbox.unpack import first_member
from pytest_harbor.task.timeouts import Deadline

T = TypeVar("T")

_SECONDS: Final = 300.0
"""How long a copy may take."""
_BACKSTOP: Final = 30
"""Seconds after a deadline at which the provider ends a command that nobody waits for any more."""

_STAT: Final = 'if [ -e "$1/$2" ] || [ -L "$1/$2" ]; then '
_SHALLOW: Final = (
    BIRTH
    + _STAT
    + 'echo +; readlink -f -- "$1/$2" || echo; '
    + 'tar -C "$1" -cf - --no-recursion -- "$2" 2>/dev/null | base64; else echo -; fi'
)
_PACK: Final = BIRTH + _STAT + 'echo +; tar -C "$1" -cf "$3" -- "$2" 2>/dev/null; else echo -; fi'
_UNPACK: Final = (
    BIRTH + 'file=$1; shift; [ $# = 0 ] || rm -rf -- "$@" 2>/dev/null; tar -C / -xpf "$file" 2>&1; '
    'code=$?; rm -f "$file"; exit $code'
)


class Line:
    """A loop in a thread of its own: a provider's client lives in one loop as long as it lives."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def ask(self, coroutine: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        """Start something."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def wait(self, coroutine: Coroutine[Any, Any, T], deadline: Deadline) -> T:
        """Do something; at the deadline it is cancelled.

        Raises:
            SandboxError: the provider failed, or the deadline has passed.
        """
        asked = self.ask(coroutine)
        try:
            return asked.result(deadline.remaining())
        except TimeoutError as fault:
            if asked.done():
                raise SandboxError(f"the provider ran out of time: {fault}") from fault
            asked.cancel()
            raise SandboxError(f"the provider did not answer: {deadline.describe()}") from fault
        except Exception as fault:  # every provider has a client with faults of its own
            raise SandboxError(f"the provider failed ({deadline.what}): {fault!r}") from fault

    def close(self) -> None:
        """End the loop."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        if not self._thread.is_alive():
            self._loop.close()


class _Execution:
    """A command at a provider: silent until it has ended."""

    def __init__(self, line: Line, running: Coroutine[Any, Any, Any]) -> None:
        self._asked = line.ask(running)
        self._code: int | None = None

    def read(self, seconds: float | None) -> bytes | None:
        """All output at once, then ``b""``; None while it runs."""
        if self._code is not None:
            return b""
        try:
            result = self._asked.result(seconds)
        except TimeoutError:
            if not self._asked.done():
                return None
            return b""
        except Exception as fault:  # every provider has a client with faults of its own
            raise SandboxError(f"the provider lost a command: {fault!r}") from fault
        self._code = int(result.return_code)
        text = (result.stdout or "") + (result.stderr or "")
        return cast("str", text).encode("utf-8", "surrogateescape")

    def exit_code(self) -> int | None:
        """Its exit code, None while it runs."""
        return self._code

    def close(self) -> None:
        """Let go of it."""
        self._asked.cancel()


class ProvidedContainer(Container):
    """A container that a provider runs; there is no engine behind it."""

    def __init__(self, environment: Any, line: Line, name: str, workdir: str | None) -> None:
        super().__init__(cast("Any", None), name, "main", workdir)
        self._environment = environment
        self._line = line

    # -- facts -----------------------------------------------------------------------------

    @functools.cached_property
    def facts(self) -> Mapping[str, Any]:
        """What there is to know, in the engine's words; asked inside."""
        limit = Deadline.after(60, "looking at the container")
        asked = self._environment.exec("pwd; id -un; env", timeout_sec=60)
        said = (self._line.wait(asked, limit).stdout or "").splitlines()
        place, user, *pairs = [*said, "", ""] if len(said) < 2 else said
        return {
            "Config": {"WorkingDir": place or "/", "User": user, "Env": pairs},
            "State": {"StartedAt": "", "Pid": 1},
            "HostConfig": {},
            "Mounts": [],
        }

    def state(self) -> ContainerState:
        """Whether it lives: whether a command can run in it."""
        limit = Deadline.after(30 + _BACKSTOP, "asking whether it lives")
        try:
            asked = self._line.wait(self._environment.exec("true", timeout_sec=30), limit)
            lives = asked.return_code == 0
        except SandboxError:
            lives = False
        return ContainerState(running=lives, exit_code=0, oom_killed=False, started_at="")

    def check_alive(self, doing: str = "", *, patience: float = 0.0) -> None:  # noqa: ARG002
        """Raise when no command runs in it any more.

        Raises:
            SandboxError: with outcome ``sandbox_died``; no provider tells the reason.
        """
        if not self.state().running:
            raise SandboxError(
                f"No command can be run in main any more ({doing or 'at its provider'}): it has "
                "died, or its shell is gone",
                outcome="sandbox_died",
            )

    # -- commands --------------------------------------------------------------------------

    @contextlib.contextmanager
    def start(
        self,
        program: str,
        argv: Sequence[str],
        deadline: Deadline,
        *,
        user: str | int | None = None,
        workdir: str | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bool = False,
    ) -> Iterator[Command]:
        """Start a program for ``sh``; what it prints comes when it has ended."""
        if stdin:
            raise SandboxError("a command at a provider cannot be given input")
        left = deadline.remaining()
        running = self._environment.exec(
            "exec " + shlex.join(["/bin/sh", "-c", program, "sh", *argv]),
            cwd=workdir or self.workdir,
            env=dict(env or {}),
            timeout_sec=None if left is None else math.ceil(left) + _BACKSTOP,
            user="root" if user in ("0", 0) else user,
        )
        execution = _Execution(self._line, running)
        with contextlib.closing(execution), self.translated(deadline.what or "a command"):
            yield Command(self, cast("Any", execution), deadline, time.monotonic())

    @contextlib.contextmanager
    def translated(self, doing: str, *, check: bool = True) -> Iterator[None]:
        """Say so when the cause of a fault is a dead container."""
        try:
            yield
        except SandboxError as fault:
            if check and fault.outcome != "sandbox_died":
                self.check_alive(doing)
            raise

    # -- files -----------------------------------------------------------------------------

    def is_hidden(self, path: str) -> bool:  # noqa: ARG002
        """Nothing is: all calls look from inside."""
        return False

    def put(self, entries: Iterable[Entry]) -> None:
        """Put files, folders and links in place, by one archive."""
        entries = list(entries)
        if not entries:
            return
        with tempfile.NamedTemporaryFile(prefix="pytest-harbor-", suffix=".tar") as file:
            for piece in pack(replace(entry, fresh=False) for entry in entries):
                file.write(piece)
            file.flush()
            there = _temporary()
            limit = Deadline.after(_SECONDS, "putting files")
            self._line.wait(self._environment.upload_file(Path(file.name), there), limit)
        fresh = [entry.path for entry in entries if entry.fresh]
        said, code = self._tell(_UNPACK, [there, *fresh])
        if code != 0:
            raise SandboxError(f"{entries[0].path} cannot be put in place: {said[:500]!r}")

    def stat(self, path: str) -> Stat | None:
        """What stands at a path, None for nothing."""
        said, _ = self._tell(_SHALLOW, _split(path))
        found, _, rest = said.partition(b"\n")
        if found != b"+":
            return None
        end, _, body = rest.partition(b"\n")
        try:
            facts = stat_of_member(first_member([base64.b64decode(body)]))
        except (ValueError, tarfile.TarError) as fault:
            raise SandboxError(f"{path} cannot be looked at: {rest[:200]!r}") from fault
        target = end.decode("utf-8", "surrogateescape") if facts.kind == "link" else ""
        return replace(facts, target=target)

    @contextlib.contextmanager
    def _content(self, path: str) -> Iterator[Iterable[bytes] | None]:
        there = _temporary()
        said, _ = self._tell(_PACK, [*_split(path), there])
        if not said.startswith(b"+"):
            yield None
            return
        with tempfile.TemporaryDirectory(prefix="pytest-harbor-") as folder:
            here = Path(folder) / "content.tar"
            limit = Deadline.after(_SECONDS, f"reading {path}")
            self._line.wait(self._environment.download_file(there, here), limit)
            self._tell(BIRTH + 'rm -f "$1"', [there])
            with here.open("rb") as file:
                yield iter(lambda: file.read(PIECE), b"")

    def _tell(self, program: str, argv: Sequence[str]) -> tuple[bytes, int | None]:
        limit = Deadline.after(_SECONDS, "working with files")
        with self.start(program, argv, limit, user="0", workdir="/") as command:
            ran = command.wait(1 << 22)
        return ran.output, ran.exit_code


def _temporary() -> str:
    return f"/tmp/.pytest-harbor-{uuid.uuid4().hex}.tar"  # noqa: S108


def _split(path: str) -> list[str]:
    pure = PurePosixPath(path)
    return [str(pure.parent), pure.name or "."]
