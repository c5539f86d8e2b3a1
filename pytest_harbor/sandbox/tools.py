"""Volumes that hold tools: filled once by a helper container, then mounted read-only by groups.

What is to be put into one is its user's business. A volume is a cache like an image: it belongs to
no run, the janitor's sweeps leave it alone, and cleaning that takes the images takes it too.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from pytest_harbor.errors import SandboxError
from pytest_harbor.sandbox.compose import Compose
from pytest_harbor.sandbox.images import Images, Order
from pytest_harbor.sandbox.labels import TOOLS, Owner
from pytest_harbor.sandbox.names import slug
from pytest_harbor.sandbox.state import State, read_json, write_json
from pytest_harbor.sandbox.transfer import Entry, pack

if TYPE_CHECKING:
    from collections.abc import Iterator

    from docker import APIClient

    from pytest_harbor.sandbox.engine import Engine
    from pytest_harbor.task.timeouts import Deadline

PLACE: Final = "/tools"
"""Where the helper finds the volume that it fills."""

_ONCE: Final = """
set -eu
exec 9>/tools/.lock
flock 9
if [ -e /tools/.complete ]; then exit 0; fi
find /tools -mindepth 1 -maxdepth 1 ! -name .lock -exec rm -rf {} +
(
%s
)
touch /tools/.complete
"""
"""Fills a volume unless it is filled: a lock in it serves all users of the engine, and what a
killed helper left behind is thrown away."""

_TAIL: Final = 4000
"""Characters of the helper's output in an error."""
_LABELLED_SECONDS: Final = 3600.0
_LOOK_SECONDS: Final = 20


@dataclass(frozen=True)
class Filling:
    """What a volume shall hold."""

    name: str
    """For people; the content decides which volume it is."""
    image: str
    """The image of the helper, with a Debian in it."""
    script: str
    """For ``sh`` as root, to fill :data:`PLACE`; it may say ``set`` things as it likes."""
    env: Mapping[str, str] = field(default_factory=dict)
    """For the helper: how it reaches registries. No part of the content."""
    files: tuple[Entry, ...] = ()
    """What the helper finds beside; no part of the content either."""

    def volume(self, platform: str) -> str:
        """The volume's name on engines of a platform."""
        whole = json.dumps([self.image, self.script, platform])
        digest = hashlib.sha256(whole.encode()).hexdigest()[:12]
        return f"pytest-harbor-tools-{slug(self.name)}-{digest}"


def fill_once(engine: Engine, filling: Filling, deadline: Deadline) -> str:
    """The volume with this content, filled now if no process has done it before.

    Raises:
        ImageError: the helper's image cannot be had.
        SandboxError: it could not be filled; the message has the helper's last words.
    """
    name = filling.volume(engine.facts.platform)
    state = State.of(engine.environment)
    record = state.folder("tools", slug(engine.facts.id)) / f"{name}.json"
    if _is_known(engine, name, record_of=read_json(record)):
        return name
    with state.lock(name, deadline, poll=0.1):
        if not _is_known(engine, name, record_of=read_json(record)):
            _fill(engine, filling, name, deadline)
            write_json(record, {"made": _made(engine, name)})
    return name


def remove_tools(engine: Engine) -> None:
    """Remove all volumes of tools that no container uses."""
    for volume in engine.api.volumes(filters={"label": TOOLS})["Volumes"] or ():
        _remove(engine, volume["Name"])


def _remove(engine: Engine, name: str) -> None:
    """Remove a volume, unless somebody uses it."""
    from docker.errors import APIError

    try:
        engine.api.remove_volume(name)
    except APIError as fault:
        if fault.status_code not in (404, 409):
            raise


def _is_known(engine: Engine, name: str, record_of: Any) -> bool:
    """Whether it is the very volume that was filled, and not another of its name."""
    return record_of is not None and _made(engine, name) == record_of.get("made")


def _made(engine: Engine, name: str) -> str | None:
    from docker.errors import NotFound

    try:
        return str(engine.api.inspect_volume(name)["CreatedAt"])
    except NotFound:
        return None


def _fill(engine: Engine, filling: Filling, name: str, deadline: Deadline) -> None:
    from docker.errors import DockerException
    from requests import RequestException

    images = Images(engine, Compose(engine.environment), State.of(engine.environment))
    service = {"tools": {"image": filling.image}}
    images.ensure({"services": service}, Order(filling.name, "tools"), deadline)
    try:
        with _helper(engine, filling, name) as (api, helper):
            if filling.files:
                api.put_archive(helper, "/", b"".join(pack(filling.files)))
            api.start(helper)
            code = _wait(api, helper, deadline)
            said = api.logs(helper).decode("utf-8", "replace")[-_TAIL:].strip()
    except (DockerException, RequestException) as fault:
        raise SandboxError(f"The volume {name} could not be filled: {fault}") from fault
    if code != 0:
        _remove(engine, name)
        how = f"exit code {code}" if code is not None else f"not in time, {deadline.describe()}"
        raise SandboxError(f"{filling.name} could not be installed ({how}):\n{said}")


@contextmanager
def _helper(engine: Engine, filling: Filling, name: str) -> Iterator[tuple[APIClient, str]]:
    """A container with the volume in it, made and not started; it dies with its owner."""
    left = Owner.of_this_process(f"tools-{uuid.uuid4().hex[:8]}", filling.name)
    api = engine.api
    api.create_volume(name, labels={TOOLS: filling.name})
    helper: str = api.create_container(
        filling.image,
        entrypoint=["/bin/sh", "-c", _ONCE % filling.script],
        command=[],
        user="0",
        environment=dict(filling.env),
        labels=left.labels(_LABELLED_SECONDS),
        host_config=api.create_host_config(binds={name: {"bind": PLACE, "mode": "rw"}}, init=True),
    )["Id"]
    try:
        yield api, helper
    finally:
        api.remove_container(helper, force=True, v=True)


def _wait(api: APIClient, helper: str, deadline: Deadline) -> int | None:
    """The helper's exit code; None when the deadline came first."""
    from requests import RequestException

    while not deadline.expired:
        left = deadline.remaining()
        seconds = _LOOK_SECONDS if left is None else int(min(left, _LOOK_SECONDS)) + 1
        try:
            return int(api.wait(helper, timeout=seconds)["StatusCode"])
        except RequestException:  # the wait's own time is up
            continue
    return None
