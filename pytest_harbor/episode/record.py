"""The record of an episode in the making: every event and step goes to disk when it happens."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from pytest_harbor.agents.base import Agent
from pytest_harbor.episode.folder import EpisodeFolder
from pytest_harbor.episode.outcome import Outcome
from pytest_harbor.episode.plan import Plan
from pytest_harbor.episode.result import (
    AgentIdentity,
    EpisodeResult,
    Fault,
    Interval,
    PartyRecord,
    RecipeValue,
    StepResult,
)
from pytest_harbor.episode.rewards import StepScore, add_up, add_up_as_harbor, add_up_keys
from pytest_harbor.episode.verdict import rule
from pytest_harbor.errors import HarborError
from pytest_harbor.redaction import Redactor
from pytest_harbor.settings import Recipe
from pytest_harbor.task.model import Step, Task

_STOPS_HARBOR_TOO = frozenset(
    {
        Outcome.TASK_INVALID,
        Outcome.IMAGE_FAILED,
        Outcome.START_FAILED,
        Outcome.SETUP_FAILED,
        Outcome.VERIFIER_TIMEOUT,
        Outcome.NO_REWARD,
    }
)
"""Faults after which Harbor runs no further step; after all others its score is unknowable."""


class Stopwatch:
    """Measures an interval; :meth:`stop` may be called again for a later end."""

    def __init__(self) -> None:
        self.started_at = datetime.now(UTC)
        self._started = time.monotonic()

    def stop(self) -> Interval:
        """The interval from the making of this watch until now."""
        return Interval(
            started_at=self.started_at,
            finished_at=datetime.now(UTC),
            seconds=round(time.monotonic() - self._started, 3),
        )


class EpisodeRecord:
    """Collects what happens in one episode and keeps its folder up to date.

    It exists before the task is known to be sound, so that a broken task has a result too.
    """

    def __init__(
        self, folder: EpisodeFolder, *, key: str, task: str, task_path: str, attempt: int = 1
    ) -> None:
        self.folder = folder
        self._identity = {"key": key, "task": task, "task_path": task_path, "attempt": attempt}
        self._watch = Stopwatch()
        self._plan: Plan | None = None
        self._steps: list[StepResult] = []
        self._phases: dict[str, Interval] = {}
        self._images: dict[str, str] = {}
        self._parties: dict[str, PartyRecord] = {}
        self._secrets: frozenset[str] = frozenset()
        self._warnings: list[str] = []
        self._fault: Fault | None = None
        self.has_begun = False
        """Whether there is a folder with a first result."""
        self.result: EpisodeResult | None = None
        """The result, once the episode has ended."""

    def begin(self, plan: Plan | None = None) -> None:
        """Make the folder and write a first result, "interrupted" until a better one follows."""
        if plan is not None:
            self._plan = plan
            self._warnings += plan.warnings
            self.hide(plan.secrets)
        recipe = [value.model_dump(mode="json") for value in self._recipe()]
        self.folder.begin(config={**self._identity, "recipe": recipe})
        self.has_begun = True
        self.event("episode-start", task=self._identity["task"])
        self._write_interim()

    def event(self, kind: str, **details: Any) -> None:
        """Note that something happened now."""
        self.folder.event(kind, **details)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Time a phase of the episode; a fault in it is recorded under the phase's name."""
        watch = Stopwatch()
        self.event(f"{name}-start")
        try:
            yield
        except HarborError as error:
            self.fault(error, name)
            raise
        finally:
            self._phases[name] = watch.stop()
            self.event(f"{name}-end", seconds=self._phases[name].seconds)

    def hide(self, secrets: Iterable[str]) -> None:
        """Keep further values out of every file from now on."""
        self._secrets |= frozenset(secrets)
        self.folder.redactor = Redactor(self._secrets)

    def parties(self, parties: dict[str, PartyRecord]) -> None:
        """Note what each party has asked of its model by now."""
        self._parties = parties

    def images(self, images: dict[str, str]) -> None:
        """Note the image id of each service."""
        self._images = images

    def warn(self, warnings: Sequence[str]) -> None:
        """Add warnings, also to a result that is finished already (trouble while tearing down)."""
        self._warnings += warnings
        if self.result is not None and warnings:
            together = (*self.result.warnings, *warnings)
            self._finish(self.result.model_copy(update={"warnings": together}))

    def step(self, result: StepResult) -> None:
        """Add a finished step; it is on disk when this returns."""
        self._steps.append(result)
        if result.fault is not None and self._fault is None:
            self._fault = result.fault
        self._write_interim()
        shown = {} if result.implicit else {"step": result.name}
        self.event("step-end", **shown, reward=result.reward, outcome=result.outcome)

    def fault(self, error: BaseException, phase: str) -> None:
        """Note what ended the episode; the first fault counts."""
        if self._fault is None:
            outcome = Outcome(error.outcome) if isinstance(error, HarborError) else _outcome(error)
            message = str(error) or type(error).__name__
            self._fault = Fault(outcome=outcome, phase=phase, message=message)

    def finish(self) -> EpisodeResult:
        """Apply the pass rule and write the final result; the same result if called again."""
        if self.result is not None:
            return self.result
        if not self.has_begun:
            self.begin()
        self._note_early_end()
        result = self._result(self._fault)
        self.event("episode-end", outcome=result.outcome, reward=result.reward)
        return self._finish(result)

    def abandon(self) -> None:
        """Take back the first result: the group was used, but no episode was played in it."""
        if self.has_begun:
            self.event("not-played")
            self.folder.remove_result()

    def _finish(self, result: EpisodeResult) -> EpisodeResult:
        self.result = self.folder.write_result(result)
        return self.result

    def _note_early_end(self) -> None:
        plan = self._plan
        asked = plan is not None and len(plan.steps) < len(plan.task.steps)
        if asked and plan and self._fault is None and not any(s.gate for s in self._steps):
            self._fault = Fault(
                outcome=Outcome.INTERRUPTED,
                phase="steps",
                message=f"stopped after step {plan.steps[-1].name} as asked; there is no reward",
            )

    def _write_interim(self) -> None:
        text = "the run ended before this episode did"
        fault = Fault(outcome=Outcome.INTERRUPTED, phase="steps", message=text)
        self.folder.write_result(self._result(self._fault or fault), interim=True)

    def _declared(self) -> tuple[Step, ...]:
        return self._plan.task.steps if self._plan is not None else ()

    def _result(self, fault: Fault | None) -> EpisodeResult:
        plan = self._plan
        strategy = plan.task.reward_strategy if plan is not None else "mean"
        threshold = plan.recipe.pass_rule.threshold if plan is not None else 1.0
        steps = [*self._steps, *self._unreached(fault)]
        scores = [_score(step) for step in steps]
        graded = fault is None
        reward = add_up(scores, strategy) if graded else None
        if graded and reward is None and plan is not None:
            fault = _ambiguous(steps)
        ruling = rule(
            steps,
            reward=reward,
            strategy=strategy,
            threshold=threshold,
            fault=fault,
            unreached_reason=_unreached_reason(steps, fault),
        )
        known = fault is None or fault.outcome in _STOPS_HARBOR_TOO
        return EpisodeResult(
            **self._identity,
            episode=self.folder.name,
            **(_task_identity(plan.task) if plan is not None else {}),
            outcome=ruling.outcome,
            reward=reward,
            reward_as_harbor=add_up_as_harbor(scores, strategy) if known else None,
            rewards=add_up_keys(scores, strategy) if graded else {},
            steps=ruling.steps,
            steps_total=len(steps),
            reward_strategy=strategy,
            threshold=threshold,
            fault=fault,
            agent=_identity(plan.agent, plan.recipe) if plan is not None else None,
            tokens=_sum_tokens(steps),
            cost_usd=_sum_costs(steps),
            parties=self._parties,
            images=self._images,
            recipe=self._recipe(),
            host_names_asked=plan.host_names if plan is not None else (),
            phases=self._phases,
            ran=self._watch.stop(),
            warnings=tuple(dict.fromkeys(self._warnings)),
            verdict=ruling.verdict,
            verdict_reason=ruling.reason,
        )

    def _recipe(self) -> tuple[RecipeValue, ...]:
        rows = self._plan.recipe.rows() if self._plan is not None else ()
        return tuple(
            RecipeValue(key=key, value=value, source=source) for key, value, source in rows
        )

    def _unreached(self, fault: Fault | None) -> list[StepResult]:
        reward = None if fault is not None else 0.0
        return [
            StepResult(name=step.name, index=step.index, implicit=step.implicit, reward=reward)
            for step in self._declared()[len(self._steps) :]
        ]


def _outcome(error: BaseException) -> Outcome:
    stopped = isinstance(error, KeyboardInterrupt | SystemExit)
    return Outcome.INTERRUPTED if stopped else Outcome.INTERNAL


def _identity(agent: Agent, recipe: Recipe) -> AgentIdentity:
    return AgentIdentity(
        name=agent.name, version=agent.version, model=agent.model, effort=recipe.agent.effort
    )


def _task_identity(task: Task) -> dict[str, Any]:
    return {
        "task_digest": task.digest,
        "part_digests": dict(task.part_digests),
        "network_mode": task.config.environment.network_mode,
    }


def _score(step: StepResult) -> StepScore:
    grade = step.grade
    return StepScore(
        graded=grade is not None and bool(grade.rewards),
        reached=step.ran is not None,
        rewards=grade.rewards if grade is not None else None,
        scalar=step.reward,
    )


def _ambiguous(steps: Sequence[StepResult]) -> Fault:
    unclear = [step for step in steps if step.ran is not None and step.reward is None]
    notes = [note for step in unclear for note in step.warnings if "which one counts" in note]
    return Fault(
        outcome=Outcome.REWARD_UNREADABLE,
        phase="verify",
        message="; ".join(notes) or "a step that decides has no single reward",
    )


def _unreached_reason(steps: Sequence[StepResult], fault: Fault | None) -> str:
    gate = next((step for step in steps if step.gate), None)
    if gate is not None:
        return f"not reached: {gate.gate} in step {gate.name}"
    return f"not reached: {fault.outcome}: {fault.message}" if fault is not None else "not reached"


def _sum_tokens(steps: Sequence[StepResult]) -> int | None:
    known = [
        count
        for step in steps
        if step.turn is not None
        for count in (step.turn.input_tokens, step.turn.output_tokens)
        if count is not None
    ]
    return sum(known) if known else None


def _sum_costs(steps: Sequence[StepResult]) -> float | None:
    known = [s.turn.cost_usd for s in steps if s.turn is not None and s.turn.cost_usd is not None]
    return sum(known) if known else None
