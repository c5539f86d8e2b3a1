"""One container of a running group: commands, files and facts, through the engine's API.

A command costs the engine some fifty milliseconds, a file in or out a few, so what can be learnt
without a command is learnt without one. Which processes may live is
:mod:`~pytest_harbor.sandbox.processes`' business, what grading may leave behind
:mod:`~pytest_harbor.sandbox.scratch`'s.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import re
import tarfile
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final, Literal

from pytest_harbor.errors import SandboxError
from pytest_harbor.sandbox import inside, reap
from pytest_harbor.sandbox.command import BIRTH, NO_FILES, RUN, RUN_LOGGED, Birth, Command, Ran
from pytest_harbor.sandbox.execution import Execution
from pytest_harbor.sandbox.transfer import Entry, pack
from pytest_harbor.sandbox.unpack import Cut, Got, first_file, first_member, names, unpack
from pytest_harbor.sandbox.users import UserIds, look_up
from pytest_harbor.task.timeouts import Deadline

if TYPE_CHECKING:
    from requests import Response

    from pytest_harbor.sandbox.engine import Engine

Kind = Literal["file", "folder", "link", "other"]

__all__ = ["Container", "ContainerState", "Cut", "Entry", "Got", "Ran", "Stat", "UserIds"]

OUTPUT_LIMIT: Final = 1 << 20
"""Bytes of a small command's output that are kept, unless its caller says otherwise."""

SCRIPT_LIMIT: Final = 120_000
"""Bytes that fit into one argument of a program, with room for Linux' own limit of 128 KiB."""

_KINDS: Final[tuple[tuple[int, Kind], ...]] = (
    (1 << 31, "folder"),
    (1 << 27, "link"),
    (1 << 26 | 1 << 25 | 1 << 24 | 1 << 21 | 1 << 19, "other"),
)
"""Bits of Go's os.FileMode: folder, link; device, pipe, socket, character device, irregular."""

_SHELLS: Final = ("/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash")


@dataclass(frozen=True)
class Stat:
    """What stands at a path; a link is not followed."""

    kind: Kind
    size: int
    mode: int
    """Permission bits only."""
    mtime_ns: int
    target: str
    """Where a link leads in the end, as an absolute path; empty for everything else."""


@dataclass(frozen=True)
class ContainerState:
    """Whether a container lives, and if not, how it ended."""

    running: bool
    exit_code: int
    oom_killed: bool
    started_at: str


class Container:
    """A container that a group has started; others may run commands in it at the same time."""

    def __init__(
        self, engine: Engine, container_id: str, service: str = "main", workdir: str | None = None
    ) -> None:
        self.engine: Final = engine
        self.id: Final = container_id
        self.service: Final = service
        self._workdir = workdir
        self.first_birth: Birth | None = None
        """When the first command since the baseline was born: strangers are not older."""

    # -- facts ----------------------------------------------------------------------------

    @functools.cached_property
    def facts(self) -> Mapping[str, Any]:
        """The engine's description of the container, as of the first time it was needed."""
        return self._inspect()

    @property
    def workdir(self) -> str:
        """Where commands run: what the task says, else the container's own."""
        return self._workdir or self.facts["Config"]["WorkingDir"] or "/"

    @property
    def image_env(self) -> Mapping[str, str]:
        """The environment that image and Compose give to every command."""
        pairs = (pair.partition("=") for pair in self.facts["Config"]["Env"] or ())
        return {name: value for name, _, value in pairs}

    def state(self) -> ContainerState:
        """Whether it lives now."""
        state: dict[str, Any] = self._inspect()["State"]
        return ContainerState(
            running=bool(state["Running"]) and not state["Restarting"],
            exit_code=int(state["ExitCode"]),
            oom_killed=bool(state["OOMKilled"]),
            started_at=str(state["StartedAt"]),
        )

    def check_alive(self, doing: str = "", *, patience: float = 0.0) -> None:
        """Raise when the container has died, or was started anew, since it was first looked at.

        ``patience`` is how many seconds the engine gets to notice a death that is only suspected.

        Raises:
            SandboxError: with outcome ``sandbox_died``, exit code, OOM flag and last output (B14).
        """
        first = str(self.facts["State"]["StartedAt"])
        ends = time.monotonic() + patience
        while (state := self.state()).running and state.started_at == first:
            if time.monotonic() >= ends:
                return
            time.sleep(0.02)
        where = f" ({doing})" if doing else ""
        how = "was started anew" if state.running else f"died with exit code {state.exit_code}"
        raise SandboxError(
            f"The container of service {self.service} {how}{where}; out of memory: "
            f"{'yes' if state.oom_killed else 'no'}. {self._last_words()}",
            outcome="sandbox_died",
        )

    def probe(self, doing: str) -> None:
        """Make sure that a container which lost a process to SIGKILL did not die with it.

        When the main process ends, the kernel kills the others before the engine knows of
        anything; what it cannot do in that moment is start a command.

        Raises:
            SandboxError: it is dead.
        """
        self.check_alive(doing)
        with self.start(BIRTH, [], Deadline.after(30, doing), user="0", workdir="/"):
            pass

    def user(self, user: str | int | None) -> UserIds:
        """Look a user up as the engine does: a name, a uid, ``user:group``; None for the image's.

        Raises:
            SandboxError: a name that the container does not know.
        """
        asked = str(self.facts["Config"]["User"] or "root") if user is None else str(user)
        try:
            return look_up(asked, self._table)
        except LookupError as fault:
            raise SandboxError(
                f"Service {self.service} {fault}. Name one of them, or create it in the image.",
                outcome="setup_failed",
            ) from None

    def _table(self, path: str) -> str:
        """Text of a system file, through the link that some images have in its place."""
        facts = self.stat(path)
        if facts is not None and facts.kind == "link":
            path = facts.target
        return (self.read(path) or b"").decode("utf-8", "replace")

    def is_hidden(self, path: str) -> bool:
        """Whether a path lies in a file system that only exists inside, where no file call sees it.

        The engine would read and write what lies under the mount, and say nothing.
        """
        pure = PurePosixPath(path)
        return any(pure.is_relative_to(mount) for mount in self._hidden)

    @functools.cached_property
    def _hidden(self) -> tuple[str, ...]:
        mounts = [m["Destination"] for m in self.facts["Mounts"] or () if m["Type"] == "tmpfs"]
        return ("/dev/shm", *mounts, *(self.facts["HostConfig"].get("Tmpfs") or ()))  # noqa: S108

    # -- commands -------------------------------------------------------------------------

    def run(
        self,
        script: str,
        *,
        user: str | int | None = None,
        workdir: str | None = None,
        env: Mapping[str, str] | None = None,
        deadline: Deadline,
        limit: int = OUTPUT_LIMIT,
    ) -> Ran:
        """Run a short shell script and return what it printed, stdout and stderr together.

        When the deadline passes, all processes of its session are killed; what has left the
        session is for :class:`~pytest_harbor.sandbox.processes.Processes`.

        Raises:
            SandboxError: it could not be started, or the container died.
        """
        argv = self.shell(script)
        with self.start(RUN, argv, deadline, user=user, workdir=workdir, env=env) as command:
            ran = command.wait(limit)
        if ran.timed_out and command.session is not None:
            self._end_session(command.session)
        return ran

    def run_logged(
        self,
        command: str | Sequence[str],
        *,
        log: str,
        stdin: str | None = None,
        user: str | int | None = None,
        workdir: str | None = None,
        env: Mapping[str, str] | None = None,
        deadline: Deadline,
        before: str = "",
        after: str = "",
    ) -> Ran:
        """Run a script or a program for as long as it takes, its output going to a file inside.

        Returns when the command itself exits, whatever its children do, or when the deadline
        passes: then it still runs, and ending it is the caller's to do. ``stdin`` is a file
        inside. ``before`` and ``after`` are script fragments around the command, run by the same
        user; :attr:`Ran.output` is what they print, and nothing of the command's.

        Raises:
            SandboxError: it could not be started, or the container died.
        """
        argv = self.shell(command) if isinstance(command, str) else list(command)
        argv = [stdin or "/dev/null", log, before, after, *argv]
        with self.start(RUN_LOGGED, argv, deadline, user=user, workdir=workdir, env=env) as started:
            ran = started.wait(64 * OUTPUT_LIMIT)
        if ran.output.endswith(NO_FILES):
            said = ran.output.removesuffix(NO_FILES).decode("utf-8", "replace").strip()
            raise SandboxError(
                f"User {user or 'of the image'} in service {self.service} cannot open {log} or "
                f"{stdin or 'its input'}: {said}",
                outcome="setup_failed",
            )
        return ran

    def shell(self, script: str) -> list[str]:
        """The words that run a script: bash where the image has it (harbor-format 6.4), else sh."""
        if len(script.encode("utf-8", "surrogateescape")) > SCRIPT_LIMIT:
            raise ValueError(f"a script over {SCRIPT_LIMIT} bytes; put it as a file and run that")
        return [*self._shell, script]

    @functools.cached_property
    def _shell(self) -> tuple[str, ...]:
        found = next((path for path in _SHELLS if self.stat(path) is not None), None)
        return (found, "--noprofile", "--norc", "-c") if found else ("/bin/sh", "-c")

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
        """Start a program for ``sh`` that opens with its birth line; let go of it at the end."""
        doing, clock = deadline.what or "a command", time.monotonic()
        with self.translated(doing):
            execution = Execution(
                self.engine.api,
                self.id,
                ["/bin/sh", "-c", program, "sh", *argv],
                user="" if user is None else str(user),
                workdir=workdir or self.workdir,
                env=env,
                stdin=stdin,
            )
        with contextlib.closing(execution), self.translated(doing):
            yield Command(self, execution, deadline, clock)

    def _end_session(self, session: int) -> None:
        """Kill a session that our own command has started."""
        deadline = Deadline.after(10, "ending what a command left")
        program = BIRTH + reap.KILL
        with self.start(program, ["0", str(session)], deadline, user="0", workdir="/") as command:
            command.wait(OUTPUT_LIMIT)

    # -- files ----------------------------------------------------------------------------

    def put(self, entries: Iterable[Entry]) -> None:
        """Put files, folders and links in place; see :class:`Entry`. An empty list is fine.

        Raises:
            SandboxError: the engine refused, as for a read-only container or a folder in use.
        """
        entries = list(entries)
        if hidden := [entry for entry in entries if self.is_hidden(entry.path)]:
            inside.put(self, hidden)
            entries = [entry for entry in entries if entry not in hidden]
        if not entries:
            return
        stream = pack(entries)
        first = next(stream)
        second = next(stream, None)
        whole = first if second is None else itertools.chain((first, second), stream)
        with self.translated("putting files"):
            self._archive("PUT", "/", data=whole).close()

    def make_folder(self, path: str | PurePosixPath, *, mode: int = 0o755) -> None:
        """Make a folder, with those above it; one that stands there gets the mode."""
        self.put([Entry(str(path), None, mode)])

    def get_tree(
        self,
        path: str,
        into: Path,
        *,
        exclude: Collection[str] = (),
        limit_bytes: int,
        file_limit: int | None = None,
    ) -> Got:
        """Copy a file or folder out so that it becomes ``into``; :func:`unpack` says what is kept.

        Everything belongs to us and can be read and removed by us, whatever it was inside (B101).
        """
        with self.translated(f"getting {path}"), self._content(path) as chunks:
            if chunks is None:
                return Got(found=False, is_folder=False)
            return unpack(
                chunks, into, exclude=exclude, limit_bytes=limit_bytes, file_limit=file_limit
            )

    def read(self, path: str, limit: int = OUTPUT_LIMIT) -> bytes | None:
        """Content of a file; None when there is no file, and for a link, which is not followed."""
        with self.translated(f"reading {path}"), self._content(path) as chunks:
            return None if chunks is None else first_file(chunks, limit)

    def listing(self, path: str, limit: int = 1000) -> tuple[str, ...]:
        """Names in a folder, at most ``limit`` of them; none where there is no folder."""
        with self.translated(f"listing {path}"), self._content(path) as chunks:
            return () if chunks is None else names(chunks, limit=limit)

    def stat(self, path: str) -> Stat | None:
        """What stands at a path, None for nothing."""
        with self.translated(f"looking at {path}"):
            if self.is_hidden(path):
                with inside.content(self, path, shallow=True) as chunks:
                    return None if chunks is None else stat_of_member(first_member(chunks))
            response = self._archive("HEAD", path)
            response.close()
            return None if response.status_code == 404 else _stat(response)

    @contextlib.contextmanager
    def _content(self, path: str) -> Iterator[Iterable[bytes] | None]:
        """The tar stream of a path, or None; what is not read of it is not sent."""
        if self.is_hidden(path):
            with inside.content(self, path) as chunks:
                yield chunks
            return
        response = self._archive("GET", path)
        try:
            gone = response.status_code == 404
            yield None if gone else response.iter_content(1 << 20)
        finally:
            response.close()

    def _archive(self, method: str, path: str, data: Any = None) -> Response:
        """Call the engine's archive endpoint; the SDK has no HEAD, and no way to break off."""
        from docker.errors import create_api_error_from_http_exception
        from requests import HTTPError

        api = self.engine.api
        response = api.request(
            method,
            f"{api.base_url}/v{api.api_version}/containers/{self.id}/archive",
            params={"path": path.encode("utf-8", "surrogateescape")},
            data=data,
            stream=method == "GET",
            timeout=api.timeout,
        )
        if response.status_code == 404 and method != "PUT":
            # a path that is not there and a container that is not there look alike
            api.inspect_container(self.id)
        elif not response.ok:
            try:
                response.raise_for_status()
            except HTTPError as fault:
                create_api_error_from_http_exception(fault)
        return response

    # -- faults ---------------------------------------------------------------------------

    def _inspect(self) -> dict[str, Any]:
        with self.translated("inspecting it", check=False):
            facts: dict[str, Any] = self.engine.api.inspect_container(self.id)
            return facts

    def _last_words(self) -> str:
        """The end of the container's own log, for a message."""
        from docker.errors import DockerException
        from requests import RequestException

        try:
            log = self.engine.api.logs(self.id, tail=20).decode("utf-8", "replace").strip()
        except (DockerException, RequestException):
            log = ""
        return f"Its last output was: {log[-2000:]}" if log else "It printed nothing."

    @contextlib.contextmanager
    def translated(self, doing: str, *, check: bool = True) -> Iterator[None]:
        """Turn the SDK's faults into ours, and say so when the cause is a dead container.

        Raises:
            SandboxError: in place of what the engine's client raises.
        """
        from docker.errors import APIError, DockerException, NotFound
        from requests import RequestException

        try:
            yield
        except (DockerException, RequestException, tarfile.TarError, ConnectionError) as fault:
            said = getattr(fault, "explanation", None) or fault
            if isinstance(fault, NotFound) and "No such container" in str(said):
                raise SandboxError(
                    f"The container of service {self.service} is gone ({doing})",
                    outcome="sandbox_died",
                ) from fault
            if check:
                self.check_alive(doing, patience=0.5)
            refused = isinstance(fault, APIError)
            raise SandboxError(
                f"The engine {'refused' if refused else 'was lost'} on service {self.service} "
                f"({doing}): {said}",
                outcome=None if refused else "sandbox_died",
            ) from fault


def _stat(response: Response) -> Stat:
    """Read the engine's description of a path: Go's file modes, and times with nanoseconds."""
    from docker.utils import decode_json_header

    facts: dict[str, Any] = decode_json_header(response.headers["X-Docker-Container-Path-Stat"])
    mode = int(facts["mode"])
    kind: Kind = next((kind for bits, kind in _KINDS if mode & bits), "file")
    moment = _nanoseconds(facts["mtime"])
    return Stat(kind, int(facts["size"]), mode & 0o777, moment, facts["linkTarget"])


def stat_of_member(member: tarfile.TarInfo) -> Stat:
    kinds: dict[bytes, Kind] = {
        tarfile.REGTYPE: "file",
        tarfile.AREGTYPE: "file",
        tarfile.DIRTYPE: "folder",
        tarfile.SYMTYPE: "link",
    }
    kind = kinds.get(member.type, "other")
    mtime = int(member.mtime) * 10**9
    return Stat(kind, member.size, member.mode & 0o777, mtime, member.linkname)


def _nanoseconds(moment: str) -> int:
    """Nanoseconds since 1970 of an RFC 3339 time; datetime alone keeps microseconds only."""
    parts = re.fullmatch(r"([^.]+?)(?:\.(\d+))?(Z|[+-]\d\d:\d\d)", moment)
    assert parts is not None
    whole, fraction, zone = parts.groups()
    seconds = int(datetime.fromisoformat(whole + zone).timestamp())
    return seconds * 10**9 + int((fraction or "").ljust(9, "0"))
