"""Removal of groups through the engine's API: one's own, dead owners', or all.

Kills, then removes, in parallel; every call ends by the deadline; nothing is raised, what could
not be done is said with the command that finishes it by hand (B07, B08, B10). Run as a module it
serves the watch: it removes the projects it is given, and looks again for what an engine that was
still at work may have made since.
"""

from __future__ import annotations

import contextlib
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from pytest_harbor.errors import SandboxError
from pytest_harbor.sandbox import registry
from pytest_harbor.sandbox.engine import Engine
from pytest_harbor.sandbox.labels import KEEP, OWNER_PID, PROJECT, Owner, birth_of, has_expired
from pytest_harbor.sandbox.state import State, try_lock
from pytest_harbor.task.timeouts import Deadline

_SWEEP_SECONDS: Final = 60.0
_SECOND_LOOKS: Final = (1.5, 4.0)
"""Seconds before looking again: what the engine had begun for a killed Compose appears late."""

_NETWORK_BUSY_TRIES: Final = 5
_GROUPS_AT_ONCE: Final = 4


@dataclass(frozen=True)
class Swept:
    """What a removal did."""

    containers: int = 0
    networks: int = 0
    volumes: int = 0
    warnings: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    """The Compose projects that it was of."""

    @property
    def found(self) -> int:
        """How many things there were, removed or not."""
        return self.containers + self.networks + self.volumes

    def __str__(self) -> str:
        return f"{self.containers} containers, {self.networks} networks, {self.volumes} volumes"


def removal_command(project: str) -> str:
    """What to type to remove a group by hand; needs no file of it."""
    return f"docker compose -p {project} down --volumes --timeout 0"


def remove_project(engine: Engine, project: str, deadline: Deadline) -> Swept:
    """Remove everything of one Compose project."""
    chosen = {"label": f"{PROJECT}={project}"}
    swept = _remove(engine, chosen, lambda _: True, deadline)
    if swept.warnings:
        by_hand = f"To finish by hand: {removal_command(project)}"
        return replace(swept, warnings=(*swept.warnings, by_hand))
    return swept


def sweep_dead_owners(engine: Engine) -> Swept:
    """Remove what processes that no longer live have left, on this host or long ago anywhere."""
    is_local = engine.facts.is_local
    kept = set(_kept(engine))

    def is_left(labels: dict[str, str]) -> bool:
        owner = Owner.of_labels(labels)
        if owner is None:
            return False
        if has_expired(labels):
            return True
        # the label is seen by all users of an engine, the note only by its author
        stays = KEEP in labels or labels.get(PROJECT) in kept
        return owner.is_dead(same_machine=is_local) and not stays

    swept = _remove(engine, {"label": OWNER_PID}, is_left, Deadline.after(_SWEEP_SECONDS, "sweep"))
    _forget_dead_runs(engine)
    return swept


def clean(engine: Engine, *, everything: bool = False, images: bool = False) -> Swept:
    """Remove what was left behind; with ``everything``, also what living runs still use.

    Groups that were kept on purpose go in both cases. ``images`` removes the built ones, too, and
    installed tools.
    """
    is_local = engine.facts.is_local

    def is_chosen(labels: dict[str, str]) -> bool:
        owner = Owner.of_labels(labels)
        if owner is None:
            return False
        return everything or has_expired(labels) or owner.is_dead(same_machine=is_local)

    deadline = Deadline.after(5 * _SWEEP_SECONDS, "cleaning")
    swept = _remove(engine, {"label": OWNER_PID}, is_chosen, deadline)
    _forget_dead_runs(engine)
    if images:
        _remove_images(engine)
    return swept


def keep(engine: Engine, project: str) -> None:
    """Note that a group stays when its owner ends, until :func:`clean` or its expiry."""
    _kept_file(engine, project).touch()


def _remove(
    engine: Engine,
    filters: dict[str, Any],
    chosen: Callable[[dict[str, str]], bool],
    deadline: Deadline,
) -> Swept:
    """Remove what carries a label and is chosen by its labels: containers first, then the rest."""
    warnings: list[str] = []
    counts = {"container": 0, "network": 0, "volume": 0}
    groups: set[str] = set()
    try:
        api: Any = engine.connect(timeout=_left(deadline))
    except SandboxError as fault:
        return Swept(warnings=(str(fault),))
    with contextlib.closing(api):
        for kind, listed in (
            ("container", lambda: api.containers(all=True, filters=filters)),
            ("network", lambda: api.networks(filters=filters)),
            ("volume", lambda: api.volumes(filters=filters)["Volumes"] or []),
        ):
            api.timeout = _left(deadline)
            try:
                entries: list[dict[str, Any]] = listed()  # type: ignore[no-untyped-call]
            except Exception as fault:  # whatever it is, cleaning goes on and says so
                warnings.append(f"{kind}s could not be listed: {_words(fault)}")
                continue
            entries = [entry for entry in entries if chosen(entry.get("Labels") or {})]
            names = [entry["Name"] if kind == "volume" else entry["Id"] for entry in entries]
            groups.update(entry["Labels"].get(PROJECT, "") for entry in entries)
            counts[kind] = len(names)
            work = [
                (f"{kind} {name[:12]}", _remover(engine, kind, name, deadline)) for name in names
            ]
            warnings += _in_parallel(work, deadline)
    of = tuple(sorted(filter(None, groups)))
    return Swept(counts["container"], counts["network"], counts["volume"], tuple(warnings), of)


def _remover(engine: Engine, kind: str, name: str, deadline: Deadline) -> Callable[[], None]:
    def remove() -> None:
        from docker.errors import APIError

        api = engine.api
        tries = _NETWORK_BUSY_TRIES if kind == "network" else 1
        for attempt in range(tries):
            try:
                if kind == "container":
                    # force kills and waits; v takes the anonymous volumes along
                    api.remove_container(name, force=True, v=True)
                elif kind == "network":
                    api.remove_network(name)
                else:
                    api.remove_volume(name, force=True)
            except APIError as fault:
                if fault.status_code == 404 or "already in progress" in str(fault):
                    return
                if attempt + 1 == tries or deadline.expired:
                    raise
                time.sleep(0.2)  # an endpoint that is still being taken off
            else:
                return

    return remove


def _in_parallel(
    work: list[tuple[str, Callable[[], None]]], deadline: Deadline, width: int = 8
) -> list[str]:
    """Do all of it by the deadline, some at once; returns what went wrong.

    Threads that hang are left behind: they are daemons and hold nobody up.
    """
    faults: dict[str, str] = {}
    waiting = iter(work)
    lock = threading.Lock()

    def worker() -> None:
        while True:
            with lock:
                what, action = next(waiting, ("", None))
                if action is None:
                    return
                faults[what] = f"{what} was not removed in time ({deadline.what})"
            try:
                action()
            except Exception as fault:  # cleaning never raises
                faults[what] = f"{what} could not be removed: {_words(fault)}"
            else:
                del faults[what]

    others = [
        threading.Thread(target=worker, daemon=True, name="pytest-harbor-removal")
        for _ in work[:width]
    ]
    for thread in others:
        thread.start()
    for thread in others:
        thread.join(_left(deadline))
    left = [f"{what} was not reached in time" for what, _ in waiting]
    return [*list(faults.values()), *left]


def _left(deadline: Deadline) -> float:
    """Seconds for the next call; a moment even when the time is up, so that it can say so."""
    left = deadline.remaining()
    return _SWEEP_SECONDS if left is None else max(left, 0.2)


def _words(fault: Exception) -> str:
    return str(getattr(fault, "explanation", None) or fault)


def _kept_file(engine: Engine, project: str) -> Path:
    return State.of(engine.environment).folder("kept") / project


def _kept(engine: Engine) -> Iterator[str]:
    yield from (file.name for file in State.of(engine.environment).folder("kept").iterdir())


def _forget_dead_runs(engine: Engine) -> None:
    """Remove registrations that no watch looks after and whose groups are gone, and documents."""
    from docker.errors import DockerException

    state = State.of(engine.environment)
    with (
        contextlib.suppress(OSError, DockerException, SandboxError),
        # with the gate held, no run is just about to begin
        registry.gate(state),
    ):
        for run in state.folder("runs").iterdir():
            with (run / "watch.lock").open("wb") as lock:
                if try_lock(lock.fileno()) and not any(_has(engine, run / "projects")):
                    shutil.rmtree(run, ignore_errors=True)
        for project in set(_kept(engine)) - set(_has(engine, state.folder("kept"))):
            _kept_file(engine, project).unlink(missing_ok=True)
        for folder in state.folder("tmp").glob("compose-*-*"):
            if birth_of(int(folder.name.split("-")[1])) is None:
                shutil.rmtree(folder, ignore_errors=True)


def _has(engine: Engine, folder: Path) -> Iterator[str]:
    """Those of a folder's projects that have containers."""
    for name in [file.name for file in folder.iterdir()] if folder.is_dir() else []:
        if engine.api.containers(all=True, quiet=True, filters={"label": f"{PROJECT}={name}"}):
            yield name


def _remove_images(engine: Engine) -> None:
    from docker.errors import APIError

    from pytest_harbor.sandbox.images import DIGEST_LABEL
    from pytest_harbor.sandbox.tools import remove_tools

    for image in engine.api.images(filters={"label": DIGEST_LABEL}):
        with contextlib.suppress(APIError):
            engine.api.remove_image(image["Id"], force=True)
    remove_tools(engine)


def _serve_watch(projects: Iterable[str]) -> int:
    """Remove groups of dead owners for good; 0 when nothing of them is left."""
    import os
    from concurrent.futures import ThreadPoolExecutor

    engine = Engine(os.environ)
    wanted = list(projects)
    warnings: list[str] = []

    def remove(project: str) -> Swept:
        deadline = Deadline.after(_SWEEP_SECONDS, "removal by the janitor")
        return remove_project(engine, project, deadline)

    with ThreadPoolExecutor(_GROUPS_AT_ONCE) as pool:
        for pause in (0.0, *_SECOND_LOOKS):
            time.sleep(pause)
            looks = list(pool.map(remove, wanted))
            warnings = [warning for swept in looks for warning in swept.warnings]
            found = [f"{p}: {swept}" for p, swept in zip(wanted, looks, strict=True) if swept.found]
            print(*warnings, *found, sep="\n", flush=True)  # noqa: T201 (the janitor's log)
            if pause and not found:
                break
    return 1 if warnings else 0


if __name__ == "__main__":
    sys.exit(_serve_watch(sys.argv[1:]))
