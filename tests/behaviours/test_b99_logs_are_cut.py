"""B99: output without end costs neither the host's memory nor its disk, and is cut with a word."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest
from episodes import Part, many_steps, play

pytestmark = [pytest.mark.docker, pytest.mark.slow]


def test_b99_half_a_gigabyte_of_output(tmp_path: Path) -> None:
    flood = "echo the beginning; yes | head -c 500M; echo the end"
    test = "yes | head -c 60M; echo 1 > /logs/verifier/reward.txt"
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    played = play(many_steps(tmp_path, "", Part(flood, test), Part()))
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert played.result.reward == 1
    assert grown < 150_000, "KiB"
    kept = sum(path.stat().st_size for path in played.folder.rglob("*") if path.is_file())
    assert kept < 20_000_000
    log = (played.folder / "steps/one/agent/oracle.txt").read_bytes()
    assert log.startswith(b"the beginning\ny\n")
    assert log.endswith(b"y\nthe end\n")
    assert b"524288" in log  # the mark in between names the size
    assert played["one"].warnings == (
        "/logs/agent/oracle.txt has 524.3 MB; 8.4 MB were kept",
        "/logs/verifier/test-stdout.txt has 62.9 MB; 8.4 MB were kept",
    )
