"""One test item per episode, and how a finished episode is shown as a test with subtests.

The episode runs to its end first; then its steps are played from the result. So a retry cannot
leave a ghost failure and ``-x`` cannot cut an episode in half.
"""

from __future__ import annotations

import inspect
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

import pytest

from pytest_harbor.plain import Plain, plain, plain_text

if TYPE_CHECKING:
    import pluggy

    from pytest_harbor.episode.result import EpisodeResult, StepResult
    from pytest_harbor.task.outline import Outline


@dataclass(frozen=True)
class FoundTask:
    """A task as collection found it."""

    folder: Path
    name: str
    """Its folder's name, or what stands for it in node ids."""
    outline: Outline
    refusal: str | None = None
    """Why it cannot be run under its name, with remedy."""


class Episode(Protocol):
    """What the fixture ``harbor_episode`` gives."""

    def run(self) -> EpisodeResult:
        """Run the episode to its end."""


class TaskFunction(pytest.Function):
    """One attempt at one task, as a test."""

    def __init__(self, *, task: FoundTask, **rest: Any) -> None:
        super().__init__(**rest)
        self.task = task

    @property
    def ihook(self) -> pluggy.HookRelay:
        """The hooks of the dataset's conftest.py files."""
        assert self.parent is not None
        return self.parent.ihook

    @property
    def has_only_our_parameters(self) -> bool:
        """Whether no fixture but those of this plugin is parametrised."""
        callspec = getattr(self, "callspec", None)
        names = callspec.params if callspec is not None else ()
        return all(name.startswith("harbor_") for name in names)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Where it is defined: in its task.toml, not in this file."""
        return self.path, 0, self.name

    def setup(self) -> None:
        """Set up its fixtures."""
        if self.task.refusal:
            pytest.fail(plain_text(self.task.refusal), pytrace=False)
        super().setup()


@pytest.fixture
def harbor_attempt(request: pytest.FixtureRequest) -> int:
    """Number of this attempt at the task, from 1 (see ``--harbor-attempts``)."""
    return int(getattr(request, "param", 1))


@pytest.mark.usefixtures("harbor_attempt")
def run_task(
    request: pytest.FixtureRequest, harbor_episode: Episode, subtests: pytest.Subtests
) -> None:
    """Run one episode of a task and show its steps; the body of every task's item."""
    item = request.node
    # Whatever stops run() is an infrastructure fault, until a result says otherwise.
    note_episode(item, folder=getattr(harbor_episode, "folder", None), verdict="error")
    play(harbor_episode.run(), subtests, item)


# pytest asks for it once for every task
run_task.__signature__ = inspect.signature(run_task)  # type: ignore[attr-defined]

_EPISODE = pytest.StashKey[dict[str, Plain]]()
_STEP = pytest.StashKey["StepResult"]()
_FACTS = (
    "episode",
    "task",
    "task_path",
    "attempt",
    "outcome",
    "verdict",
    "verdict_reason",
    "reward",
    "reward_as_harbor",
    "steps_run",
    "steps_total",
)
"""What a report tells of an episode; all else is in the folder that it names."""


def note_episode(item: pytest.Item, **facts: object) -> None:
    """Remember facts of an item's episode; its reports carry them as ``harbor_episode``."""
    item.stash.setdefault(_EPISODE, {}).update({key: plain(value) for key, value in facts.items()})


def _facts(item: pytest.Item) -> dict[str, Plain]:
    return item.stash.get(_EPISODE, None) or {}


def announce(result: EpisodeResult, item: pytest.Item) -> None:
    """Note a finished episode on its item, and tell the hooks; a second call does nothing."""
    if "outcome" in _facts(item):
        return
    facts = {name: getattr(result, name, None) for name in _FACTS}
    note_episode(item, **{**facts, "verdict": "error"})
    for step in result.steps:
        item.ihook.pytest_harbor_step_finished(result=step)
    item.ihook.pytest_harbor_episode_finished(result=result)
    note_episode(item, **facts)  # a hook that raises is no low score


def play(result: EpisodeResult, subtests: pytest.Subtests, item: pytest.Item) -> None:
    """Show a finished episode as the outcome of an item, each declared step as a subtest."""
    announce(result, item)
    for step in result.steps:
        if not step.implicit:
            _play_step(step, subtests, item)
    _conclude(result.verdict, result.verdict_reason)
    bad = [step.name for step in result.steps if step.verdict in ("failed", "error")]
    if bad:
        _fail(f"the episode passed, yet these steps did not: {', '.join(bad)}")


def _play_step(step: StepResult, subtests: pytest.Subtests, item: pytest.Item) -> None:
    item.stash[_STEP] = step
    try:
        with subtests.test(msg=plain_text(step.name)):
            _conclude(step.verdict, step.verdict_reason)
    finally:
        del item.stash[_STEP]


def _conclude(verdict: str, reason: str) -> None:
    """End a test or subtest as a verdict says."""
    text = plain_text(reason)
    if verdict == "xfailed":
        pytest.xfail(text)
    elif verdict == "skipped":
        pytest.skip(text)
    elif verdict != "passed":
        _fail(text or verdict)


def _fail(reason: str) -> NoReturn:
    pytest.fail(plain_text(reason), pytrace=False)


def add_records(item: pytest.Item, report: pytest.TestReport) -> None:
    """Put on a report what is known of its step or episode, as plain data."""
    step = item.stash.get(_STEP, None)
    if step is not None and report.when == "call":
        _describe_step(report, step)
    elif isinstance(item, TaskFunction) or _EPISODE in item.stash:
        vars(report)["harbor_episode"] = {"folder": None, **_facts(item)}
    else:
        return
    if report.skipped and isinstance(report.longrepr, tuple):
        path, line, _ = item.reportinfo()
        report.longrepr = (str(path), (line or 0) + 1, report.longrepr[2])


def _describe_step(report: pytest.TestReport, step: StepResult) -> None:
    vars(report)["harbor_step"] = plain(step)
    if step.ran is not None:
        report.duration = step.ran.seconds
        report.start = step.ran.started_at.timestamp()
        report.stop = step.ran.finished_at.timestamp()


def make_serializable(report: object, data: dict[str, Any] | None) -> dict[str, Any] | None:
    """Make all of a report of ours plain before it goes to another process.

    Other plugins and the user's fixtures put properties and texts on it, too; one Path or half
    surrogate pair would stop the whole run.
    """
    if data is None or not _is_ours(report):
        return data
    return {key: _plain_field(value) for key, value in data.items()}


def _plain_field(value: object) -> object:
    """Make a field of a report plain; pytest wants its tuples back (longrepr of a skip)."""
    made = plain(value)
    return tuple(made) if isinstance(value, tuple) and isinstance(made, list) else made


def _is_ours(report: object) -> bool:
    return hasattr(report, "harbor_episode") or hasattr(report, "harbor_step")


def status(report: object) -> tuple[str, str, str] | None:
    """Show an infrastructure fault during the call as ERROR, never as FAILED."""
    if not isinstance(report, pytest.TestReport) or not (report.failed and report.when == "call"):
        return None
    step: dict[str, Any] | None = getattr(report, "harbor_step", None)
    if step is not None:
        return ("error", "E", f"SUBERROR[{step['name']}]") if step["verdict"] == "error" else None
    episode: dict[str, Any] = getattr(report, "harbor_episode", {})
    return ("error", "E", "ERROR") if episode.get("verdict") == "error" else None


class TaskCounter:
    """Lets ``-x`` and ``--maxfail`` count tasks, not their steps.

    The episode of a failed step fails, too, and is counted; with its steps counted as well,
    ``--maxfail=5`` would stop after one task. pytest counts a report when it is logged, so the
    count of a step is taken back ahead of that.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._plugins = config.pluginmanager

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> Generator[None]:
        """Take back the count of a failed step in pytest's session and in that of xdist."""
        if report.failed and hasattr(report, "harbor_step"):
            for name, counter in (("session", "testsfailed"), ("dsession", "countfailures")):
                keeper = self._plugins.get_plugin(name)
                if hasattr(keeper, counter):
                    setattr(keeper, counter, getattr(keeper, counter) - 1)
        return (yield)
