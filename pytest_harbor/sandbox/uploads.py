"""Trees of a task as entries for a container: owner, modes, and line ends of scripts set right."""

from __future__ import annotations

import shlex
from collections.abc import Collection
from pathlib import Path

from pytest_harbor.sandbox.container import Entry, UserIds
from pytest_harbor.task.trees import upload_tree


def tree_entries(
    root: Path,
    place: str,
    owner: UserIds,
    *,
    scripts: Collection[str] = (),
    harborignore: bool = True,
) -> list[Entry]:
    """The files under ``root`` as they shall lie under ``place`` in the container.

    They belong to ``owner``. The ``scripts`` (paths relative to the tree) are made executable, and
    Windows line ends in them, with which no shell can run them, become Unix ones.
    """
    entries = []
    for file in upload_tree(root, harborignore=harborignore):
        mode, source = file.mode, file.source
        body: Path | bytes = source
        if file.path.as_posix() in scripts:
            mode |= 0o555
            text = source.read_bytes()
            body = text.replace(b"\r\n", b"\n") if b"\r\n" in text else source
        entries.append(Entry(f"{place}/{file.path}", body, mode, owner.uid, owner.gid))
    return entries


def run_script(path: str) -> str:
    """The shell command for an uploaded script: by its own first line, or by the shell.

    The kernel executes nothing on a file system that is mounted ``noexec`` (the default of
    Compose's ``tmpfs``), and says so when it is asked (B97).
    """
    name = shlex.quote(path)
    return f'if [ -x {name} ]; then {name}; else "${{BASH:-sh}}" {name}; fi'
