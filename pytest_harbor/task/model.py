"""A task as the rest of the house sees it: immutable, with at least one step.

How it is read from disk is in :mod:`pytest_harbor.task.load`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from pytest_harbor.task.digest import part_digests, task_digest
from pytest_harbor.task.schema import Artifact, CollectHook, Healthcheck, McpServer, TaskConfig
from pytest_harbor.task.timeouts import Declared


@dataclass(frozen=True)
class Step:
    """One step; a single-step task has one, named ``task`` and ``implicit``.

    Values that a step may set and a task too are already settled here, the step's first.
    """

    name: str
    index: int
    """From 0."""
    implicit: bool
    instruction: str
    """Without its canary, otherwise verbatim."""
    min_reward: float | Mapping[str, float] | None
    """The gate: of the key ``reward``, or by key."""
    healthcheck: Healthcheck | None
    agent_user: str | int | None
    """None: the user that the image names."""
    verifier_user: str | int | None
    verifier_env: Mapping[str, str]
    """The task's table under the step's; templates not yet resolved."""
    agent_timeout: Declared
    verifier_timeout: Declared
    collect: tuple[CollectHook, ...]
    """The task's hooks first, then the step's."""
    artifacts: tuple[Artifact, ...]
    """The task's first, then the step's."""
    test_trees: tuple[Path, ...]
    """Folders that are laid over each other in ``/tests``, in this order."""
    test_script: str
    """Name of the entry point in the laid tree."""
    workdir: Path | None
    """Folder whose contents go into the working directory before the step."""
    has_setup_script: bool
    """Whether ``workdir`` holds a ``setup.sh``."""
    solution: Path | None
    """Folder for the oracle."""
    separate_verifier: bool = False
    """Whether this step is to be graded in a container of its own."""


@dataclass(frozen=True)
class Task:
    """A task folder that was found in order. ``steps`` is never empty."""

    folder: Path
    name: str
    """The name of the folder, which filters and run folders use."""
    display_name: str
    """``[task].name``, else the folder's name."""
    config: TaskConfig
    steps: tuple[Step, ...]
    warnings: tuple[str, ...]
    environment_dir: Path | None
    dockerfile: Path | None
    compose_file: Path | None
    mcp_servers: tuple[McpServer, ...]
    """By name, each once: of two with one name the later counts."""

    @property
    def declares_steps(self) -> bool:
        """Whether the file has ``[[steps]]``; only layouts on disk differ by it."""
        return not self.steps[0].implicit

    @property
    def reward_strategy(self) -> Literal["mean", "final"]:
        """How step rewards become the task's (harbor-format 3.4)."""
        return self.config.multi_step_reward_strategy or "mean"

    @cached_property
    def digest(self) -> str:
        """Digest of the whole folder, computed at first use; see :func:`task_digest`."""
        return task_digest(self.folder)

    @cached_property
    def part_digests(self) -> Mapping[str, str]:
        """Digests of its parts, computed at first use; see :func:`part_digests`."""
        return part_digests(self.folder)
