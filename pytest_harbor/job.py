"""One run of pytest as this plugin sees it: its folder, its name, the engine that it uses.

The controller decides on the name; workers are told, so that all write into one folder.
"""

from __future__ import annotations

import signal
import uuid
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_harbor.options import given

if TYPE_CHECKING:
    from pytest_harbor.episode.result import EpisodeResult
    from pytest_harbor.sandbox.engine import Engine

_INPUT = "harbor_job"


@dataclass
class Job:
    """A run: where its episodes go and under which name Docker objects are labelled."""

    folder: Path
    run_id: str
    is_controller: bool
    started_at: datetime = field(default_factory=datetime.now)
    episodes: dict[str, str] = field(default_factory=dict)
    """Node id → name of the episode's folder, as reports came in."""

    @cached_property
    def engine(self) -> Engine:
        """The Docker engine, found when it is first needed; freed of what dead runs left."""
        from pytest_harbor.sandbox.engine import Engine
        from pytest_harbor.sandbox.janitor import sweep_dead_owners

        engine = Engine()
        sweep_dead_owners(engine)
        return engine

    def close(self) -> None:
        """Let go of the engine, if it was used."""
        if "engine" in vars(self):
            self.engine.close()

    def to_worker(self) -> dict[str, str]:
        """What a worker needs to know, as plain data."""
        begun = self.started_at.isoformat()
        return {"folder": str(self.folder), "run_id": self.run_id, "started_at": begun}

    def result(self, name: str) -> EpisodeResult | None:
        """The result in an episode's folder, if there is one."""
        from pytest_harbor.episode.result import EpisodeResult

        return EpisodeResult.read(self.folder / name)

    def results(self) -> dict[str, EpisodeResult]:
        """The results of all episodes of this run, by node id, in the order of node ids."""
        found = {node: self.result(name) for node, name in sorted(self.episodes.items())}
        return {node: result for node, result in found.items() if result is not None}

    def began_here(self, result: EpisodeResult) -> bool:
        """Whether an episode is of this run, and not of an earlier one in the same folder."""
        return result.ran.started_at.timestamp() >= self.started_at.timestamp()

    def adopt_stopped(self) -> None:
        """Count in the episodes of this run that were stopped before pytest could report them."""
        reported = set(self.episodes.values())
        for name in (path.parent.name for path in self.folder.glob("*/result.json")):
            result = self.result(name) if name not in reported else None
            if result is not None and self.began_here(result):
                self.episodes.setdefault(result.key, name)


JOB = pytest.StashKey[Job]()


def open_job(config: pytest.Config) -> Job:
    """Make the job of this process, from the controller's word in a worker."""
    told: dict[str, str] | None = getattr(config, "workerinput", {}).get(_INPUT)
    if told is not None:
        begun = datetime.fromisoformat(told["started_at"])
        return Job(Path(told["folder"]), told["run_id"], is_controller=False, started_at=begun)
    jobs, name = given(config, "jobs-dir"), given(config, "job-name")
    place = Path(jobs.value) if jobs else config.rootpath / "jobs"
    now, run_id = datetime.now(), uuid.uuid4().hex[:12]
    # runs that start in the same second must not write into one folder
    shown = name.value if name else f"{now:%Y-%m-%d__%H-%M-%S}__{run_id[:4]}"
    return Job(place / shown, run_id, is_controller=True, started_at=now)


def stop_on_sigterm(config: pytest.Config) -> None:
    """Make SIGTERM end the run as Ctrl-C does, so that groups are closed (B02).

    Only where nobody else has a say: a handler of the host program stays.
    """

    def stop(_signal: int, _frame: object) -> None:
        raise KeyboardInterrupt("SIGTERM")

    try:
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, stop)
            config.add_cleanup(_restore_sigterm)
    except ValueError:  # not the main thread
        return


def _restore_sigterm() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def tell_worker(config: pytest.Config, node: Any) -> None:
    """Give an xdist worker what :func:`open_job` looks for."""
    node.workerinput[_INPUT] = config.stash[JOB].to_worker()
