"""Patches as codex writes them (``*** Begin Patch``): read, and laid over a file's text.

*** Begin Patch
*** Update File: app.py
@@ def main():
-    old()
+    new()
*** Add File: notes.txt
+one line
*** Delete File: gone.txt
*** End Patch
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_FILE: Final = re.compile(r"\*\*\* (Add|Update|Delete) File: (.+)")
_MOVED: Final = "*** Move to: "
_END_OF_FILE: Final = "*** End of File"


class PatchError(ValueError):
    """A patch that cannot be read, or does not fit; says why."""


@dataclass(frozen=True)
class Hunk:
    """Lines that stand together, and what stands there afterwards."""

    after: str
    """A line somewhere above them; empty for anywhere."""
    old: tuple[str, ...]
    new: tuple[str, ...]


@dataclass(frozen=True)
class FilePatch:
    """What happens to one file."""

    path: str
    content: str | None = None
    """All of a new file."""
    hunks: tuple[Hunk, ...] = ()
    moved: str | None = None
    deleted: bool = False


def read_patch(text: str) -> tuple[FilePatch, ...]:
    """The files of a patch.

    Raises:
        PatchError: it is none.
    """
    lines = text.strip().splitlines()
    if len(lines) < 2 or lines[0] != "*** Begin Patch" or lines[-1] != "*** End Patch":
        raise PatchError("the patch has no beginning or no end")
    sections: list[tuple[str, str, list[str]]] = []
    for line in lines[1:-1]:
        if found := _FILE.fullmatch(line):
            sections.append((found[1], found[2].strip(), []))
        elif sections:
            sections[-1][2].append(line)
        else:
            raise PatchError(f"the patch names no file before {line!r}")
    return tuple(_file(*section) for section in sections)


def _file(kind: str, path: str, lines: list[str]) -> FilePatch:
    if kind == "Delete":
        return FilePatch(path, deleted=True)
    if kind == "Add":
        return FilePatch(path, content="".join(f"{line[1:]}\n" for line in lines))
    moved = None
    if lines and lines[0].startswith(_MOVED):
        moved = lines.pop(0).removeprefix(_MOVED).strip()
    return FilePatch(path, hunks=tuple(_hunks(lines)), moved=moved)


def _hunks(lines: list[str]) -> list[Hunk]:
    groups: list[tuple[str, list[str]]] = []
    for line in lines:
        if line.startswith("@@"):
            groups.append((line.removeprefix("@@").strip(), []))
        elif line != _END_OF_FILE:
            if not groups:
                groups.append(("", []))
            groups[-1][1].append(line or " ")
    return [
        Hunk(
            after,
            tuple(line[1:] for line in body if line[0] in " -"),
            tuple(line[1:] for line in body if line[0] in " +"),
        )
        for after, body in groups
    ]


def patched(text: str, hunks: tuple[Hunk, ...]) -> str:
    """A file's text with the hunks laid over it, one below the other.

    Raises:
        PatchError: the lines of a hunk do not stand there.
    """
    lines, at = text.splitlines(), 0
    for hunk in hunks:
        if hunk.after and (found := _find(lines, (hunk.after,), at)) is not None:
            at = found + 1
        if not hunk.old:
            at = at if hunk.after else len(lines)
        elif (found := _find(lines, hunk.old, at)) is None:
            raise PatchError(f"the lines to be replaced are not there: {hunk.old[0]!r}, ...")
        else:
            at = found
        lines[at : at + len(hunk.old)] = hunk.new
        at += len(hunk.new)
    return "".join(f"{line}\n" for line in lines)


def _find(lines: list[str], wanted: tuple[str, ...], start: int) -> int | None:
    """Where the lines stand; blanks at their ends do not matter if nothing fits with them."""
    for form in (str, str.rstrip, str.strip):
        sought = [form(line) for line in wanted]
        for at in range(start, len(lines) - len(wanted) + 1):
            if [form(line) for line in lines[at : at + len(wanted)]] == sought:
                return at
    return None
