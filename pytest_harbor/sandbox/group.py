"""A Compose group: one task's containers, started together and removed together.

:meth:`Group.start` reads as the recipe: register, resolve, images, finish the document, up, wait.
What runs inside the containers is :mod:`~pytest_harbor.sandbox.container`'s business.
"""

from __future__ import annotations

import functools
import json
import re
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

from pytest_harbor.errors import SandboxError, TaskError
from pytest_harbor.sandbox import documents, janitor, readiness
from pytest_harbor.sandbox.compose import Completed, Compose, ComposeError, limit
from pytest_harbor.sandbox.container import Container
from pytest_harbor.sandbox.documents import Document
from pytest_harbor.sandbox.engine import Engine
from pytest_harbor.sandbox.images import Image, Images, Order, private_folder
from pytest_harbor.sandbox.labels import PROJECT, SERVICE, Owner
from pytest_harbor.sandbox.names import project_name, slug
from pytest_harbor.sandbox.network import Subnets, is_clash
from pytest_harbor.sandbox.processes import Processes
from pytest_harbor.sandbox.readiness import ServiceState
from pytest_harbor.sandbox.registry import Registry
from pytest_harbor.sandbox.scratch import Ground
from pytest_harbor.sandbox.state import State, write_json
from pytest_harbor.task.digest import environment_digest
from pytest_harbor.task.timeouts import Deadline

_POLL: Final = 0.05
"""Seconds between looks at what is not ready yet; its probes come every 100 ms."""
_TAIL: Final = 30
_LOG_LINES: Final = 2000
_OTHER_SUBNETS: Final = 4
_TIDY_SECONDS: Final = 30.0


class HostDoor(Protocol):
    """Something on this host that containers find at the address of their own bridge.

    Where it will be is not known before the group has its subnet, so values hold placeholders.
    """

    @property
    def mark(self) -> str:
        """What every placeholder holds."""

    def listen(self, address: str) -> Mapping[str, str]:
        """Be there at an address, which need not exist yet; what to write for each placeholder."""

    def unlisten(self) -> None:
        """Be nowhere: the addresses will not come to be."""


@dataclass(frozen=True)
class GroupSpec:
    """All that a group is made from, as plain values."""

    name: str
    """The task's, for the reader of ``docker ps``."""
    key: str
    """Together with the run, what no other group has: task path, parameters, attempt."""
    environment_dir: Path | None
    dockerfile: bool = False
    """Whether ``environment/Dockerfile`` exists."""
    compose_file: Path | None = None
    docker_image: str | None = None
    overlays: tuple[Path, ...] = ()
    """The operator's further Compose files, over the task's."""
    main_env: Mapping[str, str] = field(default_factory=dict)
    """What ``main`` gets in its environment, literally (B66)."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """All that Compose files may interpolate, beside the names of harbor-format 6.2 (B65)."""
    tools: Mapping[str, str] = field(default_factory=dict)
    """Volumes of the engine by where ``main`` finds them, read-only."""
    workdir: str | None = None
    cpus: float | None = None
    memory_mb: int | None = None
    force_build: bool = False
    build_slots: int = 2
    """How many images may be built at once on this host."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Further labels for everything that is created."""
    door: HostDoor | None = None
    """What containers may reach on this host, if anything."""


class Group:
    """The running Compose project of an episode."""

    def __init__(self, engine: Engine, spec: GroupSpec, owner: Owner) -> None:
        self.spec: Final = spec
        self.project: Final = project_name(spec.name, owner.run_id, spec.key)
        self.services: tuple[str, ...] = ()
        self.images: Mapping[str, str] = {}
        """Image id of every service (B78)."""
        self.warnings: tuple[str, ...] = ()
        """What the operator should know about the task's file."""
        self.host_address: str | None = None
        """Where ``main`` reaches this host, if the spec has a door and main can."""
        self._engine = engine
        self._owner = owner
        self._state = State.of(engine.environment)
        self._registry = Registry(self._state, owner, engine.environment)
        self._containers: dict[str, str] = {}
        self._handles: dict[str, Container] = {}
        self._document: Document = {}

    @functools.cached_property
    def _compose(self) -> Compose:
        return Compose(self._engine.environment)

    # -- life ------------------------------------------------------------------------------

    def start(self, deadline: Deadline) -> None:
        """Bring the group up and wait until every service is ready; clean up if that fails.

        Raises:
            TaskError: the Compose file is not valid, or asks for a variable that nobody sets;
                nothing was created.
            ImageError: an image could not be built or pulled.
            SandboxError: a service died or never became healthy, or the time was up.
        """
        self._registry.register(self.project)
        try:
            document = self._resolve(deadline)
            order = Order(
                self.spec.name, self._owner.run_id, self.spec.force_build, self.spec.build_slots
            )
            images = Images(self._engine, self._compose, self._state).ensure(
                document, order, deadline
            )
            must_end = documents.must_complete(document)
            patience = self._finish(document, images)
            self._up(document, deadline)
            self._wait(patience, must_end, deadline)
        except BaseException:
            self.close(Deadline.after(_TIDY_SECONDS, "removal of a group that did not start"))
            raise

    def close(self, deadline: Deadline) -> tuple[str, ...]:
        """Kill and remove everything of the group; returns what went wrong, never raises (B10)."""
        try:
            swept = janitor.remove_project(self._engine, self.project, deadline)
        except Exception as fault:  # teardown never changes a grade
            return (f"{self.project} could not be removed: {fault}. {self.removal_command}",)
        if not swept.warnings:
            self._registry.forget(self.project)
        self._containers.clear()
        self._handles.clear()
        return swept.warnings

    def keep(self) -> str:
        """Leave the group running when its owner ends; returns the command that removes it."""
        janitor.keep(self._engine, self.project)
        self._registry.forget(self.project)
        return self.removal_command

    @property
    def removal_command(self) -> str:
        """What to type to remove the group by hand."""
        return janitor.removal_command(self.project)

    # -- facts -----------------------------------------------------------------------------

    def container(self, service: str = "main") -> Container:
        """The container of a service, one object for all; ``main`` works where the task says."""
        if service not in self._handles:
            workdir = self.spec.workdir if service == "main" else None
            name = self.container_id(service)
            self._handles[service] = Container(self._engine, name, service, workdir)
        return self._handles[service]

    def processes(self) -> Processes:
        """Who lives in ``main``; each has a baseline of its own."""
        return Processes(self.container())

    def ground(self) -> Ground:
        """The folders of grading in ``main``."""
        return Ground(self.container())

    def container_id(self, service: str) -> str:
        """The id of a service's (first) container.

        Raises:
            SandboxError: there is none.
        """
        try:
            return self._containers[service]
        except KeyError:
            known = ", ".join(self._containers) or "none: the group is not running"
            raise SandboxError(
                f"{self.project} has no container of a service {service!r} (it has: {known})."
            ) from None

    def state(self, service: str) -> ServiceState:
        """What the engine says of a service's container now.

        Raises:
            SandboxError: the container is gone (outcome ``sandbox_died``).
        """
        return ServiceState.of(service, self._inspect(service))

    def logs(self, service: str, tail: int = _LOG_LINES) -> bytes:
        """The last lines that a service printed, both streams as they came."""
        from docker.errors import DockerException
        from requests.exceptions import RequestException

        try:
            return bytes(self._engine.api.logs(self.container_id(service), tail=tail))
        except (DockerException, RequestException) as fault:
            raise SandboxError(f"The logs of {service} cannot be read: {fault}") from fault

    def address(self, service: str) -> str | None:
        """The IP address by which this host reaches a service; None where it cannot."""
        if not self._engine.facts.is_local:
            return None
        networks = self._inspect(service)["NetworkSettings"]["Networks"] or {}
        addresses = (network.get("IPAddress") for network in networks.values())
        return next((str(address) for address in addresses if address), None)

    def _inspect(self, service: str) -> dict[str, Any]:
        from docker.errors import DockerException, NotFound
        from requests.exceptions import RequestException

        try:
            seen: dict[str, Any] = self._engine.api.inspect_container(self.container_id(service))
        except NotFound:
            raise SandboxError(
                f"The container of service {service} was removed from outside.",
                outcome="sandbox_died",
            ) from None
        except (DockerException, RequestException) as fault:
            raise SandboxError(f"The engine does not tell about {service}: {fault}") from fault
        return seen

    # -- start, step by step -------------------------------------------------------------------

    def _resolve(self, deadline: Deadline) -> Document:
        """Let Compose say what the task's files mean; without any, that is known."""
        spec = self.spec
        prebuilt = spec.docker_image is not None and not (spec.force_build and spec.dockerfile)
        image = spec.docker_image if prebuilt else None
        context = spec.environment_dir if spec.dockerfile and not prebuilt else None
        files = [*filter(None, [spec.compose_file]), *spec.overlays]
        if not files:
            document = documents.alone(self.project, image, context)
        else:
            with private_folder(self._state) as folder:
                base = folder / "base.json"
                write_json(base, documents.base(image, context))
                place = spec.environment_dir or folder
                variables = self._variables(files)
                document = self._asked(place, [base, *files], files, variables, deadline)
            self.warnings += documents.isolate(document)
            self.warnings += self._listed(document)
        main = document["services"]["main"]
        if not main.get("image") and not main.get("build"):
            raise TaskError(self._no_image())
        return document

    def _no_image(self) -> str:
        return (
            f"{self.spec.environment_dir or self.spec.name} says nothing about the image of main: "
            "expected a Dockerfile, [environment] docker_image, or an image or build of main in "
            "docker-compose.yaml."
        )

    def _asked(
        self,
        place: Path,
        stack: list[Path],
        files: list[Path],
        variables: Mapping[str, str],
        deadline: Deadline,
    ) -> Document:
        shown = ", ".join(map(str, files))
        try:
            resolved = self._compose.config(self.project, place, stack, variables, deadline)
        except ComposeError as fault:
            if '"main" has neither an image' in str(fault):
                raise TaskError(self._no_image()) from fault
            raise TaskError(f"Compose refuses {shown}: {fault}") from fault
        missing = dict.fromkeys(
            (*resolved.unset, *documents.close_environment(resolved.model, self.spec.variables))
        )
        if missing:
            asked = "; ".join(f"{name} ({_where(name, files)})" for name in missing)
            raise TaskError(
                f"Nobody sets what the Compose file asks for: {asked}. Set it under "
                "compose_variables in the recipe or in [environment.env], or write a default: "
                "${NAME:-default}. The host's own environment is closed to tasks."
            )
        return resolved.model

    def _variables(self, files: Iterable[Path]) -> dict[str, str]:
        """What the files may interpolate (harbor-format 6.2); our own names win."""
        spec = self.spec
        place = spec.environment_dir
        own: dict[str, str] = {}
        if place is not None:
            own["CONTEXT_DIR"] = str(place)
        if spec.docker_image is not None:
            own["PREBUILT_IMAGE_NAME"] = spec.docker_image
        if spec.cpus is not None:
            own["CPUS"] = f"{spec.cpus:g}"
        if spec.memory_mb is not None:
            own["MEMORY"] = f"{spec.memory_mb}M"
        if place is not None and any(b"MAIN_IMAGE_NAME" in file.read_bytes() for file in files):
            digest = environment_digest(place)[:16]
            own["MAIN_IMAGE_NAME"] = f"pytest-harbor/{slug(spec.name)}:{digest}"
        # converted older tasks ask for it, and Harbor leaves it empty
        return {"TEST_DIR": "/tests", **spec.variables, **own}

    def _listed(self, document: Document) -> tuple[str, ...]:
        """What the task reaches for outside of itself, and what it may think that it sets."""
        spec = self.spec
        listed = [
            f"mounts from the host: {path}"
            for path in documents.host_paths(document, spec.environment_dir)
        ]
        if spec.environment_dir is not None and (stray := spec.environment_dir / ".env").exists():
            listed.append(f"{stray} has no effect: Compose variables come from the recipe (B67)")
        main = document["services"].get("main") or {}
        if spec.dockerfile and main.get("build") and main.get("image"):
            listed.append(f"main: image {main['image']} is only a name; the Dockerfile is built")
        return tuple(listed)

    def _finish(self, document: Document, images: Mapping[str, Image]) -> dict[str, float]:
        """Write on top of the task's document what is ours; returns each healthcheck's patience."""
        spec = self.spec
        documents.settle_main(
            document,
            environment=spec.main_env,
            workdir=spec.workdir,
            cpus=spec.cpus,
            memory_mb=spec.memory_mb,
            entrypoint=images["main"].entrypoint,
        )
        checks = {name: image.healthcheck for name, image in images.items()}
        patience = documents.hasten_healthchecks(document, checks)
        documents.pin_images(document, {name: image.id for name, image in images.items()})
        documents.mount_tools(document, spec.tools)
        documents.label(document, {**spec.labels, **self._owner.labels()})
        self.services = tuple(document["services"])
        self.images = {name: image.id for name, image in images.items()}
        return patience

    def _up(self, document: Document, deadline: Deadline) -> None:
        """Let Compose create everything, with subnets of our own; other ones when they clash."""
        subnets = Subnets(self._engine, self._state)
        members = documents.networks_in_need(document)
        place = self.spec.environment_dir or self._state.folder()
        for attempt in range(_OTHER_SUBNETS):
            with (
                subnets.reserve(members, deadline) as chosen,
                private_folder(self._state) as folder,
            ):
                documents.number_networks(document, chosen)
                file = folder / "compose.json"
                addressed, variables = self._addressed(document)
                write_json(file, addressed)
                done = self._compose.up(self.project, place, file, variables, deadline)
                if done.code == 0:
                    return
                if not is_clash(done.stderr) or not chosen:
                    self._explain(done)
                subnets.refuse(chosen.values(), deadline)
                if self.spec.door is not None:
                    self.spec.door.unlisten()
                janitor.remove_project(self._engine, self.project, deadline)
                if attempt == 0:
                    janitor.sweep_dead_owners(self._engine)
                last = attempt + 1 == _OTHER_SUBNETS
                if last:
                    raise SandboxError(
                        f"The engine refuses the networks of {self.project}: {done.complaint}. "
                        "Remove what earlier runs left with 'pytest --harbor-clean', other "
                        "networks with 'docker network prune'."
                    )

    def _addressed(self, document: Document) -> tuple[Document, Mapping[str, str]]:
        """The document and variables with the door's addresses; a service sees its own bridge's."""
        door = self.spec.door
        if door is None:
            return document, self.spec.variables
        if not self._engine.facts.is_local:
            raise SandboxError(
                "Containers of an engine on another machine cannot reach the model gateway of "
                "this one: name no model_server in the recipe, or use an engine here."
            )
        places = documents.host_addresses(document)
        self.host_address = places.get("main")
        seen = {place: door.listen(place) for place in _needed(document, places, door.mark)}
        services = {
            name: documents.with_strings(service, seen.get(places.get(name, ""), {}))
            for name, service in document["services"].items()
        }
        for_main = seen.get(self.host_address or "", {})
        settled = documents.with_strings({**document, "services": {}}, for_main)
        return (
            {**settled, "services": services},
            documents.with_strings(dict(self.spec.variables), for_main),
        )

    def _explain(self, done: Completed) -> None:
        """Raise what ``up`` failed of: a service's own end, rather than Compose's word for it."""
        states = self._look(self._list())
        guilty = [state for state in states if readiness.verdict(state, overdue=True) == "failed"]
        if guilty:
            raise SandboxError(self._told(guilty))
        raise SandboxError(f"{self.project} did not start: {done.complaint}")

    def _wait(
        self, patience: Mapping[str, float], must_end: Collection[str], deadline: Deadline
    ) -> None:
        """Wait for what Compose's own ``--wait`` would, and for one-shot services to end."""
        began = time.monotonic()
        ends = began + limit(deadline)
        waiting = self._list()
        self._containers = {}
        for service, container in waiting:
            self._containers.setdefault(service, container)
        while True:
            states = self._look(waiting)
            waited = time.monotonic() - began
            judged = [
                (
                    readiness.verdict(
                        state,
                        overdue=waited > patience.get(state.service, waited) + 1,
                        must_end=state.service in must_end,
                    ),
                    state,
                )
                for state in states
            ]
            if failed := [state for word, state in judged if word == "failed"]:
                raise SandboxError(self._told(failed))
            late = [state for word, state in judged if word == "wait"]
            if not late:
                return
            if time.monotonic() >= ends:
                raise SandboxError(
                    f"{self.project} was not ready in time ({deadline.describe()}). "
                    + self._told(late)
                )
            waiting = [(state.service, state.container_id) for state in late]
            time.sleep(_POLL)

    def _list(self) -> list[tuple[str, str]]:
        """Service and id of every container of the group."""
        found: list[dict[str, Any]] = self._engine.api.containers(
            all=True, filters={"label": f"{PROJECT}={self.project}"}
        )
        number = "com.docker.compose.container-number"
        found.sort(key=lambda entry: int(entry["Labels"].get(number, 0)))
        return [(entry["Labels"].get(SERVICE, ""), entry["Id"]) for entry in found]

    def _look(self, containers: Iterable[tuple[str, str]]) -> list[ServiceState]:
        api = self._engine.api
        return [
            ServiceState.of(service, api.inspect_container(name)) for service, name in containers
        ]

    def _told(self, states: list[ServiceState]) -> str:
        """The story of services in trouble, with what they printed last."""
        parts = [f"{self.project} did not start: {readiness.trouble(states)}"]
        for state in states:
            printed = bytes(self._engine.api.logs(state.container_id, tail=_TAIL))
            if text := printed.decode("utf-8", "replace").strip():
                parts.append(f"The last lines of {state.service}:\n{text}")
        return "\n".join(parts)


def _needed(document: Document, places: Mapping[str, str], mark: str) -> tuple[str, ...]:
    """The addresses at which the door is needed: main's, and those of services that name it.

    Raises:
        TaskError: such a service has no way to this host.
    """
    naming = [name for name, each in document["services"].items() if mark in json.dumps(each)]
    if lost := [name for name in naming if name not in places]:
        raise TaskError(
            f"{', '.join(lost)}: no way to the model gateway on this host: expected a bridge "
            "network of the Compose file's own, or network_mode: host."
        )
    return tuple(dict.fromkeys(places[name] for name in ("main", *naming) if name in places))


def _where(name: str, files: Iterable[Path]) -> str:
    """The file and line that asks for a variable."""
    asks = re.compile(r"\$(\{)?" + re.escape(name) + r"\b|environment:\s*" + re.escape(name))
    for file in files:
        lines = file.read_text("utf-8", "replace").splitlines()
        for number, line in enumerate(lines, 1):
            if asks.search(line):
                return f"{file}:{number}"
    return ", ".join(map(str, files))
