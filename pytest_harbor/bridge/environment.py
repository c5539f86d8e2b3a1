"""A container of ours as Harbor's agents know an environment: commands, and files in and out.

Only what the agents of Harbor use is here; starting and ending the container is not theirs.
"""

from __future__ import annotations

import asyncio
import shlex
import shutil
import tempfile
import uuid
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, Final

from harbor.environments.base import BaseEnvironment, ExecResult
from harbor.models.task.config import EnvironmentConfig
from harbor.models.trial.paths import TrialPaths

from pytest_harbor.errors import HarborError, SandboxError
from pytest_harbor.sandbox.container import SCRIPT_LIMIT, Container, Entry, Ran
from pytest_harbor.task.timeouts import Deadline

_OUTPUT_LIMIT: Final = 16 << 20
"""Bytes of a command's output that are kept; some agents read whole logs by a command."""
_FILES_LIMIT: Final = 2 << 30
"""Bytes that may come out of the container at once."""
_GRACE: Final = 10.0
"""Seconds in which an agent that was cancelled may tidy up inside."""


class ContainerEnvironment(BaseEnvironment):
    """Harbor's environment over a running container.

    Nothing in it outlives ``deadline``, whatever the agent allows its commands.
    """

    def __init__(
        self, container: Container, user: str | int | None, folder: Path, deadline: Deadline
    ) -> None:
        paths = TrialPaths(folder)
        paths.mkdir()
        super().__init__(
            environment_dir=folder,
            environment_name=container.service,
            session_id=container.id[:12],
            trial_paths=paths,
            task_env_config=EnvironmentConfig(workdir=container.workdir),
        )
        self.default_user = user
        self.fault: HarborError | None = None
        """What ended the container itself, for an agent would take it for a fault of its own."""
        self._container = container
        self._deadline = deadline
        self._tidying: Deadline | None = None

    @staticmethod
    def type() -> str:
        """The name under which Harbor's messages know it."""
        return "pytest-harbor"

    def _validate_definition(self) -> None:
        """Nothing is made from a definition: the container runs."""

    async def start(self, force_build: bool) -> None:
        """The container runs already."""

    async def stop(self, delete: bool) -> None:
        """Whoever started the container ends it."""

    # -- commands --------------------------------------------------------------------------

    async def exec(
        self,
        command: str,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_sec: int | None = None,
        user: str | int | None = None,
    ) -> ExecResult:
        """Run a shell command; both streams come as one, as from Harbor's own Docker sandbox."""
        ran: Ran = await self._apart(
            self._run,
            command,
            user=self._resolve_user(user),
            workdir=cwd,
            env=self._merge_env(env),
            deadline=self._limit(timeout_sec),
        )
        if ran.timed_out:
            raise RuntimeError(f"Command timed out: {ran.limit}")
        return ExecResult(
            stdout=ran.output.decode("utf-8", "replace"), return_code=ran.exit_code or 0
        )

    def _run(self, command: str, **how: Any) -> Ran:
        if len(command.encode("utf-8", "surrogateescape")) <= SCRIPT_LIMIT:
            return self._container.run(command, limit=_OUTPUT_LIMIT, **how)
        # one argument of a program holds 128 KiB, and an instruction may be longer
        path = f"/tmp/.harbor-{uuid.uuid4().hex}.sh"  # noqa: S108
        self._container.put([Entry(path, command.encode("utf-8", "surrogateescape"), 0o644)])
        *shell, _ = self._container.shell("")
        words = shlex.join([word for word in shell if word != "-c"])
        try:
            return self._container.run(f"{words} {path}", limit=_OUTPUT_LIMIT, **how)
        finally:
            how |= {"user": "0", "deadline": Deadline.after(_GRACE, "removing a script")}
            self._container.run(f"rm -f {path}", **how)

    def _limit(self, seconds: float | None) -> Deadline:
        """When a command must have ended: its own limit, but never after the turn's.

        Raises:
            RuntimeError: the turn is over, and so is the time to tidy up.
        """
        whole = self._deadline
        if whole.expired:
            self._tidying = self._tidying or Deadline.after(_GRACE, "tidying up after a turn")
            whole = self._tidying
        if whole.expired:
            raise RuntimeError(f"The turn is over: {self._deadline.describe()}")
        return Deadline.after(seconds, "the agent's own limit for a command").sooner(whole)

    # -- files -----------------------------------------------------------------------------

    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        """Put a file in place, or into the folder that stands there; it belongs to root."""
        await self._apart(self._upload_file, Path(source_path), str(target_path))

    def _upload_file(self, source: Path, target: str) -> None:
        facts = self._container.stat(target)
        if target.endswith("/") or (facts is not None and facts.kind == "folder"):
            target = f"{target.rstrip('/')}/{source.name}"
        self._container.put([Entry(target, source)])

    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None:
        """Put what is in a folder into another one; it belongs to root."""
        await self._apart(self.put_tree, Path(source_dir), str(target_dir))

    def put_tree(self, source: Path, target: str, uid: int = 0, gid: int = 0) -> None:
        """Put what is in a folder into one of the container's."""
        entries = [Entry(target, uid=uid, gid=gid)]
        for path in sorted(source.rglob("*")):
            place = f"{target.rstrip('/')}/{path.relative_to(source).as_posix()}"
            if path.is_symlink():
                entries.append(Entry(place, uid=uid, gid=gid, link=str(path.readlink())))
            elif path.is_dir():
                entries.append(Entry(place, uid=uid, gid=gid))
            elif path.is_file():
                entries.append(Entry(place, path, uid=uid, gid=gid))
        self._container.put(entries)

    async def download_file(self, source_path: str, target_path: Path | str) -> None:
        """Get a file.

        Raises:
            RuntimeError: there is none, or it is too large.
        """
        await self._apart(self._download_file, str(source_path), Path(target_path))

    def _download_file(self, source: str, target: Path) -> None:
        facts = self._container.stat(source)
        if facts is not None and facts.kind == "link":
            source, facts = facts.target, self._container.stat(facts.target)
        if facts is None or facts.kind != "file":
            raise RuntimeError(f"there is no file {source} in the container")
        self._get(source, target)

    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        """Get what is in a folder, over what stands in the target.

        Raises:
            RuntimeError: there is none, or it is too large.
        """
        await self._apart(self._download_dir, str(source_dir), Path(target_dir))

    def _download_dir(self, source: str, target: Path) -> None:
        with tempfile.TemporaryDirectory(prefix="pytest-harbor-") as folder:
            got = Path(folder) / "got"
            self._get(source, got)
            shutil.copytree(got, target, symlinks=True, dirs_exist_ok=True)

    def _get(self, source: str, target: Path) -> None:
        got = self._container.get_tree(source, target, limit_bytes=_FILES_LIMIT)
        if not got.found:
            raise RuntimeError(f"there is no {PurePosixPath(source)} in the container")
        if got.truncated:
            raise RuntimeError(f"{source} has more than {_FILES_LIMIT >> 20} MiB")

    async def _apart(self, what: Any, *args: Any, **how: Any) -> Any:
        """Do something that blocks in a thread, and tell faults in the words of Harbor."""
        try:
            return await asyncio.to_thread(partial(what, *args, **how))
        except SandboxError as error:
            if error.outcome == "sandbox_died":
                self.fault = error
            raise RuntimeError(str(error)) from error
