"""Agents written for Harbor, as somebody would bring theirs: ``harbor:harbor_agents:Probe``.

Only Harbor's own loader imports this, in a Python that has Harbor.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from harbor.agents.capabilities import AgentCapabilities
from harbor.agents.installed.base import BaseInstalledAgent
from harbor.environments.base import BaseEnvironment
from harbor.models.agent.context import AgentContext


class Probe(BaseInstalledAgent):
    """Installs a program, and does in its turn what ``act`` says."""

    capabilities = AgentCapabilities(atif=True, mcp_servers=True, mcp_http_headers=True)

    def __init__(self, *args: Any, act: str = "work", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._act = getattr(self, act)

    @staticmethod
    def name() -> str:
        return "probe"

    def get_version_command(self) -> str:
        return "probe --version"

    async def install(self, environment: BaseEnvironment) -> None:
        await self.exec_as_root(environment, "test ! -e /usr/local/bin/probe; sleep 300 & disown")
        program = 'echo "$0 $* for $(whoami) in $PWD, $COLOUR"\n[ "$1" != fail ]\n'
        await self.exec_as_root(
            environment,
            f"printf %s '{program}' >/usr/local/bin/probe; chmod +x /usr/local/bin/probe",
        )

    def parse_version(self, stdout: str) -> str:
        return "3.1" if "--version" in stdout else ""

    async def run(
        self, instruction: str, environment: BaseEnvironment, context: AgentContext
    ) -> None:
        await self._act(instruction, environment, context)

    async def work(
        self, instruction: str, environment: BaseEnvironment, context: AgentContext
    ) -> None:
        """Files and folders out and in, a long command, and what was given to it."""
        await self.exec_as_agent(environment, "mkdir -p /tmp/out/deep; echo 1 > /tmp/out/deep/a")
        here = self.logs_dir / "got"
        await environment.download_dir("/tmp/out", here)
        (here / "deep" / "b").write_text("2")
        (here / "c").symlink_to("deep/b")
        await environment.upload_dir(here, "/srv/back")
        await environment.upload_file(here / "deep" / "b", "/srv")
        await environment.download_file("/srv/back/c", self.logs_dir / "c")
        assert await environment.is_dir("/srv/back")
        assert await environment.is_file("/srv/b")
        long = await self.exec_as_agent(environment, f": {'x' * 200_000}; echo long")
        told = await self.exec_as_agent(environment, "probe work", cwd="/srv")
        canary = await self.exec_as_agent(environment, "env | grep -c CANARY; true")
        header = await self.exec_as_agent(environment, f"echo ${self._header()}")
        left = await self.exec_as_agent(
            environment,
            "ls -d /tmp/.harbor-* 2>/dev/null; grep -lzx 300 /proc/[0-9]*/cmdline; true",
        )
        seen = {
            "instruction": instruction,
            "told": told.stdout,
            "long": long.stdout,
            "left": left.stdout,
            "servers": [server.model_dump(mode="json") for server in self.mcp_servers],
            "header": header.stdout,
            "canary": [self._get_env("CANARY_TOKEN"), canary.stdout],
            "files": sorted(p.relative_to(here).as_posix() for p in here.rglob("*")),
            "c": (self.logs_dir / "c").read_text(),
        }
        (self.logs_dir / "seen.json").write_text(json.dumps(seen))
        await self.exec_as_agent(
            environment, "echo 1 > /app/reward; probe ran > /logs/agent/probe.txt"
        )

    def _header(self) -> str:
        return next(iter(self.mcp_header_env.env), "NOTHING")

    def populate_context_post_run(self, context: AgentContext) -> None:
        log = self.logs_dir / "probe.txt"
        if not log.is_file():
            return
        context.n_input_tokens, context.n_output_tokens = len(log.read_text()), 7
        context.n_cache_tokens, context.cost_usd = 3, 0.25
        (self.logs_dir / "trajectory.json").write_text('{"schema_version": "ATIF-v1.7"}')

    async def fail(self, *given: Any) -> None:
        """Run a program that fails."""
        await self.exec_as_agent(given[1], "probe fail")

    async def hang(self, *given: Any) -> None:
        """Run for ever, and tidy up when it is cancelled."""
        try:
            await self.exec_as_agent(given[1], "sleep 1000 & disown; sleep 1000")
        finally:
            await self.exec_as_agent(given[1], "echo tidied > /logs/agent/probe.txt")

    async def wait(self, *given: Any) -> None:
        """Wait on this host for ever."""
        await asyncio.sleep(1000)

    async def kill(self, *given: Any) -> None:
        """End the container."""
        await self.exec_as_root(given[1], "kill 1; kill -9 1; sleep 20")


class Unmakeable(Probe):
    """Refuses to be made."""

    def __init__(self, logs_dir: Path, **kwargs: Any) -> None:
        raise ValueError("no licence")


class Deadly(Probe):
    """Takes the container along when it is installed."""

    async def install(self, environment: BaseEnvironment) -> None:
        await self.kill("", environment)


class Uninstallable(Probe):
    """Cannot be installed."""

    async def install(self, environment: BaseEnvironment) -> None:
        await self.exec_as_root(environment, "echo no such package >&2; exit 4")
