"""Reading the files of a CLI log: leniently, and with a note for whatever is no good."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from pytest_harbor.plain import plain_text

Line = dict[str, Any]

TEXT_LIMIT: Final = 200_000
"""Characters that are kept of one text; more are cut out of its middle, with a mark."""


def read_lines(path: Path, note: Callable[[str], None]) -> list[Line]:
    """The JSON objects of a file of JSON lines; other lines are counted in a note."""
    lines, broken = [], 0
    for text in read_text(path, note).split("\n"):
        line = _parsed(text)
        if isinstance(line, dict):
            lines.append(line)
        elif text.strip():
            broken += 1
    if broken:
        note(f"{path.name}: {broken} of {broken + len(lines)} lines are no JSON objects")
    return lines


def read_json(path: Path, note: Callable[[str], None]) -> Line:
    """The JSON object in a file; empty with a note when there is none."""
    text = read_text(path, note)
    found = _parsed(text)
    if isinstance(found, dict):
        return found
    if text:
        note(f"{path.name} is no JSON object")
    return {}


def read_text(path: Path, note: Callable[[str], None]) -> str:
    """The text of a file; empty with a note when it cannot be read."""
    try:
        return path.read_bytes().decode("utf-8-sig", "replace")
    except OSError as error:
        note(f"{path.name} cannot be read: {error.strerror}")
        return ""


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def logs_named(folder: Path, pattern: str) -> list[Path]:
    """The files below a folder that a pattern fits, by name; links are left alone."""
    if not folder.is_dir():
        return []
    found = (path for path in folder.rglob(pattern) if path.is_file() and not path.is_symlink())
    return sorted(found, key=lambda path: (path.name, str(path)))


def the_one(paths: Sequence[Path], session: str | None, note: Callable[[str], None]) -> Path | None:
    """The log that carries the session's id in its name, else the last; others get a note."""
    own = [path for path in paths if session and session in path.name]
    chosen = (own or paths)[-1] if own or paths else None
    others = [path.name for path in paths if path != chosen]
    if others:
        note(f"{len(others)} other session logs were not read: {', '.join(others[:5])}")
    return chosen


def table(value: Any, *keys: str) -> Line:
    """What stands under the keys, one in the other; empty where it is no object."""
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, dict) else {}


def tables(value: Any) -> Iterator[Line]:
    """The objects in a list; of what is no list, none."""
    for each in value if isinstance(value, list) else ():
        if isinstance(each, dict):
            yield each


def amount(value: Any) -> float | None:
    """A sum of money, if it is one."""
    is_one = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_one and math.isfinite(value) else None


def number(value: Any) -> int | None:
    """A count, if it is one."""
    found = amount(value)
    return int(found) if found is not None and found.is_integer() else None


def total(values: Iterable[int | None]) -> int | None:
    """The sum of what is known; None when nothing is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def moment(value: Any) -> str | None:
    """A time as ISO 8601, from such a text or from milliseconds since the epoch."""
    try:
        if isinstance(value, int | float):
            return datetime.fromtimestamp(value / 1000, UTC).isoformat(timespec="milliseconds")
        datetime.fromisoformat(str(value).replace("Z", "+00:00"))
    except (ValueError, OverflowError, OSError):
        return None
    return str(value)


def flat(content: Any) -> str:
    """Any content of a message or result as text; media leave a mark."""
    if content is None:
        return ""
    if isinstance(content, str):
        return bounded(plain_text(content))
    if isinstance(content, list):
        return bounded("\n".join(filter(None, map(_piece, content))))
    return _piece(content)


def _piece(part: Any) -> str:
    if isinstance(part, dict):
        for key in ("text", "thinking"):
            if isinstance(part.get(key), str):
                return plain_text(part[key])
        kind = str(part.get("type", ""))
        if "image" in kind or "audio" in kind:
            return f"[{kind}: {len(json.dumps(part, default=str))} characters left out]"
    if isinstance(part, str):
        return plain_text(part)
    return bounded(plain_text(json.dumps(part, ensure_ascii=False, default=str)))


def bounded(text: str, limit: int = TEXT_LIMIT) -> str:
    """The text, or its beginning and end around a mark."""
    if len(text) <= limit:
        return text
    head, tail = limit * 2 // 3, limit // 3
    return f"{text[:head]}\n[... {len(text) - head - tail} characters left out ...]\n{text[-tail:]}"


def turn_start(
    lines: Sequence[Line], prompt: Callable[[Line], str | None], instruction: str
) -> int | None:
    """Where this turn begins: the last prompt that holds the instruction, else the last one.

    ``prompt`` gives the text of a line that is a prompt of the user's, and None for all others.
    """
    prompts = [(at, text) for at, line in enumerate(lines) if (text := prompt(line)) is not None]
    asked = instruction.strip()
    own = [at for at, text in prompts if asked and asked in text]
    found = own or [at for at, _ in prompts]
    return found[-1] if found else None
