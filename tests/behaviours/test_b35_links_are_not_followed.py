"""B35: what comes out of a container never leads out of the folder that it is put into."""

from __future__ import annotations

from pathlib import Path

import pytest
from boxes import a_box, say

pytestmark = pytest.mark.docker


def test_links_that_an_agent_planted(tmp_path: Path) -> None:
    with a_box() as box:
        say(
            box,
            "mkdir -p /app/tree/sub; cd /app; ln -s /etc/passwd out; cd tree; ln -s /etc/shadow s;"
            "ln -s ../../../../../../etc e; echo 1 >sub/x; ln -s sub/x inner; ln -s sub/../.. up;"
            "mkfifo pipe; chmod 0 sub/x; cp /bin/ls su; chmod 6755 su; ln sub/x hard",
        )
        alone = box.get_tree("/app/out", tmp_path / "out", limit_bytes=10**6)
        assert (alone.files, alone.skipped) == (0, ("out (a link to /etc/passwd)",))
        assert not (tmp_path / "out").exists()
        got = box.get_tree("/app/tree", tmp_path / "tree", limit_bytes=10**6)
    assert sorted(skipped.partition(" ")[0] for skipped in got.skipped) == ["e", "pipe", "s", "up"]
    assert (tmp_path / "tree/inner").read_bytes() == b"1\n"
    assert (tmp_path / "tree/hard").read_bytes() == b"1\n"
    assert not (tmp_path / "tree/su").stat().st_mode & 0o6000
    for path in (tmp_path / "tree").rglob("*"):
        assert path.resolve().is_relative_to(tmp_path)
