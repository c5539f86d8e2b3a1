"""Users of a container by name or number, as its own /etc/passwd and /etc/group have them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class UserIds:
    """A user as the container's own /etc/passwd has it."""

    name: str
    uid: int
    gid: int
    home: str


def look_up(asked: str, read: Callable[[str], str]) -> UserIds:
    """Find a user as the engine does: a name or uid, and after a colon a group's name or number.

    ``read`` returns the text of a file. A number that the tables do not know is a user of group 0
    at home in ``/``; a name that they do not know is a LookupError that says whom they know.
    """
    name, _, group = asked.partition(":")
    if name in ("root", "0", "") and group in ("", "root", "0"):
        return UserIds("root", 0, 0, "/root")
    people = [row for row in _rows(read("/etc/passwd")) if len(row) >= 6]
    row = next((row for row in people if row[0] == name), None)
    if row is None and name.isdecimal():
        row = next((row for row in people if row[2] == name), [name, "", name, "0", "", "/"])
    if row is None:
        known = ", ".join(row[0] for row in people) or "nobody at all"
        raise LookupError(f"has no user {name!r}; its /etc/passwd knows {known}")
    gid = _group(group, read) if group else int(row[3])
    return UserIds(row[0], int(row[2]), gid, row[5] or "/")


def _group(group: str, read: Callable[[str], str]) -> int:
    if group.isdecimal():
        return int(group)
    groups = {row[0]: row[2] for row in _rows(read("/etc/group")) if len(row) >= 3}
    if group not in groups:
        raise LookupError(f"has no group {group!r}; its /etc/group knows {', '.join(groups)}")
    return int(groups[group])


def _rows(text: str) -> list[list[str]]:
    return [line.split(":") for line in text.splitlines() if line.strip()]
