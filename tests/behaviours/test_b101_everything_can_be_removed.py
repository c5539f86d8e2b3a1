"""B101: what comes out of a container belongs to us, whoever wrote it with whatever mode."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from boxes import a_box, say

pytestmark = pytest.mark.docker


def test_odd_owners_and_modes(tmp_path: Path) -> None:
    with a_box() as box:
        say(
            box,
            "mkdir -p /out/d/e; echo x >/out/d/e/f; chown -R 4711:4712 /out; chmod 0 /out/d/e/f;"
            "chmod 0500 /out/d/e; chmod 0 /out/d",
        )
        box.get_tree("/out", tmp_path / "out", limit_bytes=1000)
    for path in (tmp_path / "out").rglob("*"):
        facts = path.stat()
        assert facts.st_uid == os.getuid()
        assert facts.st_mode & 0o600 == 0o600
        assert not path.is_dir() or facts.st_mode & 0o700 == 0o700
    shutil.rmtree(tmp_path / "out")


def test_folders_without_end(tmp_path: Path) -> None:
    with a_box() as box:
        say(box, "mkdir -p /deep/$(printf 'd/%.0s' $(seq 300)); touch /deep/x")
        got = box.get_tree("/deep", tmp_path / "deep", limit_bytes=1000)
    assert "without end" in got.skipped[0]
    shutil.rmtree(tmp_path / "deep")
