"""B99: output is cut with a word, its true size is known, and it never fills the memory."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest
from boxes import Bench, a_box, soon

from pytest_harbor.sandbox.container import Cut

pytestmark = pytest.mark.docker

MB = 1 << 20
SIZE = 200 * MB


def peak() -> int:
    """The most memory that this process has ever had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def test_a_log_that_floods(tmp_path: Path) -> None:
    with a_box() as box:
        bench = Bench(box)
        before = peak()
        ran = bench.turn(f"echo first; yes | head -c {SIZE}; echo last")
        assert ran.exit_code == 0
        got = box.get_tree(
            "/logs/agent", tmp_path / "agent", limit_bytes=64 * MB, file_limit=2 * MB
        )
        assert peak() - before < 50 * MB
    assert got.truncated == (Cut("log.txt", SIZE + 11, 2 * MB),)
    text = (tmp_path / "agent/log.txt").read_bytes()
    assert text.startswith(b"first\n")
    assert text.endswith(b"last\n")
    assert b"of %d bytes left out here ...]" % (SIZE + 11) in text
    assert len(text) < 2 * MB + 100


def test_a_command_that_floods() -> None:
    with a_box() as box:
        before = peak()
        ran = box.run(f"yes | head -c {SIZE // 4}", deadline=soon(60), limit=MB)
        assert peak() - before < 50 * MB
        assert ran.output_size == SIZE // 4
        assert len(ran.output) < MB + 100


def test_reading_one_large_file() -> None:
    with a_box() as box:
        box.run(f"head -c {SIZE} /dev/zero >/zeros", deadline=soon())
        before = peak()
        body = box.read("/zeros", limit=1000)
        assert peak() - before < 50 * MB
        assert body is not None
        assert len(body) < 1100
