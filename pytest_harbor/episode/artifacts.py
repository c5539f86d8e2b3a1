"""What is kept of a step's container: collect hooks, then artifacts with their manifest.

Best effort (harbor-format 2.8, 3.3): what cannot be had is a line in the manifest, never a fault;
only a dead ``main`` is one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pytest_harbor.episode.result import ArtifactRecord
from pytest_harbor.errors import HarborError, SandboxError
from pytest_harbor.sandbox.container import Container
from pytest_harbor.sandbox.group import Group
from pytest_harbor.task.schema import Artifact, CollectHook
from pytest_harbor.task.timeouts import Deadline

PUBLISHED = "/logs/artifacts"
_MANIFEST = "manifest.json"
_LIMIT_BYTES = 512 * 1024 * 1024


def run_hooks(hooks: Iterable[CollectHook], group: Group) -> tuple[str, ...]:
    """Run collect hooks, those of main first; returns a warning for each that failed."""
    warnings = []
    for hook in sorted(hooks, key=lambda hook: hook.service != "main"):
        trouble = _run_hook(hook, group)
        if trouble:
            warnings.append(f"collect hook {hook.command!r} in {hook.service}: {trouble}")
    return tuple(warnings)


def _run_hook(hook: CollectHook, group: Group) -> str:
    limit = Deadline.after(hook.timeout_sec, "[[verifier.collect]] timeout_sec")
    try:
        container = group.container(hook.service)
        ran = container.run(hook.command, user=hook.user, deadline=limit)
    except HarborError as error:
        if hook.service == "main" and error.outcome == "sandbox_died":
            raise
        return str(error)
    if ran.timed_out:
        return f"timed out ({ran.limit})"
    said = ran.output.decode("utf-8", "replace").strip()[-300:]
    return f"exited with {ran.exit_code}: {said}" if ran.exit_code else ""


def collect(artifacts: Iterable[Artifact], group: Group, into: Path) -> tuple[ArtifactRecord, ...]:
    """Copy artifacts to ``into`` and write ``manifest.json`` there; returns its lines.

    ``/logs/artifacts`` of main comes first unless it is declared, other services after main. Of
    two artifacts that would lie at the same place, the first wins and the other is skipped.
    """
    declared = sorted(artifacts, key=lambda artifact: artifact.service != "main")
    if not any(a.service == "main" and a.source.rstrip("/") == PUBLISHED for a in declared):
        declared.insert(0, Artifact(source=PUBLISHED))
    taken = [into / _MANIFEST]
    records = tuple(_collect_one(artifact, group, into, taken) for artifact in declared)
    manifest = [_line(record) for record in records]
    into.mkdir(parents=True, exist_ok=True)
    (into / _MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
    return records


def _line(record: ArtifactRecord) -> dict[str, Any]:
    """A record as Harbor's tools read it, in their order: main is no service, all have a type."""
    return {
        "source": record.source,
        "destination": f"artifacts/{record.destination}",
        "type": record.type or "file",
        "status": record.status,
        "service": None if record.service == "main" else record.service,
        "exclude": list(record.exclude),
    }


def _collect_one(artifact: Artifact, group: Group, into: Path, taken: list[Path]) -> ArtifactRecord:
    source = artifact.source
    record = ArtifactRecord(
        source=source,
        destination=artifact.destination or source.lstrip("/"),
        status="failed",
        service=artifact.service,
        exclude=artifact.exclude,
    )
    place = into / record.destination
    if any(place == t or place in t.parents or t in place.parents for t in taken):
        return record.model_copy(update={"status": "skipped", "note": "its place is taken"})
    taken.append(place)
    try:
        container = group.container(artifact.service)
        return record.model_copy(update=_fetch(container, artifact, place))
    except SandboxError as error:
        if artifact.service == "main" and error.outcome == "sandbox_died":
            raise
        return record.model_copy(update={"note": str(error)})
    except (HarborError, OSError) as error:
        return record.model_copy(update={"note": str(error)})


def _fetch(container: Container, artifact: Artifact, place: Path) -> dict[str, str]:
    path = artifact.source
    if not path.startswith("/"):
        path = f"{container.workdir.rstrip('/')}/{path}"
    got = container.get_tree(path, place, exclude=artifact.exclude, limit_bytes=_LIMIT_BYTES)
    if not got.found:
        return {"status": "failed", "note": f"{path} does not exist"}
    note = "; ".join(got.skipped[:20])
    if not got.is_folder and not got.files:
        return {"status": "failed", "note": note}
    kind = "directory" if got.is_folder else "file"
    status = "ok" if got.files else "empty"
    return {"status": status, "type": kind, "note": note}
