"""Structural zeros: what was handed in has the wrong shape, so nobody tested what it does.

A verifier that checks the shape first (swe-interact 1.8) scores such a thing 0 and leaves the
reason beside the reward: ``structural.json`` with a code, or an ``error`` in ``reward.json``. The
episode is graded and failed; only the reason sets it apart from failed tests.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_harbor.episode.result import EpisodeResult
from pytest_harbor.report.episodes import is_valid
from pytest_harbor.report.text import one_line

FILES = ("structural.json", "reward.json")
_LARGEST = 64_000
_LONGEST_CODE = 60


@dataclass(frozen=True)
class StructuralZero:
    """Why nothing was tested."""

    code: str
    """A word that can be counted."""
    text: str
    """The same for people."""


def find_structural(result: EpisodeResult, folder: Path) -> StructuralZero | None:
    """The reason of a structural zero, from what the last verifier that ran left behind."""
    graded = [step for step in result.steps if step.grade is not None]
    if not graded or not is_valid(result) or result.verdict == "passed":
        return None
    grade, reward = graded[-1].grade, graded[-1].reward
    if grade is None or grade.log is None or reward != 0:
        return None
    verifier = (folder / grade.log).parent
    found = (_read(verifier / name) for name in FILES)
    return next((each for each in found if each is not None), None)


def _read(path: Path) -> StructuralZero | None:
    document = _document(path)
    code, text = document.get("code"), document.get("error")
    if document.get("reward", 0) != 0 or not isinstance(text, str):
        return None
    named = code if isinstance(code, str) and code.strip() else text
    return StructuralZero(one_line(named, _LONGEST_CODE), one_line(text))


def _document(path: Path) -> dict[str, Any]:
    """A small file's JSON object; nothing of a link, for it may lead anywhere."""
    try:
        if path.is_symlink() or path.stat().st_size > _LARGEST:
            return {}
        document = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}
