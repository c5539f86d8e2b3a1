"""A sandbox provider written for Harbor: ``harbor:harbor_providers:Faraway``.

It is as poor as one far away: a command comes back when it has ended, its two streams apart, and a
file goes and comes. Behind it is a container that the ``docker`` command made.
"""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path
from typing import Any

from harbor.environments.base import BaseEnvironment, ExecResult

STARTED: list[str] = []
"""Names of the containers that were ever made."""


class Faraway(BaseEnvironment):
    """Runs one container, or does what an option says that a provider may do."""

    def __init__(self, *args: Any, fails: str = "", **kwargs: Any) -> None:
        self._fails = fails
        if fails == "options":
            raise ValueError("no region of that name")
        super().__init__(*args, **kwargs)

    @staticmethod
    def type() -> str:
        return "faraway"

    def _validate_definition(self) -> None:
        pass

    async def _docker(self, *words: str, limit: float | None = None) -> ExecResult:
        process = await asyncio.create_subprocess_exec(
            "docker", *words, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        try:
            out, err = await asyncio.wait_for(process.communicate(), limit)
        except BaseException:
            process.kill()
            await process.wait()
            raise
        return ExecResult(
            stdout=out.decode("utf-8", "replace"),
            stderr=err.decode("utf-8", "replace"),
            return_code=process.returncode or 0,
        )

    async def _must(self, *words: str) -> str:
        done = await self._docker(*words)
        if done.return_code:
            raise RuntimeError(done.stderr)
        return done.stdout or ""

    async def start(self, force_build: bool) -> None:
        if self._fails == "start":
            raise RuntimeError("no machine is free")
        image = self.task_env_config.docker_image
        if image is None:  # without a name: what is built from the same files is the same image
            image = (await self._must("build", "-q", str(self.environment_dir))).strip()
        keep = ("--init", image, "sleep", "infinity")
        env = [
            word
            for name, value in self._startup_env().items()
            for word in ("-e", f"{name}={value}")
        ]
        STARTED.append(self.session_id)
        await self._must("run", "-d", "--name", self.session_id, *env, *keep)

    async def stop(self, delete: bool) -> None:
        await self._docker("rm", "-f", "-v", self.session_id)

    async def exec(
        self,
        command: str,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_sec: int | None = None,
        user: str | int | None = None,
    ) -> ExecResult:
        words = ["exec", *(("-w", cwd) if cwd else ())]
        words += [word for name, value in (env or {}).items() for word in ("-e", f"{name}={value}")]
        words += ["-u", str(user)] if user is not None else []
        return await self._docker(*words, self.session_id, "sh", "-c", command, limit=timeout_sec)

    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        await self._must("cp", str(source_path), f"{self.session_id}:{target_path}")

    async def download_file(self, source_path: str, target_path: Path | str) -> None:
        await self._must("cp", f"{self.session_id}:{source_path}", str(target_path))

    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None:
        raise NotImplementedError

    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        raise NotImplementedError
