"""What sidecars printed and recorded, saved while the episode runs: who dies takes it along."""

from __future__ import annotations

from pytest_harbor.episode.record import EpisodeRecord
from pytest_harbor.errors import HarborError, UserError
from pytest_harbor.sandbox.group import Group
from pytest_harbor.user.export import Export, fetch_export
from pytest_harbor.user.sidecar import SimulatedUser

_FOLDER = "services"


def keep_service_logs(
    group: Group, record: EpisodeRecord, user: SimulatedUser | None = None
) -> Export | None:
    """Save each sidecar's output and the simulated user's own records, as far as there are any.

    A sidecar that is gone has nothing to say. Returns what the user handed out.
    """
    for service in (name for name in group.services if name != "main"):
        try:
            text = group.logs(service).decode("utf-8", "replace")
        except HarborError as error:
            record.warn([f"the log of {service} could not be saved: {error}"])
        else:
            record.folder.write_text(f"{_FOLDER}/{service}.log", text)
    if user is None:
        return None
    export = fetch_export(user.service, group)
    if export is not None:
        for name, text in export.files.items():
            record.folder.write_text(f"{_FOLDER}/{user.service}/{name}", text)
        record.warn([f"{user.service}: {note}" for note in export.notes])
    return export


def check_export(export: Export | None) -> None:
    """See in the user's own records whether it could think.

    Raises:
        UserError: it gave an answer that stands for a model that failed (``user_degraded``).
    """
    if export is not None and export.canned:
        raise UserError(
            "the simulated user could not think and gave a stock answer: its events.jsonl holds "
            + ", ".join(f"{name} ({count})" for name, count in export.canned.items()),
            outcome="user_degraded",
        )
