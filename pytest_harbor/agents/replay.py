"""The agent ``replay``: does again what a trajectory tells, in order, and says where it diverged.

The trajectory may be any agent's. No model is asked; a simulated user is asked the same again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import zip_longest
from pathlib import Path
from typing import Final, Literal

from pytest_harbor.agents.base import LOGS, Agent, Capabilities, Turn, TurnResult
from pytest_harbor.agents.files import change_files
from pytest_harbor.agents.hands import Done, Hands, LateError, hands
from pytest_harbor.agents.readers.draft import Story
from pytest_harbor.agents.recorded import (
    Action,
    Call,
    Edit,
    Look,
    Patch,
    Seen,
    Shell,
    Unknown,
    Write,
    meaning,
    seen,
)
from pytest_harbor.errors import RecipeError, TrajectoryError, UserError
from pytest_harbor.sandbox.container import Entry
from pytest_harbor.steady import steady_text
from pytest_harbor.trajectory import Step, Trajectory, dump, load

_TRAJECTORY: Final = "trajectory.json"
_SHOWN: Final = 120
"""Characters of a line that are quoted."""
_FOREVER: Final = 1e9
"""Seconds; a command has as long as the turn."""


@dataclass
class Report:
    """What became of the calls."""

    replayed: int = 0
    looked: int = 0
    """Calls that change nothing, and were not made again."""
    not_replayable: list[str] = field(default_factory=list)
    diverged: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        said = [f"{self.replayed} calls replayed, {self.looked} that only look left out"]
        for what, each in (("not replayable", self.not_replayable), ("diverged", self.diverged)):
            if each:
                said.append(f"{len(each)} {what}, the first at {each[0]}")
        return "; ".join(said)


class ReplayAgent(Agent):
    """Plays what ``trajectories`` holds: a file, or an earlier episode's run folder."""

    name = "replay"
    version = "1"
    capabilities = Capabilities(is_utility=True)

    def __init__(self, trajectories: Path) -> None:
        self._trajectories = trajectories

    def run_turn(self, turn: Turn) -> TurnResult:
        """Play the step's trajectory."""
        told = _load(find_trajectory(self._trajectories, turn))
        story, report = Story(self.name, self.version, None), Report()
        story.say("user", turn.instruction, _now())
        ended: Literal["exited", "timeout", "error"] = "exited"
        message = ""
        try:
            with hands(turn) as able:
                player = _Player(turn, able, report, story)
                for step in told.steps:
                    player.play(step)
        except LateError:
            ended, message = "timeout", f"agent timed out: {turn.deadline.describe()}; "
        except UserError as error:
            ended, message = "error", f"{error}; "
        if told.subagent_trajectories:
            report.not_replayable.append("its sub-agents, whose trajectories are left out")
        story.note(str(report))
        if (made := story.trajectory()) is not None:
            owner = turn.container.user(turn.user)
            place = f"{LOGS}/{_TRAJECTORY}"
            turn.container.put([Entry(place, dump(made).encode(), 0o644, owner.uid, owner.gid)])
        return TurnResult(
            ended,
            message=message + str(report),
            trajectory=_TRAJECTORY,
            extra={**vars(report), "trajectory_of": told.agent.name},
        )


def find_trajectory(given: Path, turn: Turn) -> Path:
    """The trajectory of a step: a file given for the only step, or that in a run folder.

    A folder may also hold run folders: that of the same episode has the same name in every run.

    Raises:
        RecipeError: there is none.
    """
    if given.is_file():
        if turn.index == 0:
            return given
        raise RecipeError(
            f"agent.trajectories: {given} is one turn, and step {turn.step} needs another: give "
            "the run folder of an earlier episode"
        )
    tried = [
        folder / place
        for folder in filter(None, (given / turn.episode if turn.episode else None, given))
        for place in (
            f"steps/{turn.step}/agent/{_TRAJECTORY}",
            f"{turn.step}.json",
            f"agent/{_TRAJECTORY}",
        )
    ]
    found = next((path for path in tried if path.is_file()), None)
    if found is None:
        named = ", ".join(str(path) for path in tried)
        raise RecipeError(
            f"agent.trajectories: there is no trajectory of step {turn.step}; looked for {named}"
        )
    return found


def _load(path: Path) -> Trajectory:
    try:
        return load(path)
    except TrajectoryError as error:
        raise RecipeError(f"agent.trajectories: {error}") from error


class _Player:
    """Plays the steps of a trajectory in a turn."""

    def __init__(self, turn: Turn, able: Hands, report: Report, story: Story) -> None:
        self._turn, self._able, self._report, self._story = turn, able, report, story
        self._offered = {
            server: [tool.name for tool in tools] for server, tools in able.tools.items()
        }

    def play(self, step: Step) -> None:
        """Make the step's calls again; one that was copied from an earlier session is none."""
        if step.source != "agent" or step.is_copied_context:
            return
        draft = self._story.reply(str(step.step_id), _now())
        draft.text.append(step.message if isinstance(step.message, str) else "")
        results = step.observation.results if step.observation else ()
        before = {each.source_call_id: each for each in results}
        for call in step.tool_calls or ():
            where = f"trajectory step {step.step_id} ({call.function_name})"
            action = meaning(call, self._offered)
            if isinstance(action, Look):
                self._report.looked += 1
                continue
            done = self._act(action)
            self._story.call(draft, call.tool_call_id, call.function_name, call.arguments)
            self._story.result(call.tool_call_id, done.text, _now(), exit_code=done.exit_code)
            if isinstance(action, Unknown):
                self._report.not_replayable.append(f"{where}: {action.why}")
                continue
            self._report.replayed += 1
            if difference := _differs(action, done, seen(before.get(call.tool_call_id))):
                self._report.diverged.append(f"{where}: {difference}")

    def _act(self, action: Action) -> Done:
        match action:
            case Shell():
                return self._able.run(action.command, _FOREVER, action.workdir)
            case Call():
                return self._able.call(action.server, action.tool, action.arguments)
            case Write() | Edit() | Patch():
                if self._turn.deadline.expired:
                    raise LateError
                return change_files(self._turn, action)
            case Unknown():
                return Done(f"not replayable: {action.why}", failed=True)
        return Done("")


def _differs(action: Action, done: Done, before: Seen | None) -> str:
    """The first difference between what was seen and what came of it now; empty for none."""
    if isinstance(action, Write | Edit | Patch):
        return done.text if done.failed else ""
    if before is None:
        return ""
    if isinstance(action, Shell) and before.exit_code not in (None, done.exit_code):
        return f"exit code {before.exit_code}, now {done.exit_code}: {_line(done.text)}"
    if isinstance(action, Call) and done.failed and before.exit_code == 0:
        return f"an answer, now an error: {_line(done.text)}"
    old, new = _lines(before.text), _lines(done.text)
    if before.is_cut:
        new = new[: len(old)]
    pairs = zip_longest(old, new, fillvalue=None)
    for number, (one, other) in enumerate(pairs, 1):
        if one != other:
            return f"line {number}: {_line(one)}, now {_line(other)}"
    return ""


def _lines(text: str) -> list[str]:
    """The lines that say something, without what differs from run to run."""
    return [line.rstrip() for line in steady_text(text).splitlines() if line.strip()]


def _line(text: str | None) -> str:
    if text is None:
        return "nothing"
    first = text.strip().partition("\n")[0]
    return repr(first if len(first) <= _SHOWN else f"{first[:_SHOWN]}...")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
