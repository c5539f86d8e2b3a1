"""A task folder to a :class:`Task`, or one error that lists all that is wrong with it.

The order is that of harbor-format 1: the file, the environment, then per step instruction, tests,
solution and working directory. The instruction at the top of a task that declares steps is never
read: there it is the simulated user's secret (B91). Nothing is ever written to the folder.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pytest_harbor.errors import TaskError
from pytest_harbor.task.config import parse_task_toml
from pytest_harbor.task.features import bundles_tests, is_separate, unsupported_features
from pytest_harbor.task.files import read_bytes, read_instruction
from pytest_harbor.task.findings import Findings, exists
from pytest_harbor.task.model import Step, Task
from pytest_harbor.task.oddities import COMPOSE_FILE, note_oddities
from pytest_harbor.task.schema import StepConfig, TaskConfig
from pytest_harbor.task.timeouts import NOT_SET, Declared

__all__ = ["IMPLICIT_STEP", "Step", "Task", "load_task", "unsupported_features"]

IMPLICIT_STEP = "task"
"""Name of the one step of a task that declares none."""


def load_task(folder: Path) -> Task:
    """Load the task in ``folder``.

    Raises TaskError naming each file that is wrong and what to do about it; where several things
    are wrong, all that were found are in the one message, a line each.
    """
    folder = Path(os.path.abspath(folder))  # noqa: PTH100 (not resolve: a link keeps its name)
    try:
        return _load(folder)
    except OSError as error:  # a folder that may not be searched, a file that has just gone
        raise TaskError(
            f"{error.filename or folder} cannot be read: {error.strerror}; see who may read it"
        ) from error


def _load(folder: Path) -> Task:
    found = Findings(folder)
    config = _config(found)
    environment = _environment(found, config)
    steps = tuple(_steps(found, config))
    found.raise_if_any()
    note_oddities(found, config, environment.folder)
    return Task(
        folder=folder,
        name=folder.name,
        display_name=config.task.name if config.task else folder.name,
        config=config,
        steps=steps,
        warnings=tuple(dict.fromkeys(found.warnings)),
        environment_dir=environment.folder,
        dockerfile=environment.dockerfile,
        compose_file=environment.compose_file,
        mcp_servers=tuple({s.name: s for s in config.environment.mcp_servers}.values()),
    )


def _config(found: Findings) -> TaskConfig:
    """Read the one file without which nothing else can be judged."""
    if not found.task.is_dir():
        raise TaskError(f"{found.task} is not a folder; name the folder of a task")
    path = found.task / "task.toml"
    if not exists(path):
        raise TaskError(f"{path} is missing; a task needs one, if only an empty one")
    try:
        parsed = parse_task_toml(read_bytes(path, found.task), path.name)
    except TaskError as error:
        found.problems += str(error).splitlines()
        found.raise_if_any()
        raise
    found.warnings += parsed.warnings
    return parsed.config


@dataclass(frozen=True)
class _Environment:
    folder: Path | None = None
    dockerfile: Path | None = None
    compose_file: Path | None = None


def _environment(found: Findings, config: TaskConfig) -> _Environment:
    """Check ``environment/``, which may be absent where a prebuilt image stands in for it."""
    path, image = found.task / "environment", config.environment.docker_image
    remedy = "add it, or name a prebuilt image as docker_image under [environment] in task.toml"
    folder = found.folder(path)
    if folder is None:
        if image is None and not exists(path):
            found.missing(path / "Dockerfile", remedy)
        return _Environment()
    dockerfile = found.file(folder / "Dockerfile")
    compose = found.file(folder / COMPOSE_FILE)
    if not (dockerfile or compose or image or exists(folder / "Dockerfile")):
        found.missing(folder / "Dockerfile", remedy)
    return _Environment(folder, dockerfile, compose)


def _steps(found: Findings, config: TaskConfig) -> Iterator[Step]:
    if not config.steps:
        yield _step(found, config, StepConfig(name=IMPLICIT_STEP), 0, found.task)
    for index, declared in enumerate(config.steps):
        home = found.task / "steps" / declared.name
        if not exists(home):
            found.missing(home, "add it with an instruction.md, or correct the name in [[steps]]")
        elif found.folder(home):
            yield _step(found, config, declared, index, home)


def _step(found: Findings, config: TaskConfig, step: StepConfig, index: int, home: Path) -> Step:
    """Settle one step: its own values, else the task's; then what lies in its folder."""
    implicit = home == found.task
    agent, verifier = step.agent, step.verifier
    workdir = None if implicit else found.folder(home / "workdir")
    if workdir is not None:
        found.tree(workdir, harborignore=False)
    trees, script = _tests(found, config, step, home)
    return Step(
        name=step.name,
        index=index,
        implicit=implicit,
        instruction=_instruction(found, home / "instruction.md"),
        min_reward=step.min_reward,
        healthcheck=step.healthcheck,
        agent_user=config.agent.user if agent.user is None else agent.user,
        verifier_user=config.verifier.user if verifier.user is None else verifier.user,
        verifier_env={**config.verifier.env, **verifier.env},
        agent_timeout=_declared("agent", step, agent.timeout_sec, config.agent.timeout_sec),
        verifier_timeout=_declared(
            "verifier", step, verifier.timeout_sec, config.verifier.timeout_sec
        ),
        collect=config.verifier.collect + verifier.collect,
        artifacts=config.artifacts + step.artifacts,
        test_trees=trees,
        test_script=script,
        workdir=workdir,
        has_setup_script=bool(workdir and found.script(workdir / "setup.sh")),
        solution=_solution(found, home),
        separate_verifier=is_separate(config, step),
    )


def _instruction(found: Findings, path: Path) -> str:
    if not exists(path):
        found.missing(path, "write there what the agent shall do")
        return ""
    return found.attempt(lambda: read_instruction(path, found.task)) or ""


def _tests(
    found: Findings, config: TaskConfig, step: StepConfig, home: Path
) -> tuple[tuple[Path, ...], str]:
    """Return the trees for ``/tests``, in their order, and the script's name (5.1, step 1)."""
    script = "test.bat" if config.environment.os == "windows" else "test.sh"
    places = tuple(dict.fromkeys((found.task / "tests", home / "tests")))
    trees = tuple(place for place in places if found.folder(place))
    bundled = bundles_tests(config, step, step_tests=places[-1], tests=places[0])
    unusable = any(exists(place) and place not in trees for place in places)  # noted already
    # The last tree lies on top, so its script is the one that runs.
    owner = next((tree for tree in reversed(trees) if exists(tree / script)), None)
    for tree in trees:
        found.tree(tree, required=script if tree == owner else None)
    if owner is not None:
        found.script(owner / script)
    elif not (bundled or unusable):
        found.missing(places[-1] / script, "add the script that grades the step")
    return trees, script


def _solution(found: Findings, home: Path) -> Path | None:
    """Return the step's own solution where that has a script, else the root's."""
    places = dict.fromkeys((home / "solution", found.task / "solution"))
    folders = [place for place in places if found.folder(place)]
    for folder in folders:
        if exists(folder / "solve.sh"):
            found.tree(folder, required="solve.sh")
            found.script(folder / "solve.sh")
            return folder
    return folders[0] if folders else None


def _declared(
    table: str, step: StepConfig, of_step: float | None, of_task: float | None
) -> Declared:
    """Note what the file says about a phase's time, and where (harbor-format 9.3)."""
    own = Declared(of_step, f"[[steps]] {step.name} [{table}] timeout_sec")
    return own.or_else(Declared(of_task, f"[{table}] timeout_sec")).or_else(NOT_SET)
