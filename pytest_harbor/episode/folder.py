"""The run folder: one folder per episode in Harbor's trial layout, written as things happen.

``result.json`` is there from the start, says "interrupted" until the episode has ended, and is
replaced whole after each step: whoever kills a run loses at most the step in flight. All text
leaves for disk through this room, past the redactor.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pytest_harbor.episode.result import EpisodeResult
from pytest_harbor.episode.trial import trial_document
from pytest_harbor.redaction import Redactor

_TEXT_LIMIT = 64 * 1024 * 1024
"""Larger files are not searched for secrets; agents' logs are capped far below it."""


def episode_name(task_name: str, key: str) -> str:
    """The folder name of an episode: ``<task[:32]>__<7 hex of the key>``.

    ``key`` names path, parameters and attempt (under pytest: the node id), so the name is the same
    in every process and in a resumed run.
    """
    slug = re.sub(r"[^A-Za-z0-9._-]+", "-", task_name)[:32].strip("._-") or "task"
    return f"{slug}__{hashlib.sha256(key.encode()).hexdigest()[:7]}"


@dataclass(frozen=True)
class StepFolder:
    """Where one step's files go: under ``steps/<name>``, or at the root for an implicit step."""

    root: Path

    @property
    def agent(self) -> Path:
        """Logs of the turn."""
        return self.root / "agent"

    @property
    def verifier(self) -> Path:
        """What grading wrote."""
        return self.root / "verifier"

    @property
    def artifacts(self) -> Path:
        """What the step's artifacts and collect hooks brought."""
        return self.root / "artifacts"


class EpisodeFolder:
    """Writes one episode's files. Paths handed out in results are relative to ``path``."""

    def __init__(self, job: Path, name: str, redactor: Redactor | None = None) -> None:
        self.path = job / name
        self.name = name
        self.redactor = redactor or Redactor(())

    def begin(self, *, config: Mapping[str, Any]) -> None:
        """Make the folder afresh and write what is about to run."""
        shutil.rmtree(self.path, ignore_errors=True)
        self.path.mkdir(parents=True)
        self._write("config.json", _json(self.redactor.data(dict(config))))

    def step(self, name: str, *, implicit: bool) -> StepFolder:
        """Make the folders of a step."""
        folder = StepFolder(self.path if implicit else self.path / "steps" / name)
        for each in (folder.agent, folder.verifier, folder.artifacts):
            each.mkdir(parents=True, exist_ok=True)
        return folder

    def event(self, kind: str, **details: Any) -> None:
        """Append a line to events.jsonl; the terminal's live view reads it."""
        line = {"at": datetime.now(UTC).isoformat(), "event": kind, **details}
        text = self.redactor.text(json.dumps(line, default=str))
        with (self.path / "events.jsonl").open("a", encoding="utf-8") as file:
            file.write(text + "\n")

    def write_result(self, result: EpisodeResult, *, interim: bool = False) -> EpisodeResult:
        """Write result.json whole; returns the result as it now stands on disk, redacted.

        ``interim``: a better one will follow, unless the run is killed. It is not laid out for
        readers: that takes six times as long, and there is one after each step.
        """
        clean = EpisodeResult.model_validate(self.redactor.data(result.plain()))
        document = {**trial_document(clean, self.path), "pytest_harbor": clean.plain()}
        text = json.dumps(document, ensure_ascii=False) if interim else _json(document)
        self._write("result.json", text)
        return clean

    def remove_result(self) -> None:
        """Take ``result.json`` away, so that no report counts this folder as an episode."""
        (self.path / "result.json").unlink(missing_ok=True)

    def write_text(self, relative: str, text: str) -> str:
        """Write a text file below the folder; returns ``relative``."""
        self._write(relative, self.redactor.text(text))
        return relative

    def redact(self, folder: Path) -> None:
        """Take secrets out of files that came from a container."""
        for path in folder.rglob("*"):
            if path.is_symlink() or not path.is_file() or path.stat().st_size > _TEXT_LIMIT:
                continue
            body = path.read_bytes()
            clean = self.redactor.bytes(body)
            if clean != body:
                path.write_bytes(clean)

    def relative(self, path: Path) -> str:
        """A path below the folder as results name it."""
        return path.relative_to(self.path).as_posix()

    def _write(self, relative: str, text: str) -> None:
        path = self.path / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_name(f".{path.name}.new")
        beside.write_text(text, encoding="utf-8", errors="replace")
        beside.replace(path)


def _json(data: Any) -> str:
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"
