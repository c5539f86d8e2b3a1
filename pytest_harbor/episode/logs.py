"""Log folders on their way to the run folder: bounded, and with a word for whatever is not kept.

A program that floods its log must not flood the host (B99): of a large file beginning and end are
kept around a mark that names its size.
"""

from __future__ import annotations

from pathlib import Path

from pytest_harbor.sandbox.container import Container

FILE_LIMIT = 8 * 1024 * 1024
"""Bytes that are kept of one file."""
_LIMIT = 128 * 1024 * 1024
_NAMED = 20


def get_logs(container: Container, folder: str, into: Path) -> tuple[str, ...]:
    """Copy a log folder out of a container; returns a warning for all that is not kept whole.

    Raises:
        SandboxError: the container is gone.
    """
    got = container.get_tree(folder, into, limit_bytes=_LIMIT, file_limit=FILE_LIMIT)
    cut = [
        f"{folder}/{one.path} has {_megabytes(one.size)}; {_megabytes(one.kept)} were kept"
        for one in got.truncated[:_NAMED]
    ]
    return (*cut, *(f"{folder}: not kept: {each}" for each in got.skipped[:_NAMED]))


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"
