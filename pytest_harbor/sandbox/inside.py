"""Files in mounts that only exist inside a running container, as a tmpfs does, by its own ``tar``.

The engine's file calls see what lies under such a mount, and say nothing. This way costs a
command each, and needs ``tar`` in the image; it is taken for those paths only.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from pytest_harbor.errors import SandboxError
from pytest_harbor.sandbox.command import BIRTH
from pytest_harbor.sandbox.transfer import Entry, pack
from pytest_harbor.task.timeouts import Deadline

if TYPE_CHECKING:
    from pytest_harbor.sandbox.container import Container

_SECONDS: Final = 300.0

_GET: Final = BIRTH + (
    'if [ -e "$1/$2" ] || [ -L "$1/$2" ]; then echo +; else echo -; exit; fi; '
    'exec tar -C "$1" -cf - $3 -- "$2" 2>/dev/null'
)
_PUT: Final = BIRTH + (
    'size=$1; shift; [ $# = 0 ] || rm -rf -- "$@" 2>/dev/null; '
    'head -c "$size" | tar -C / -xpf - 2>&1'
)


@contextlib.contextmanager
def content(
    container: Container, path: str, *, shallow: bool = False
) -> Iterator[Iterable[bytes] | None]:
    """The tar stream of a path, None where there is nothing."""
    pure = PurePosixPath(path)
    argv = [str(pure.parent), pure.name or ".", "--no-recursion" if shallow else ""]
    deadline = Deadline.after(_SECONDS, f"reading {path}")
    with container.start(_GET, argv, deadline, user="0", workdir="/") as command:

        def chunks() -> Iterator[bytes]:
            while piece := command.read():
                yield piece

        stream = chunks()
        said = b""
        while b"\n" not in said and (piece := next(stream, b"")):
            said += piece
        found, _, rest = said.partition(b"\n")
        yield _chain(rest, stream) if found == b"+" else None


def _chain(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    if first:
        yield first
    yield from rest


def put(container: Container, entries: Sequence[Entry]) -> None:
    """Put entries in place.

    Raises:
        SandboxError: the image has no ``tar``, or it failed.
    """
    data = b"".join(pack(replace(entry, fresh=False) for entry in entries))
    argv = [str(len(data)), *(entry.path for entry in entries if entry.fresh)]
    deadline = Deadline.after(_SECONDS, "putting files into a tmpfs")
    with container.start(_PUT, argv, deadline, user="0", workdir="/", stdin=True) as command:
        command.send(data)
        ran = command.wait(1 << 16)
    if ran.exit_code != 0:
        said = ran.output.decode("utf-8", "replace").strip()[:500] or ran.limit
        raise SandboxError(
            f"{entries[0].path} in service {container.service} lies in a tmpfs, which only the "
            f"container's own tar can reach, and that failed: {said}"
        )
