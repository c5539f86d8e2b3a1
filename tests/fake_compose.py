"""A stand-in for the Compose plugin, found before the real one: it notes calls, and may fail."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from pytest_harbor.sandbox.compose import find_command

_WRAPPER = """#!/bin/sh
note() {{ echo "$1 $$" >>{log}; }}
for word in "$@"; do
    case "$word" in config|up|build) note "$word"; break ;; esac
done
{body}
{real} "$@"
code=$?
note "end-$word"
exit $code
"""


def wrapped_compose(folder: Path, body: str = "") -> Mapping[str, str]:
    """An environment in which Compose is a script: ``body``, with $word the command, then Compose.

    What it was asked is in ``calls(folder)``.
    """
    plugins = folder / "docker-config" / "cli-plugins"
    plugins.mkdir(parents=True)
    (real,) = find_command(os.environ)
    plugin = plugins / "docker-compose"
    plugin.write_text(_WRAPPER.format(log=folder / "calls", body=body, real=real))
    plugin.chmod(0o755)
    return {
        **os.environ,
        "DOCKER_CONFIG": str(plugins.parent),
        "PYTEST_HARBOR_STATE_DIR": str(folder / "state"),
    }


def calls(folder: Path) -> list[str]:
    """The commands so far, in order: ``build``, ``end-build``, ..."""
    path = folder / "calls"
    return [line.split()[0] for line in path.read_text().splitlines()] if path.exists() else []
