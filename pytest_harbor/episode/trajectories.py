"""The trajectory of an episode: those of its turns, one after the other, with what came between.

Where the agent keeps no trajectory of its own there are still the instruction, its calls of MCP
servers by the relay's record, and the verifier's results. Tokens and cost are the gateway's, where
the agent's calls went through it; what the agent counted itself is kept beside it when it differs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from pytest_harbor.episode.relayed import add_calls
from pytest_harbor.episode.result import GradeRecord, PartyRecord, StepResult, TurnRecord
from pytest_harbor.errors import TrajectoryError
from pytest_harbor.plain import plain, plain_text
from pytest_harbor.trajectory import (
    Actor,
    FinalMetrics,
    Step,
    Trajectory,
    dump,
    load,
    numbered,
)

if TYPE_CHECKING:
    from pytest_harbor.agents.base import Agent
    from pytest_harbor.episode.folder import EpisodeFolder, StepFolder
    from pytest_harbor.gateway import McpCall

NAME: Final = "trajectory.json"
"""The file, in a step's folder of the agent and in the episode's own (harbor-format 10.5)."""
OWN_COUNT: Final = "by_the_agent"
"""Under this key of ``extra`` stands what the agent counted itself."""
_TOKENS: Final = ("input_tokens", "output_tokens", "cached_tokens")
_COUNTS: Final = (*_TOKENS, "cost_usd")


def own_count(turn: TurnRecord, counted: Mapping[str, Any]) -> dict[str, Any]:
    """What the agent counted itself, where it differs from what the gateway counted."""
    own = {name: getattr(turn, name) for name in _COUNTS}
    return {name: value for name, value in own.items() if value not in (None, counted.get(name))}


def settle_trajectory(
    folder: EpisodeFolder, step: StepFolder, turn: TurnRecord
) -> tuple[TurnRecord, tuple[str, ...]]:
    """See to the trajectory that a turn left: it says what the turn's record says of tokens.

    Returns the turn, with the file that is there, and what is wrong with it.
    """
    named = turn.trajectory
    place = folder.path / named if named is not None else step.agent / NAME
    if not place.is_file() or place.is_symlink():
        missing = (f"the agent names a trajectory {named}, which is not there",) if named else ()
        return turn.model_copy(update={"trajectory": None}), missing
    file = folder.relative(place)
    turn = turn.model_copy(update={"trajectory": file})
    try:
        own = load(place)
    except TrajectoryError as error:
        return turn, (str(error).replace(f"{folder.path}/", ""),)
    folder.write_text(file, dump(own.model_copy(update={"final_metrics": _final(own, turn)})))
    return turn, ()


def _final(own: Trajectory, turn: TurnRecord) -> FinalMetrics:
    """The turn's sums; the agent's own stand beside them where they differ."""
    before = own.final_metrics or FinalMetrics()
    given = dict(turn.extra).get(OWN_COUNT)
    extra = {**(before.extra or {}), OWN_COUNT: given} if given else before.extra
    return FinalMetrics(
        total_prompt_tokens=_known(turn.input_tokens, before.total_prompt_tokens),
        total_completion_tokens=_known(turn.output_tokens, before.total_completion_tokens),
        total_cached_tokens=_known(turn.cached_tokens, before.total_cached_tokens),
        total_cost_usd=turn.cost_usd if turn.cost_usd is not None else before.total_cost_usd,
        total_steps=before.total_steps,
        extra=extra,
    )


def _known(first: int | None, second: int | None) -> int | None:
    return first if first is not None else second


class Chronicle:
    """The episode's trajectory in the making; after each step its file is whole."""

    def __init__(self, folder: EpisodeFolder, agent: Agent) -> None:
        self._folder = folder
        self._agent = agent
        self._steps: list[Step] = []
        self._notes: list[str] = []
        self._subagents: list[Trajectory] = []
        self._turns: dict[str, TurnRecord] = {}

    def add(self, instruction: str, result: StepResult, calls: Sequence[McpCall]) -> None:
        """Add a step that is over, and write the file.

        Raises:
            ValueError: something in it cannot be said in ATIF.
        """
        own = self._read(result)
        if own is not None:
            own = _apart(own, result.name)
            self._subagents += own.subagent_trajectories or ()
            self._notes += [f"{result.name}: {own.notes}"] if own.notes else []
        story = [*_turn(own, instruction, result)]
        add_calls(story, calls, is_utility=self._agent.capabilities.is_utility)
        story += _after(result)
        self._steps += [_of_step(step, result.name) for step in story]
        if result.turn is not None:
            self._turns[result.name] = result.turn
        self._notes += _notes_on_cost(result.parties)
        self._folder.write_text(NAME, dump(self.trajectory()))

    def trajectory(self) -> Trajectory:
        """All steps so far."""
        agent = self._agent
        return Trajectory(
            session_id=self._folder.name,
            agent=Actor(name=agent.name, version=agent.version or "", model_name=agent.model),
            steps=numbered(self._steps),
            notes="\n".join(dict.fromkeys(self._notes)) or None,
            final_metrics=self._sums(),
            subagent_trajectories=tuple(self._subagents) or None,
        )

    def _read(self, result: StepResult) -> Trajectory | None:
        if result.turn is None or result.turn.trajectory is None:
            return None
        try:
            return load(self._folder.path / result.turn.trajectory)
        except TrajectoryError:  # the step has a warning of it
            return None

    def _sums(self) -> FinalMetrics:
        own = {
            name: turn.extra[OWN_COUNT]
            for name, turn in self._turns.items()
            if OWN_COUNT in turn.extra
        }
        turns = list(self._turns.values())
        prompt, completion, cached = (
            _sum(getattr(turn, name) for turn in turns) for name in _TOKENS
        )
        return FinalMetrics(
            total_prompt_tokens=prompt,
            total_completion_tokens=completion,
            total_cached_tokens=cached,
            total_cost_usd=_sum(turn.cost_usd for turn in turns),
            total_steps=len(self._steps),
            extra={OWN_COUNT: own} if own else None,
        )


def _sum(values: Iterable[Any]) -> Any:
    """The sum; None when one of them is not known, for a sum without it looks like the whole."""
    known = list(values)
    return None if None in known or not known else sum(known)


def _notes_on_cost(parties: Mapping[str, PartyRecord]) -> list[str]:
    return [note for party in parties.values() for note in party.notes]


def _of_step(step: Step, name: str) -> Step:
    return step.model_copy(update={"extra": {**(step.extra or {}), "step": name}})


def _apart(own: Trajectory, step: str) -> Trajectory:
    """The trajectory with names of sub-agents that no other step has."""
    names = {each.trajectory_id: f"{step}/{each.trajectory_id}" for each in _subagents(own)}
    if not names:
        return own
    data = own.model_dump()
    for each in data["subagent_trajectories"]:
        each["trajectory_id"] = names[each["trajectory_id"]]
    for owner in (data, *data["subagent_trajectories"]):
        for reference in _references(owner):
            reference["trajectory_id"] = names.get(
                reference["trajectory_id"], reference["trajectory_id"]
            )
    return Trajectory.model_validate(data)


def _subagents(own: Trajectory) -> Iterable[Trajectory]:
    return own.subagent_trajectories or ()


def _references(data: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for step in data["steps"]:
        for result in (step["observation"] or {}).get("results", ()):
            yield from result["subagent_trajectory_ref"] or ()


def _turn(own: Trajectory | None, instruction: str, result: StepResult) -> Iterator[Step]:
    """The agent's own steps, after the instruction where it does not have it."""
    steps = own.steps if own is not None else ()
    if result.turn is not None and not any(step.source == "user" for step in steps):
        yield _step("user", instruction, result.turn.ran.started_at)
    yield from steps


def _after(result: StepResult) -> Iterator[Step]:
    turn, grade = result.turn, result.grade
    if turn is not None and turn.ended != "exited":
        said = f": {turn.message}" if turn.message else ""
        yield _step("system", f"The turn ended by {turn.ended}{said}", turn.ran.finished_at)
    if grade is not None:
        yield _verdict(grade)
    over = result.ran.finished_at if result.ran is not None else None
    if result.gate:
        yield _step("system", f"The episode stops here: {result.gate}", over)
    if result.fault is not None:
        fault = result.fault
        yield _step("system", f"{fault.outcome} in {fault.phase}: {fault.message}", over)


def _verdict(grade: GradeRecord) -> Step:
    """What the verifier gave. What it printed is not repeated: it may quote hidden tests, and
    trajectories are passed on.
    """
    given = ", ".join(f"{name} {value:g}" for name, value in grade.rewards.items())
    known: dict[str, Any] = {
        "rewards": grade.rewards,
        "exit_code": grade.exit_code,
        "seconds": grade.ran.seconds,
        "log": grade.log,
    }
    step = _step("system", f"The verifier gave {given or 'no reward'}.", grade.ran.finished_at)
    return step.model_copy(update={"extra": {"verifier": plain(known)}})


def _step(source: Any, message: str, at: datetime | None = None) -> Step:
    return Step(
        step_id=1,
        source=source,
        message=plain_text(message),
        timestamp=at.isoformat() if at is not None else None,
    )
