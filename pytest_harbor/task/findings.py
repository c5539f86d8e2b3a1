"""What is found while a task folder is read: problems, warnings, and readers that note them.

A reader of :class:`Findings` never raises TaskError: it notes the problem and returns None, so
that one look at a folder finds everything that is wrong with it.
"""

from __future__ import annotations

import codecs
import difflib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from pytest_harbor.errors import TaskError
from pytest_harbor.task.files import inside, read_bytes, show
from pytest_harbor.task.trees import IGNORE_FILE, upload_tree

T = TypeVar("T")


def exists(path: Path) -> bool:
    """Whether something is there, a symlink that leads nowhere included.

    Unlike in pathlib an OSError for another reason is raised: what may not be seen is not absent.
    """
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


@dataclass
class Findings:
    """The problems and warnings of one task folder."""

    task: Path
    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def attempt(self, read: Callable[[], T]) -> T | None:
        """Call a reader; its TaskError becomes one of the problems, and the result None."""
        try:
            return read()
        except TaskError as error:
            self.problems.append(str(error))
            return None

    def missing(self, path: Path, remedy: str) -> None:
        """Note that a file or folder is not there, and what is there under a similar name."""
        near = ""
        if path.parent.is_dir():
            others = {entry.name.casefold(): entry.name for entry in path.parent.iterdir()}
            close = difflib.get_close_matches(path.name.casefold(), others, n=1, cutoff=0.6)
            near = f" (there is {others[close[0]]!r})" if close else ""
        self.problems.append(f"{show(path, self.task)} is missing{near}; {remedy}")

    def folder(self, path: Path) -> Path | None:
        """Return a folder that may be there; anything else in its place is a problem."""
        if not exists(path) or self.attempt(lambda: inside(path, self.task)) is None:
            return None
        if not path.is_dir():
            self.problems.append(f"{show(path, self.task)} is not a folder; make it one")
            return None
        return path

    def file(self, path: Path) -> Path | None:
        """Return a readable file that may be there; anything else in its place is a problem."""
        if not exists(path) or self.attempt(lambda: read_bytes(path, self.task)) is None:
            return None
        return path

    def script(self, path: Path) -> Path | None:
        """Return a script that may be there, with a warning where it cannot run as it is."""
        data = self.attempt(lambda: read_bytes(path, self.task)) if exists(path) else None
        if data is None:
            return None
        if path.suffix == ".sh" and b"\r\n" in data:
            self.warnings.append(
                f"{show(path, self.task)} has Windows line ends (CRLF), which a shell takes for "
                "a part of each line's last word; save it with LF"
            )
        if data.startswith(codecs.BOM_UTF8):
            self.warnings.append(
                f"{show(path, self.task)} starts with a byte order mark, which hides its first "
                "line; save it as UTF-8 without BOM"
            )
        return path

    def tree(self, root: Path, *, required: str | None = None, harborignore: bool = True) -> None:
        """Check a tree that will be uploaded; its required script must not be ignored."""
        files = self.attempt(lambda: upload_tree(root, task=self.task, harborignore=harborignore))
        if required is None or files is None or not (root / required).is_file():
            return
        if not any(file.path.as_posix() == required for file in files):
            self.problems.append(
                f"{show(root, self.task)}/{required} is excluded by a {IGNORE_FILE}, but it is "
                "needed; take it out of the patterns"
            )

    def raise_if_any(self) -> None:
        """Raise one TaskError with all problems, a line each, if there are any."""
        if self.problems:
            head = f"task {self.task.name!r} cannot be run ({self.task}):"
            raise TaskError("\n  ".join([head, *dict.fromkeys(self.problems)]))
