"""Reading a task's own files: which paths may be read, instructions and their canaries.

Whole trees (what is uploaded) are for :mod:`pytest_harbor.task.trees`. Nothing here writes.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from pytest_harbor.errors import TaskError
from pytest_harbor.task.toml import decode_text

_HTML_COMMENT = re.compile(r"\s*<!--.*-->\s*")


def inside(path: Path, task: Path) -> Path:
    """Follow the symlinks of ``path`` and return where it really is.

    Symlinks may point elsewhere in the same task, but not out of it, and must end somewhere
    (harbor-format 1). Raises TaskError otherwise; ``path`` itself must exist.
    """
    shown = show(path, task)
    try:
        real = Path(os.path.realpath(path, strict=True))
        home = Path(os.path.realpath(task, strict=True))
    except OSError as error:
        if path.is_symlink():
            raise TaskError(
                f"{shown} is a symlink to {_target(path)!r}, which cannot be followed "
                f"({error.strerror}); point it at a file of this task"
            ) from error
        raise TaskError(f"{shown} cannot be read: {error.strerror}") from error
    if real != home and home not in real.parents:
        raise TaskError(
            f"{shown} leads out of the task, to {real}; copy the file into the task folder"
        )
    return real


def read_bytes(path: Path, task: Path) -> bytes:
    """Read a file of the task. Raises TaskError when it is elsewhere, no file, or unreadable."""
    real = inside(path, task)
    if not real.is_file():
        raise TaskError(f"{show(path, task)} is not a file; put a plain file there")
    try:
        return real.read_bytes()
    except OSError as error:
        raise TaskError(f"{show(path, task)} cannot be read: {error.strerror}") from error


def read_instruction(path: Path, task: Path) -> str:
    """Read an instruction: UTF-8, a byte order mark dropped, the canary stripped, else verbatim.

    Raises TaskError for a missing file, another encoding, or one with nothing to say.
    """
    text = strip_canary(decode_text(read_bytes(path, task), show(path, task)))
    if not text.strip():
        raise TaskError(f"{show(path, task)} is empty; write what the agent shall do")
    return text


def strip_canary(text: str) -> str:
    """Drop the canary block at the start of an instruction (harbor-format 1).

    The block is made of lines that are an HTML comment or start with ``#``, hold the word
    "canary" in any case, and of the blank lines after them. Without one, the text is untouched.
    """
    lines = text.split("\n")
    kept = 0
    while kept < len(lines) and (_is_canary(lines[kept]) or (kept and not lines[kept].strip())):
        kept += 1
    return "\n".join(lines[kept:])


def _is_canary(line: str) -> bool:
    if "canary" not in line.casefold():
        return False
    return line.lstrip().startswith("#") or bool(_HTML_COMMENT.fullmatch(line))


def show(path: Path, task: Path) -> str:
    """Write a path for a message: relative to the task folder, with forward slashes."""
    return path.relative_to(task).as_posix() if path.is_relative_to(task) else str(path)


def _target(link: Path) -> str:
    return os.readlink(link)  # noqa: PTH115 (the text of the link, not a path made from it)
