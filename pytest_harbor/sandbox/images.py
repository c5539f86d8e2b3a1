"""Images by content: each build context is built once, whoever asks, in whatever project and run.

The digest of context, Dockerfile, arguments and target names the tag; a record beside a file lock
says which image came of it. Images that are not built are pulled where the engine lacks them.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import json
import os
import random
import re
import shlex
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

from pytest_harbor.errors import ImageError
from pytest_harbor.sandbox import documents
from pytest_harbor.sandbox.compose import Compose
from pytest_harbor.sandbox.documents import Document
from pytest_harbor.sandbox.engine import Engine
from pytest_harbor.sandbox.names import slug
from pytest_harbor.sandbox.state import State, read_json, try_lock, write_json
from pytest_harbor.task.digest import environment_digest
from pytest_harbor.task.timeouts import Deadline

REPOSITORY: Final = "pytest-harbor"
DIGEST_LABEL: Final = "pytest-harbor.digest"

_TAIL_LINES: Final = 40
_PAUSES: Final = (2.0, 8.0, 20.0, 45.0)
"""Seconds before each further try, when a registry is busy or out of reach for a moment."""

_WORTH_ANOTHER_TRY: Final = re.compile(
    r"\b429\b|toomanyrequests|too many requests|rate limit|TLS handshake timeout|i/o timeout"
    r"|connection reset by peer|\b50[234] (bad gateway|service unavailable|gateway time)"
    r"|temporary failure in name resolution|unexpected EOF",
    re.IGNORECASE,
)
_URL: Final = re.compile(r"^([a-z][a-z0-9+.-]*://|git@)", re.IGNORECASE)

T = TypeVar("T")


@dataclass(frozen=True)
class Image:
    """An image that the engine has, and what its own configuration makes containers do."""

    id: str
    entrypoint: tuple[str, ...] = ()
    healthcheck: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Order:
    """What a group wants of its images."""

    name: str
    """The task's, for tags."""
    run_id: str
    force: bool = False
    """Build anew what can be built, once in a run, and without the builder's cache."""
    slots: int = 2
    """How many builds may run at once on this host, over all processes."""


class Images:
    """The images of one engine, as all processes of this user see them."""

    def __init__(self, engine: Engine, compose: Compose, state: State) -> None:
        self._engine = engine
        self._compose = compose
        self._state = state

    def ensure(self, document: Document, order: Order, deadline: Deadline) -> dict[str, Image]:
        """Find, build or pull the image of every service of a resolved document.

        Raises:
            ImageError: one cannot be had; it has the end of the build's output.
        """
        services: dict[str, Document] = document["services"]
        found = {
            name: self._built(document, name, order, deadline)
            for name, service in services.items()
            if service.get("build")
        }
        # plain Compose would have tagged the builds with these names, for others to use
        named = {
            services[name]["image"]: found[name] for name in found if "image" in services[name]
        }
        for name, service in services.items():
            if name not in found:
                reference = documents.unescape(service["image"])
                found[name] = named.get(service["image"]) or self._pulled(
                    reference, service.get("platform"), deadline
                )
        return found

    def _built(self, document: Document, service: str, order: Order, deadline: Deadline) -> Image:
        build = Build.of(document, service)
        digest = build.digest(self._compose.default_platform)
        record = self._state.folder("images", slug(self._engine.facts.id)) / f"{digest}.json"

        def known() -> Image | None:
            noted = read_json(record) or {}
            if order.force and noted.get("run") != order.run_id:
                return None
            return self._look(noted["id"]) if "id" in noted else None

        if image := known():
            return image
        with self._state.lock(f"build-{digest[:16]}", deadline):
            if image := known():  # by whoever held the lock before
                return image
            if not order.force and (image := self._labelled(digest)):
                write_json(record, {"id": image.id, "run": ""})
                return image
            tag = f"{REPOSITORY}/{slug(f'{order.name}-{service}')}:{digest[:16]}"
            with self._slot(order.slots, deadline):
                patiently(lambda: self._build(build, tag, digest, order, deadline), deadline)
            image = self._look(tag)
            if image is None:
                raise ImageError(f"The build of {service} ended well, but the engine has no {tag}.")
            write_json(record, {"id": image.id, "run": order.run_id})
            return image

    def _build(self, build: Build, tag: str, digest: str, order: Order, deadline: Deadline) -> None:
        with private_folder(self._state) as folder:
            file = folder / "build.json"
            write_json(file, build.document(tag, digest, folder))
            log_path = folder / "log"
            with log_path.open("wb") as log:
                code = self._compose.build(
                    build.project, folder, file, build.service, {}, deadline,
                    log=log, no_cache=order.force,
                )  # fmt: skip
            if code != 0:
                lines = log_path.read_text("utf-8", "replace").splitlines()
                shown = "\n".join(lines[-_TAIL_LINES:])
                raise ImageError(
                    f"The image of service {build.service} could not be built "
                    f"(exit code {code}). The end of the build's output:\n{shown}\n"
                    f"To see it again: {build.by_hand}"
                )

    @contextlib.contextmanager
    def _slot(self, slots: int, deadline: Deadline) -> Iterator[None]:
        """Hold one of the host's places for builds (B74)."""
        folder = self._state.folder("build-slots")
        while True:
            for number in range(max(1, slots)):
                with (folder / f"{number}.lock").open("wb") as file:
                    if try_lock(file.fileno()):
                        yield
                        return
            if deadline.expired:
                raise ImageError(
                    f"No place for a build became free ({deadline.describe()}): "
                    f"{slots} others are building."
                )
            time.sleep(random.uniform(0.05, 0.15))  # noqa: S311 (jitter)

    def _pulled(self, reference: str, platform: str | None, deadline: Deadline) -> Image:
        if image := self._look(reference):
            return image
        name = hashlib.sha256(reference.encode()).hexdigest()[:16]
        with self._state.lock(f"pull-{name}", deadline):
            if (image := self._look(reference)) is None:
                patiently(lambda: self._pull(reference, platform, deadline), deadline)
                image = self._look(reference)
        if image is None:
            raise ImageError(f"{reference} was pulled, but the engine does not have it.")
        return image

    def _pull(self, reference: str, platform: str | None, deadline: Deadline) -> None:
        from docker.errors import APIError
        from docker.utils import parse_repository_tag
        from requests.exceptions import RequestException

        repository, tag = parse_repository_tag(reference)
        fault: str | None = None
        try:
            lines = self._engine.api.pull(
                repository, tag=tag or "latest", stream=True, decode=True, platform=platform
            )
            for line in lines:
                fault = fault or line.get("error")
                if deadline.expired:
                    fault = f"not done in time ({deadline.describe()})"
                    break
        except (APIError, RequestException) as error:
            fault = str(getattr(error, "explanation", None) or error)
        if fault is not None:
            raise ImageError(
                f"The image {reference} is not on this engine and cannot be pulled: {fault}. "
                f"To see it again: docker pull {shlex.quote(reference)}"
            )

    def _labelled(self, digest: str) -> Image | None:
        """An image that was built from this content before the record was lost."""
        found: list[dict[str, Any]] = self._engine.api.images(
            filters={"label": f"{DIGEST_LABEL}={digest}"}
        )
        return self._look(found[0]["Id"]) if found else None

    def _look(self, reference: str) -> Image | None:
        """What the engine has under a name or id."""
        from docker.errors import ImageNotFound

        try:
            seen: dict[str, Any] = self._engine.api.inspect_image(reference)  # type: ignore[no-untyped-call]
        except ImageNotFound:
            return None
        config = seen.get("Config") or {}
        return Image(
            seen["Id"], tuple(config.get("Entrypoint") or ()), config.get("Healthcheck") or {}
        )


@dataclass(frozen=True)
class Build:
    """One service's build section, and the rest of the document that it may refer to."""

    project: str
    service: str
    section: Document
    platform: str | None
    secrets: Document

    @classmethod
    def of(cls, document: Document, service: str) -> Build:
        """The build of a service in a resolved document; checks that its files are there."""
        entry = document["services"][service]
        build = cls(
            document["name"],
            service,
            entry["build"],
            entry.get("platform"),
            document.get("secrets") or {},
        )
        for name, context in build.contexts.items():
            if not context.is_dir():
                raise ImageError(f"Service {service}: the {name} {context} is not a folder.")
        file = build.dockerfile
        if file is not None and not file.is_file():
            raise ImageError(f"Service {service}: there is no Dockerfile at {file}.")
        return build

    @property
    def contexts(self) -> dict[str, Path]:
        """The folders that the build reads, by name; a URL is none."""
        named = {"build context": self.section.get("context", "")}
        named |= self.section.get("additional_contexts") or {}
        plain = {name: documents.unescape(place) for name, place in named.items()}
        return {
            name: Path(place)
            for name, place in plain.items()
            if (name == "build context" and not _URL.match(place)) or place.startswith("/")
        }

    @property
    def dockerfile(self) -> Path | None:
        """The Dockerfile on this host, if it is a file."""
        context = self.contexts.get("build context")
        if context is None or "dockerfile_inline" in self.section:
            return None
        return context / documents.unescape(self.section.get("dockerfile") or "Dockerfile")

    def digest(self, default_platform: str = "") -> str:
        """Hash everything that decides what the image holds."""
        section = {key: value for key, value in self.section.items() if key not in _NO_CONTENT}
        contexts = {name: environment_digest(path) for name, path in self.contexts.items()}
        if "build context" in contexts:
            section.pop("context", None)
        for name in contexts.keys() & (section.get("additional_contexts") or {}).keys():
            section["additional_contexts"] = section["additional_contexts"] | {name: ""}
        file = self.dockerfile
        if file is not None:
            # its place does not matter, and it may lie outside the context
            section.pop("dockerfile", None)
            contexts["Dockerfile"] = hashlib.sha256(file.read_bytes()).hexdigest()
        whole = [section, contexts, self.platform or default_platform]
        return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()

    def document(self, tag: str, digest: str, folder: Path) -> Document:
        """A Compose document that builds this image and tags it.

        The context is named by the digest. BuildKit keeps files of earlier transfers by the *last
        part* of the context's path, and takes over those whose size and time of change are the
        same: two folders called ``environment`` could get each other's files (B76).
        """
        section = copy.deepcopy(self.section)
        section.pop("tags", None)
        section["labels"] = (section.get("labels") or {}) | {DIGEST_LABEL: digest}
        if (context := self.contexts.get("build context")) is not None:
            staged = folder / digest
            staged.symlink_to(context)
            section["context"] = documents.escape(str(staged))
            file = self.dockerfile
            if file is not None and not Path(os.path.normpath(file)).is_relative_to(context):
                section["dockerfile"] = documents.escape(os.path.normpath(file))
        service: Document = {"image": tag, "build": section}
        if self.platform:
            service["platform"] = self.platform
        return {
            "name": self.project,
            "services": {self.service: service},
            "secrets": self.secrets,
        }

    @property
    def by_hand(self) -> str:
        """A command for the operator that builds the same."""
        words = ["docker", "build", "--progress", "plain"]
        if self.dockerfile is not None:
            words += ["--file", str(self.dockerfile)]
        if target := self.section.get("target"):
            words += ["--target", target]
        for name in self.section.get("args") or ():
            words += ["--build-arg", f"{name}=..."]
        words.append(documents.unescape(self.section.get("context", ".")))
        return shlex.join(words)


_NO_CONTENT: Final = frozenset({"tags", "cache_from", "cache_to", "ssh", "no_cache", "pull"})
"""Keys of a build section that do not change what comes out."""


def patiently(action: Callable[[], T], deadline: Deadline) -> T:
    """Do something that needs a registry; again after a while, if that may help (B77)."""
    for pause in _PAUSES:
        try:
            return action()
        except ImageError as fault:
            left = deadline.remaining()
            wait = pause * random.uniform(0.75, 1.25)  # noqa: S311 (jitter)
            if not _WORTH_ANOTHER_TRY.search(str(fault)) or (left is not None and left < wait):
                raise
            time.sleep(wait)
    return action()


@contextlib.contextmanager
def private_folder(state: State) -> Iterator[Path]:
    """A folder for documents that may hold values, closed to other users, gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix=f"compose-{os.getpid()}-", dir=state.folder("tmp")))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
