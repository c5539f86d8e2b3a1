"""The agent that is a CLI: installed once as its card says, run in main, read from its own log.

How a turn ended is what the log says, not the exit code. The CLI has a home of its own outside the
task's work, a fresh one for each turn unless it goes on with a session.
"""

from __future__ import annotations

import dataclasses
import shlex
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Final

from pytest_harbor.agents.base import LOGS, Agent, Capabilities, Turn, TurnResult, last_line
from pytest_harbor.agents.card import Card, Install, Words, render
from pytest_harbor.agents.install import install, loader, python
from pytest_harbor.agents.readers.base import Reading, find_reader
from pytest_harbor.errors import AgentError
from pytest_harbor.sandbox.container import SCRIPT_LIMIT, Container, Entry, Ran, UserIds
from pytest_harbor.sandbox.engine import Engine
from pytest_harbor.sandbox.uploads import tree_entries
from pytest_harbor.task.timeouts import Deadline
from pytest_harbor.trajectory import dump

ROOT: Final = "/opt/pytest-harbor"
"""Where in main all of this lies; no task has anything there."""
HOME: Final = f"{ROOT}/home"
TRAJECTORY: Final = "trajectory.json"

_INSTRUCTION: Final = f"{LOGS}/instruction.md"
_SESSION: Final = f"{LOGS}/session"
_LIMIT: Final = 128 << 20
"""Bytes that are read of a CLI's own log, and of what it printed."""
_MACHINES: Final = {"amd64": ("x64", "x86_64"), "arm64": ("arm64", "aarch64")}
_KEY: Final = "unused"
_TOKENS: Final = ("input_tokens", "output_tokens", "cached_tokens", "cost_usd")


@dataclass(frozen=True)
class _Found:
    """What setup has learnt about a container."""

    start: str
    version: str


@dataclass(frozen=True)
class CliAgent(Agent):
    """Runs the CLI of a card."""

    card: Card
    version: str
    model: str | None = None
    _found: dict[str, _Found] = field(default_factory=dict, compare=False, repr=False)
    """By container id."""

    @property
    def name(self) -> str:  # type: ignore[override]
        """The card's."""
        return self.card.name

    @property
    def capabilities(self) -> Capabilities:  # type: ignore[override]
        """What the card says."""
        card = self.card
        return Capabilities(
            mcp_transports=frozenset(card.transports),
            needs_model=True,
            wire=card.wire,
            needs_network=True,
            # without a reader nobody knows the session's name
            resumes=card.resume is not None and card.reader is not None,
            binaries=card.needs,
            tool_aliases=card.tool_aliases,
        )

    def prepare(self, engine: Engine, deadline: Deadline) -> Mapping[str, str]:
        """Have the CLI installed, once for all episodes."""
        words = self._words(engine)
        wanted = Install(
            npm=tuple(render(each, words) for each in self.card.install.npm),
            pip=tuple(render(each, words) for each in self.card.install.pip),
        )
        volume = install(self.name, wanted, engine, engine.environment, deadline)
        return {words.tools: volume}

    def setup(self, container: Container, *, user: str | int | None, deadline: Deadline) -> None:
        """See that the CLI starts: by itself, or with the C library that was installed with it."""
        words = self._words(container.engine)
        container.put([_fresh_home(container.user(user))])
        said = ""
        for start in ("", loader(words.tools)):
            probe = render(self.card.probe, dataclasses.replace(words, start=start))
            script = f"HOME={HOME}; export HOME; {probe}"
            ran = container.run(script, user=user, workdir="/", deadline=deadline)
            said = ran.output.decode("utf-8", "replace").strip()[-1000:]
            if ran.exit_code == 0:
                self._found[container.id] = _Found(start, said.splitlines()[-1] if said else "")
                return
        raise AgentError(
            f"the agent {self.name} cannot run in the image of service {container.service}: {said}"
        )

    def run_turn(self, turn: Turn) -> TurnResult:
        """Lay config and instruction down, run the CLI, and read what it did."""
        words = self._turn_words(turn)
        owner = turn.container.user(turn.user)
        turn.container.put(self._entries(turn, words, owner))
        ran = turn.container.run_logged(
            self._script(turn, words),
            log=f"{LOGS}/{self._log}",
            stdin=_INSTRUCTION if self.card.instruction == "stdin" else None,
            user=turn.user,
            env={**turn.env, **{key: render(each, words) for key, each in self.card.env.items()}},
            deadline=turn.deadline,
        )
        reading = self._read(turn, words, owner, ran)
        return self._result(turn, ran, reading)

    @property
    def _log(self) -> str:
        return f"{self.name}.txt"

    @property
    def _errors(self) -> str:
        return f"{self.name}-stderr.txt"

    def _words(self, engine: Engine) -> Words:
        cpu = engine.facts.platform.rpartition("/")[2]
        if cpu not in _MACHINES:
            raise AgentError(f"the agent {self.name} is not made for engines on {cpu}")
        arch, machine = _MACHINES[cpu]
        tools = f"{ROOT}/{self.name}"
        return Words(
            tools=tools,
            home=HOME,
            out=LOGS,
            start="",
            python=python(tools),
            arch=arch,
            machine=machine,
            version=self.version,
            instruction=_INSTRUCTION,
            tool_seconds=60 * self.card.tool_minutes,
        )

    def _turn_words(self, turn: Turn) -> Words:
        found = self._found.get(turn.container.id)
        if found is None or turn.model is None:
            raise AgentError(
                f"the agent {self.name} was not set up in this container, or got no model"
            )
        return dataclasses.replace(
            self._words(turn.container.engine),
            start=found.start,
            model=turn.model.name,
            url=turn.model.url.rstrip("/"),
            key=_KEY,
            effort=self.card.efforts[turn.effort] if turn.effort else "",
            servers=turn.grants,
            session=turn.session or "",
        )

    def _entries(self, turn: Turn, words: Words, owner: UserIds) -> Iterator[Entry]:
        text = turn.instruction.encode()
        if self.card.instruction == "argument" and len(text) > SCRIPT_LIMIT:
            raise AgentError(
                f"the instruction of step {turn.step} has {len(text)} bytes, and {self.name} takes "
                f"it on the command line, where {SCRIPT_LIMIT} fit; take another agent"
            )
        yield dataclasses.replace(_fresh_home(owner), fresh=turn.session is None)
        folders: set[PurePosixPath] = set()
        for path, template in self.card.files.items():
            place = PurePosixPath(render(path, words))
            for folder in reversed(place.parents):
                if folder.is_relative_to(HOME) and folder not in folders | {PurePosixPath(HOME)}:
                    folders.add(folder)
                    yield Entry(str(folder), None, 0o700, owner.uid, owner.gid)
            content = render(template, words).encode()
            yield Entry(str(place), content, 0o600, owner.uid, owner.gid)
        yield Entry(_INSTRUCTION, text, 0o644, owner.uid, owner.gid)

    def _script(self, turn: Turn, words: Words) -> str:
        """The turn as a shell script; git stays who the image says it is, home or not."""
        command = self.card.resume if turn.session and self.card.resume else self.card.command
        return "\n".join(
            (
                f"exec 2>{shlex.quote(f'{LOGS}/{self._errors}')}",
                f'[ ! -e "$HOME/.gitconfig" ] || ln -sf "$HOME/.gitconfig" {HOME}/.gitconfig',
                f"HOME={HOME}; export HOME",
                render(command, words),
                "_ph_ended=$?",
                render(self.card.after, words),
                "exit $_ph_ended",
            )
        )

    def _read(self, turn: Turn, words: Words, owner: UserIds, ran: Ran) -> Reading:
        """Fetch the CLI's log and have it read; log and trajectory go to the agent's own logs."""
        container = turn.container
        with tempfile.TemporaryDirectory(prefix="pytest-harbor-") as name:
            logs, stdout = Path(name) / "logs", Path(name) / "stdout"
            if self.card.logs is not None:
                container.get_tree(render(self.card.logs, words), logs, limit_bytes=_LIMIT)
            container.get_tree(f"{LOGS}/{self._log}", stdout, limit_bytes=_LIMIT)
            reading = self._reading(
                logs,
                stdout=stdout,
                exit_code=ran.exit_code,
                instruction=turn.instruction,
                agent_name=self.name,
                agent_version=self._found[container.id].version or self.version,
                model=words.model,
            ) or self._by_exit_code(ran, container)
            container.put(_kept(logs, reading, owner))
        return reading

    def _reading(self, logs: Path, **known: Any) -> Reading | None:
        """What the card's reader makes of the log; None where there is no reader.

        Raises:
            AgentError: the reader fails; one of the operator's own may.
        """
        if self.card.reader is None:
            return None
        try:
            return find_reader(self.card.reader).read(logs, **known)
        except Exception as error:
            raise AgentError(
                f"the reader {self.card.reader} of the agent {self.name} fails: "
                f"{type(error).__name__}: {error}"
            ) from error

    def _by_exit_code(self, ran: Ran, container: Container) -> Reading:
        """Believe the exit code; a trajectory is made of what is known of its calls."""
        if ran.exit_code in (0, None):
            return Reading(None, "exited")
        said = last_line(container, self._errors)
        return Reading(None, "error", f"{self.name} exited with {ran.exit_code}: {said}")

    def _result(self, turn: Turn, ran: Ran, reading: Reading) -> TurnResult:
        late = f"agent timed out: {ran.limit}"
        return TurnResult(
            "timeout" if ran.timed_out else reading.ended,
            exit_code=ran.exit_code,
            message=late if ran.timed_out else reading.message,
            log=self._log,
            trajectory=TRAJECTORY if reading.trajectory is not None else None,
            **{name: getattr(reading, name) for name in _TOKENS},
            session=reading.session,
            extra=self._extra(turn, reading),
        )

    def _extra(self, turn: Turn, reading: Reading) -> dict[str, Any]:
        found = self._found[turn.container.id]
        known = {
            "version": found.version or self.version,
            "remark": self.card.remark,
            "started_with": found.start,
            "notes": list(reading.notes),
        }
        return {name: value for name, value in known.items() if value}


def _fresh_home(owner: UserIds) -> Entry:
    return Entry(HOME, None, 0o700, owner.uid, owner.gid, fresh=True)


def _kept(logs: Path, reading: Reading, owner: UserIds) -> Iterable[Entry]:
    if logs.is_dir():
        yield from tree_entries(logs, _SESSION, owner, harborignore=False)
    if reading.trajectory is not None:
        text = dump(reading.trajectory).encode()
        yield Entry(f"{LOGS}/{TRAJECTORY}", text, 0o644, owner.uid, owner.gid)
