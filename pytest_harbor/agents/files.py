"""Changes of files in main as an agent's own tools make them: whole, in part, by a patch."""

from __future__ import annotations

import shlex
from pathlib import PurePosixPath
from typing import Final

from pytest_harbor.agents.base import Turn
from pytest_harbor.agents.hands import Done
from pytest_harbor.agents.patches import FilePatch, PatchError, patched
from pytest_harbor.agents.recorded import Edit, Patch, Write
from pytest_harbor.sandbox.container import Entry

_LARGEST: Final = 1 << 26
"""Bytes of a file that is changed in part."""


class _MissingError(Exception):
    """What is to be changed is not there; says what."""


def change_files(turn: Turn, action: Write | Edit | Patch) -> Done:
    """Make the changes as the turn's user; failed, with the reason, where they do not fit."""
    try:
        match action:
            case Write():
                _put(turn, action.path, action.content)
            case Edit():
                is_new = not action.changes[0][0]  # nothing is replaced: CLIs make files so
                text = "" if is_new else _read(turn, action.path)
                _put(turn, action.path, _edited(text, action))
            case Patch():
                for file in action.files:
                    _lay_over(turn, file)
    except (_MissingError, PatchError) as error:
        return Done(str(error), failed=True)
    return Done("")


def _edited(text: str, edit: Edit) -> str:
    for old, new, everywhere in edit.changes:
        if old not in text:
            raise _MissingError(f"the text to be replaced is not in {edit.path}")
        text = text.replace(old, new, -1 if everywhere else 1)
    return text


def _lay_over(turn: Turn, file: FilePatch) -> None:
    if file.content is not None:
        _put(turn, file.path, file.content)
        return
    text = _read(turn, file.path)
    if not file.deleted:
        _put(turn, file.moved or file.path, patched(text, file.hunks))
    if file.deleted or file.moved:
        gone = shlex.quote(_place(turn, file.path))
        turn.container.run(f"rm -f -- {gone}", user=turn.user, deadline=turn.deadline)


def _place(turn: Turn, path: str) -> str:
    return str(PurePosixPath(turn.container.workdir) / path)


def _read(turn: Turn, path: str) -> str:
    content = turn.container.read(_place(turn, path), _LARGEST)
    if content is None:
        raise _MissingError(f"there is no file {path}")
    return content.decode("utf-8", "surrogateescape")


def _put(turn: Turn, path: str, text: str) -> None:
    main, place = turn.container, _place(turn, path)
    owner, facts = main.user(turn.user), main.stat(place)
    mode = facts.mode if facts is not None and facts.kind == "file" else 0o644
    data = text.encode("utf-8", "surrogateescape")
    main.put([Entry(place, data, mode, owner.uid, owner.gid)])
