"""B55: logs of any size neither fill memory nor the page."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from page_tools import episodes, packed, read_page
from sample_job import episode, interval, step, write

from pytest_harbor.episode.result import EpisodeResult, TurnRecord

SIZE = 20_000_000
WRITE = """
import resource, sys
from pathlib import Path
from pytest_harbor.report.episodes import read_job
from pytest_harbor.report.html import write_report
job = Path(sys.argv[1])
results = read_job(job)
import jinja2
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
write_report(job, job / "report.html", results)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.fixture
def job(tmp_path: Path) -> Path:
    for number in range(50):
        result = with_logs(f"t{number}")
        folder = write(tmp_path / "job", result, {"agent/a.log": "begin\n", "trajectory.json": ""})
        for name in ("agent/a.log", "trajectory.json"):
            with (folder / name).open("r+b") as file:
                file.truncate(SIZE)
                file.seek(SIZE - 4)
                file.write(b"\nend")
    return tmp_path / "job"


def with_logs(name: str) -> EpisodeResult:
    turn = TurnRecord(
        ran=interval(1), ended="exited", log="agent/a.log", trajectory="trajectory.json"
    )
    return episode(f"d/{name}/task.toml::{name}", [step("task", implicit=True, turn=turn)])


def test_b55_fifty_episodes_with_logs_of_twenty_megabytes(job: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WRITE, str(job)], capture_output=True, text=True, check=True
    )
    grown = int(done.stdout) / 1024
    assert grown < 40, f"{grown:.0f} MB more than before"
    page = job / "report.html"
    assert page.stat().st_size < 25_000_000
    rows = episodes(read_page(page))
    assert len(rows) == 50
    texts = [each["text"] for each in packed(rows[0]) if isinstance(each, dict)]
    assert len(texts) == 2
    assert all("of 20 MB not shown" in text and text.endswith("end") for text in texts)
