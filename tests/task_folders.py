"""Small task folders for tests, and the way to the case files that are not part of this project."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).parents[1]

SINGLE: dict[str, str | bytes | None] = {
    "task.toml": "",
    "instruction.md": "Do it.\n",
    "environment/Dockerfile": "FROM scratch\n",
    "tests/test.sh": "#!/bin/bash\necho 1 > /logs/verifier/reward.txt\n",
}


def write_files(folder: Path, files: dict[str, str | bytes | None]) -> Path:
    """Write files by relative path; None leaves one out."""
    for name, content in files.items():
        if content is None:
            continue
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def write_task(folder: Path, toml: str | bytes = "", **changes: str | bytes | None) -> Path:
    """Write a task of one implicit step; ``changes`` by path (``**{"tests/test.sh": None}``)."""
    return write_files(folder, SINGLE | {"task.toml": toml} | changes)


def write_steps(
    folder: Path, *names: str, toml: str | None = None, **changes: str | bytes | None
) -> Path:
    """Write a task of declared steps, each with an instruction and a test of its own."""
    files: dict[str, str | bytes | None] = {
        "task.toml": toml or "".join(f"[[steps]]\nname = {name!r}\n" for name in names),
        "environment/Dockerfile": "FROM scratch\n",
    }
    for name in names:
        files[f"steps/{name}/instruction.md"] = f"Do {name}.\n"
        files[f"steps/{name}/tests/test.sh"] = "#!/bin/bash\n"
    return write_files(folder, files | changes)


def cases_folder() -> Path | None:
    """Find the case files: ``PYTEST_HARBOR_CASES``, or ``shared/cases`` beside or above us."""
    named = os.environ.get("PYTEST_HARBOR_CASES")
    if named:
        return Path(named)
    places = (parent / "shared" / "cases" for parent in (ROOT, *ROOT.parents))
    return next((place for place in places if place.is_dir()), None)


def cases_required() -> bool:
    """Whether a run without the case files must fail instead of skipping their tests."""
    return bool(os.environ.get("CI") or os.environ.get("PYTEST_HARBOR_REQUIRE_CASES"))
