"""B102: what is laid for a user can be changed by that user."""

from __future__ import annotations

from pathlib import Path

import pytest
from boxes import a_box, say

from pytest_harbor.sandbox.container import Entry

pytestmark = pytest.mark.docker


@pytest.mark.parametrize("user", [1000, "www-data", "1000:33"])
def test_files_and_folders_are_writable(tmp_path: Path, user: str | int) -> None:
    source = tmp_path / "notes.md"
    source.write_text("draft\n")
    with a_box() as box:
        owner = box.user(user)
        box.put(
            [
                Entry("/app", None, 0o755, owner.uid, owner.gid),
                Entry("/app/notes.md", source, 0o644, owner.uid, owner.gid),
                Entry("/app/sub", None, 0o755, owner.uid, owner.gid),
            ]
        )
        script = "echo final >>notes.md; touch new sub/new; stat -c '%u:%g' . notes.md sub"
        said = say(box, script, user=user, workdir="/app")
    assert set(said.split()) == {f"{owner.uid}:{owner.gid}"}
