"""Grading one step: the verifier gets ground of its own, runs under its own budget, and its
result is taken when it exits (harbor-format 5).

What happens when test.sh fails, hangs or writes nonsense is all in this file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pytest_harbor.episode.budgets import verifier_budget
from pytest_harbor.episode.folder import StepFolder
from pytest_harbor.episode.logs import get_logs
from pytest_harbor.episode.record import Stopwatch
from pytest_harbor.episode.result import GradeRecord
from pytest_harbor.episode.rewards import read_rewards
from pytest_harbor.episode.stage import Stage, make_workdir
from pytest_harbor.errors import SandboxError, VerifierError
from pytest_harbor.sandbox.container import Ran
from pytest_harbor.sandbox.uploads import run_script, tree_entries
from pytest_harbor.task.model import Step
from pytest_harbor.task.timeouts import Deadline

TESTS = "/tests"
RESULTS = "/logs/verifier"
OUTPUT = "test-stdout.txt"
_REWARD_FILES = ("reward.json", "reward.txt")
_TAIL = 2000
_SWEEP_SECONDS = 30.0


@dataclass(frozen=True)
class Graded:
    """What grading found."""

    record: GradeRecord
    scalar: float | None = None
    warnings: tuple[str, ...] = ()
    tampering: tuple[str, ...] = ()
    error: VerifierError | None = None
    """Why there is no usable reward, with exit status, files and the end of the output (B37)."""


def grade(stage: Stage, step: Step, folder: StepFolder) -> Graded:
    """Run the step's test.sh and read its reward.

    The budget covers test.sh alone, not the laying of files (B21).

    Raises:
        SandboxError: ``main`` died, or what test.sh left running could not be killed.
    """
    main = stage.main
    owner = main.user(step.verifier_user)
    tests = [
        entry
        for tree in step.test_trees
        for entry in tree_entries(tree, TESTS, owner, scripts={step.test_script})
    ]
    tampering = stage.ground.before_grading(owner, entries=tests)
    warnings = make_workdir(main)
    budget = verifier_budget(step, stage.plan.recipe)
    limit = Deadline.after(budget, f"verifier budget of step {step.name}")
    watch = Stopwatch()
    try:
        ran = _run(stage, step, limit)
    except VerifierError as error:
        record = GradeRecord(ran=watch.stop(), budget=str(budget))
        return Graded(record, warnings=warnings, tampering=tampering, error=error)
    interval = watch.stop()
    if ran.timed_out:
        stage.processes.sweep(Deadline.after(_SWEEP_SECONDS, "killing a verifier out of time"))
    warnings += get_logs(main, RESULTS, folder.verifier)
    stage.record.folder.redact(folder.verifier)
    record = GradeRecord(
        ran=interval,
        exit_code=ran.exit_code,
        budget=str(budget),
        log=_log_path(stage, folder),
    )
    try:
        read = _read(stage, folder, ran, record)
    except VerifierError as error:
        told = VerifierError(f"{error}\n{_story(ran, folder.verifier)}", outcome=error.outcome)
        return Graded(record, warnings=warnings, tampering=tampering, error=told)
    return replace(read, warnings=(*warnings, *read.warnings), tampering=tampering)


def _run(stage: Stage, step: Step, limit: Deadline) -> Ran:
    try:
        return stage.ground.run_tests(
            run_script(f"{TESTS}/{step.test_script}"),
            log=f"{RESULTS}/{OUTPUT}",
            user=step.verifier_user,
            env=stage.fill(stage.plan.verifier_envs[step.index]),
            deadline=limit,
        )
    except SandboxError as error:
        if error.outcome != "setup_failed":
            raise
        # an agent that took the shell away has not broken the infrastructure
        raise VerifierError(f"test.sh could not be started: {error}") from error


def _read(
    stage: Stage,
    folder: StepFolder,
    ran: Ran,
    record: GradeRecord,
) -> Graded:
    recipe = stage.plan.recipe
    if ran.timed_out:
        raise VerifierError(
            f"test.sh ran out of time: {ran.limit}",
            outcome="verifier_timeout",
        )
    reading = read_rewards(_reward_files(folder.verifier), key=recipe.verifier.reward_key)
    warnings = reading.warnings
    if ran.exit_code != 0:
        if recipe.verifier.exit_fatal:
            raise VerifierError(
                f"test.sh exited with {ran.exit_code} ({recipe.source('verifier.exit_fatal')}: "
                "verifier.exit_fatal)"
            )
        warnings += (f"test.sh exited with {ran.exit_code}; the reward that it wrote counts",)
    record = record.model_copy(
        update={"rewards": dict(reading.rewards), "reward_file": reading.file}
    )
    return Graded(record, reading.scalar, warnings)


def _reward_files(folder: Path) -> Mapping[str, bytes]:
    """The reward files with their bodies; of others only the names, for the message."""
    home = folder.resolve()
    return {
        path.name: path.read_bytes() if path.name in _REWARD_FILES else b""
        for path in sorted(folder.iterdir())
        if path.is_file() and path.resolve().is_relative_to(home)
    }


def _log_path(stage: Stage, folder: StepFolder) -> str | None:
    path = folder.verifier / OUTPUT
    return stage.record.folder.relative(path) if path.is_file() else None


def _story(ran: Ran, folder: Path) -> str:
    """What an author needs to see of a failed grading (B37)."""
    names = ", ".join(sorted(path.name for path in folder.iterdir())) or "nothing"
    path = folder / OUTPUT
    said = path.read_text(encoding="utf-8", errors="replace").strip() if path.is_file() else ""
    tail = said[-_TAIL:] or "(no output)"
    status = "none, it was still running" if ran.timed_out else ran.exit_code
    return f"exit status: {status}; {RESULTS} holds: {names}; its output ends:\n{tail}"
