"""TOML bytes to a plain dictionary, with errors that point at a line and column.

Collection reads thousands of ``task.toml`` files through here, so the parser is tomli: tomllib's
own code, compiled. Its releases from 2.4 on read TOML 1.1, which Harbor refuses. What the keys mean
is for :mod:`pytest_harbor.task.config` (everything) and :mod:`pytest_harbor.task.outline` (the
little that collection needs).
"""

from __future__ import annotations

import codecs
import re
from typing import Any

from pytest_harbor.errors import TaskError

_UTF16_BOMS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_AT = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


def has_bom(data: bytes) -> bool:
    """Tell whether a file starts with the UTF-8 byte order mark."""
    return data.startswith(codecs.BOM_UTF8)


def decode_text(data: bytes, source: str) -> str:
    """Decode a UTF-8 file; a byte order mark at its start is dropped.

    Raises TaskError, naming ``source`` and the first wrong line, for any other encoding.
    """
    if data.startswith(_UTF16_BOMS) or b"\x00" in data[:4]:
        raise TaskError(f"{source}: the file is UTF-16 or binary; save it as UTF-8")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        read = error.object  # what follows the mark, which error.start does not count
        line = read.count(b"\n", 0, error.start) + 1
        raise TaskError(
            f"{source}, line {line}: byte 0x{read[error.start]:02x} is not UTF-8; "
            "save the file as UTF-8"
        ) from error


def parse_toml(data: bytes, source: str) -> dict[str, Any]:
    """Parse TOML 1.0.

    Raises TaskError naming ``source``, the line and the column of a syntax error. A byte order
    mark is dropped (Harbor refuses the file, and then the task is missing without a word).
    """
    import tomli  # here: a run without tasks does not pay for it

    text = decode_text(data, source)
    try:
        return tomli.loads(text)
    except tomli.TOMLDecodeError as error:
        message, place = _place(str(error), text)
        raise TaskError(f"{source}, {place}: {message}; fix the TOML syntax there") from error
    except (RecursionError, ValueError) as error:
        # Arrays nested too deeply, or an integer of thousands of digits.
        raise TaskError(f"{source}: cannot be parsed as TOML: {error}; simplify it") from error


def _place(message: str, text: str) -> tuple[str, str]:
    """Split the parser's message into the complaint and "line L, column C"."""
    found = _AT.search(message)
    if found is None:
        return message, "somewhere"
    complaint = message[: found.start()]
    if found[1]:
        return complaint, f"line {found[1]}, column {found[2]}"
    lines = text.split("\n")
    return complaint, f"line {len(lines)}, column {len(lines[-1]) + 1} (end of file)"
