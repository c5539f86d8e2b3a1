"""Parts of the format that load but cannot be run yet, each by its name in ``task.toml``.

An episode asks :func:`unsupported_features` before anything starts and refuses the task: it is
never run in a lesser way than it asks for.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pytest_harbor.task.model import Task
from pytest_harbor.task.schema import NetworkRules, StepConfig, TaskConfig, VerifierConfig


def unsupported_features(task: Task) -> tuple[str, ...]:
    """Name every feature that the task uses and this release cannot run, with where it asks."""
    return tuple(dict.fromkeys(_unsupported(task)))


def _unsupported(task: Task) -> Iterator[str]:
    config, environment = task.config, task.config.environment
    if environment.os != "linux":
        yield f'Windows containers ([environment] os = "{environment.os}")'
    if environment.gpus:
        yield f"GPUs ([environment] gpus = {environment.gpus})"
    if environment.tpu is not None:
        yield "TPUs ([environment.tpu])"
    if environment.skills_dir is not None:
        yield f"skills ([environment] skills_dir = {environment.skills_dir!r})"
    yield from _network("[environment]", environment)
    yield from _network("[agent]", config.agent)
    yield from _network("[verifier]", config.verifier)
    for step in config.steps:
        yield from _network(f"[[steps]] {step.name} [agent]", step.agent)
        yield from _network(f"[[steps]] {step.name} [verifier]", step.verifier)
    for found in task.steps:
        if found.separate_verifier:
            place = "[verifier]" if found.implicit else f"[[steps]] {found.name}"
            yield f"a verifier in a container of its own ({place})"
    trajectory = _prior_session(task)
    if trajectory.exists():
        yield f"a prior session ({trajectory.relative_to(task.folder).as_posix()})"


def _network(place: str, rules: NetworkRules) -> Iterator[str]:
    if rules.network_mode not in (None, "public"):
        yield f'a restricted network ({place} network_mode = "{rules.network_mode}")'


def _prior_session(task: Task) -> Path:
    """Return where a session to continue would lie: with the first step (harbor-format 1)."""
    home = task.folder / "steps" / task.steps[0].name if task.declares_steps else task.folder
    return home / "trajectory.json"


def is_separate(config: TaskConfig, step: StepConfig) -> bool:
    """Whether a step is graded in a container of its own (harbor-format 2.9)."""
    asked = _asks_separate(step.verifier)
    return bool(_asks_separate(config.verifier) if asked is None else asked)


def _asks_separate(verifier: VerifierConfig) -> bool | None:
    """What one table asks for; None where it says nothing. A container implies "separate"."""
    if verifier.environment_mode is not None:
        return verifier.environment_mode == "separate"
    return True if verifier.environment is not None else None


def bundles_tests(config: TaskConfig, step: StepConfig, step_tests: Path, tests: Path) -> bool:
    """Whether the image of a separate verifier brings the tests along (harbor-format 2.9)."""
    if not is_separate(config, step):
        return False
    tables = (step.verifier.environment, config.verifier.environment)
    if any(table is not None and table.docker_image for table in tables):
        return True
    names = ("Dockerfile", "docker-compose.yaml")
    return any((folder / name).is_file() for folder in (step_tests, tests) for name in names)
