"""Docker Compose as a command: where it is, what it may see, how it is run and stopped.

Compose reads the task's files and says what they mean (:meth:`Compose.config`), builds images and
creates groups. What is written into the files, and what to do when it fails, is decided elsewhere.
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from pytest_harbor.errors import SandboxError
from pytest_harbor.task.timeouts import Deadline

_PLUGIN_FOLDERS: Final = (
    "/usr/local/lib/docker/cli-plugins",
    "/usr/local/libexec/docker/cli-plugins",
    "/usr/lib/docker/cli-plugins",
    "/usr/libexec/docker/cli-plugins",
)
_CLIENT_VARIABLES: Final = re.compile(
    r"PATH|HOME|USER|TMPDIR|XDG_RUNTIME_DIR|SSH_AUTH_SOCK|SSL_CERT_(FILE|DIR)"
    r"|DOCKER_\w+|BUILDX_\w+|BUILDKIT_\w+|(https?|all|no|HTTPS?|ALL|NO)_(proxy|PROXY)"
)
"""What the client itself needs to reach an engine and registries."""

_SHORT_LIVED: Final = {"GOGC": "off", "GOMEMLIMIT": "512MiB"}
"""A command of 50 ms need not collect garbage; saves a third of its CPU time."""

_UNSET: Final = re.compile(r'The \\?"(?P<name>\w+)\\?" variable is not set')
_WAIT_WITHOUT_LIMIT: Final = 600.0


@dataclass(frozen=True)
class Completed:
    """A Compose command that ended by itself."""

    code: int
    stdout: bytes
    stderr: str

    @property
    def complaint(self) -> str:
        """Its last words without the lines that only report progress."""
        lines = [
            line for line in self.stderr.splitlines() if line.strip() and not _PROGRESS.match(line)
        ]
        return "\n".join(lines[-20:]).strip() or f"exit code {self.code}, and no message"


_PROGRESS: Final = re.compile(
    r"^\s*(Container|Network|Volume|Image)\s+\S+\s+"
    r"(Creating|Created|Starting|Started|Waiting|Healthy|Exited|Recreate|Running|Removing|Removed)"
    r"\s*$|^time=\S+ level=(warning|info|debug)"
)


@dataclass(frozen=True)
class Resolved:
    """What Compose makes of a stack of files."""

    model: dict[str, Any]
    unset: tuple[str, ...]
    """Variables that the files use without a default, and that nobody set."""


class ComposeError(SandboxError):
    """Compose refused the files; the message is its own."""


class Compose:
    """The Compose command of the operator's environment."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._client = {
            name: value for name, value in environment.items() if _CLIENT_VARIABLES.fullmatch(name)
        }
        self.command: Final = find_command(environment)
        self.default_platform: Final = environment.get("DOCKER_DEFAULT_PLATFORM", "")

    def config(
        self,
        project: str,
        directory: Path,
        files: Sequence[Path],
        variables: Mapping[str, str],
        deadline: Deadline,
    ) -> Resolved:
        """Let Compose merge and resolve files; ``variables`` is all that they can see.

        Not even PATH and HOME: this needs neither an engine nor a registry (B65).

        Raises:
            ComposeError: a file is not valid, or a variable with ``:?`` is not set.
        """
        done = self._run(
            (*_place(project, directory, files), "config", "--format", "json"),
            dict(variables) | _SHORT_LIVED,
            deadline,
            "docker compose config",
        )
        if done.code != 0:
            raise ComposeError(done.complaint)
        unset = dict.fromkeys(match["name"] for match in _UNSET.finditer(done.stderr))
        return Resolved(json.loads(done.stdout), tuple(unset))

    def up(
        self,
        project: str,
        directory: Path,
        file: Path,
        variables: Mapping[str, str],
        deadline: Deadline,
    ) -> Completed:
        """Create and start what a resolved file describes; images are there already."""
        return self._run(
            (*_place(project, directory, [file]), "up", "--detach", "--no-build", "--quiet-pull"),
            {**variables, **self._client, **_SHORT_LIVED},
            deadline,
            "docker compose up",
        )

    def build(
        self,
        project: str,
        directory: Path,
        file: Path,
        service: str,
        variables: Mapping[str, str],
        deadline: Deadline,
        *,
        log: IO[bytes],
        no_cache: bool = False,
    ) -> int:
        """Build one service of a resolved file; what is printed goes to ``log``."""
        options = ("--no-cache",) if no_cache else ()
        return self._run(
            (*_place(project, directory, [file]), "build", *options, service),
            {**variables, **self._client, "BUILDKIT_PROGRESS": "plain"},
            deadline,
            f"docker compose build {service}",
            log=log,
        ).code

    def _run(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        deadline: Deadline,
        what: str,
        *,
        log: IO[bytes] | None = None,
    ) -> Completed:
        """Run to the end, or kill it at the deadline.

        It stays in the caller's process group, so that a Ctrl-C reaches it, too; the janitor ends
        it when its owner was killed.
        """
        pipe = subprocess.PIPE if log is None else log
        with subprocess.Popen(
            [*self.command, *arguments],
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=pipe,
            stderr=subprocess.PIPE if log is None else subprocess.STDOUT,
        ) as process:
            try:
                out, err = process.communicate(timeout=limit(deadline))
            except subprocess.TimeoutExpired:
                process.kill()
                _, err = process.communicate()
                last = (err or b"").decode("utf-8", "replace").strip().splitlines()[-3:]
                said = f" It last said: {' / '.join(last)}" if last else ""
                raise SandboxError(
                    f"{what} did not end in time ({deadline.describe()}).{said}"
                ) from None
            except BaseException:
                process.kill()
                raise
        return Completed(process.returncode, out or b"", (err or b"").decode("utf-8", "replace"))


def limit(deadline: Deadline, at_most: float = _WAIT_WITHOUT_LIMIT) -> float:
    """Seconds to wait: nothing waits without a limit, also where the budget has none."""
    left = deadline.remaining()
    return at_most if left is None else min(left, at_most)


def find_command(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The plugin's own binary, which spares starting the docker client; else the client.

    The plugin behaves the same when it is called directly. Folders as the client looks for them.
    """
    config = environment.get("DOCKER_CONFIG") or f"{environment.get('HOME', '')}/.docker"
    for folder in (f"{config}/cli-plugins", *_PLUGIN_FOLDERS):
        plugin = Path(folder, "docker-compose")
        with contextlib.suppress(OSError):
            if plugin.is_file():
                return (str(plugin),)
    path = environment.get("PATH")
    if client := shutil.which("docker", path=path):
        return (client, "compose")
    raise SandboxError(
        "Docker Compose is not installed: no docker-compose plugin in "
        f"{', '.join(_PLUGIN_FOLDERS)}. script/setup installs it."
    )


def _place(project: str, directory: Path, files: Sequence[Path]) -> tuple[str, ...]:
    """Options that leave nothing to be found out by Compose: no .env, no COMPOSE_FILE."""
    named = [option for file in files for option in ("--file", str(file))]
    return (
        *("--project-name", project, "--project-directory", str(directory)),
        *("--env-file", "/dev/null", "--ansi", "never", "--progress", "plain", *named),
    )
