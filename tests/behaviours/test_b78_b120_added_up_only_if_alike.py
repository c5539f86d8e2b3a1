"""B78, B120: numbers over two versions of a task or an image say so, wherever they are shown."""

from __future__ import annotations

from pathlib import Path

import pytest
from page_tools import read_page
from sample_job import episode, write

from pytest_harbor.episode.result import EpisodeResult
from pytest_harbor.report.html import write_report
from pytest_harbor.report.lines import render_numbers
from pytest_harbor.report.numbers import numbers

OLD, NEW = "sha256:" + "a" * 64, "sha256:" + "b" * 64


def two(digests: tuple[str, str], images: tuple[str, str]) -> list[EpisodeResult]:
    return [
        episode(
            f"d/t/task.toml::t[attempt{number}]",
            attempt=number,
            task_digest=digest,
            images={"main": image},
        )
        for number, (digest, image) in enumerate(zip(digests, images, strict=True), 1)
    ]


@pytest.mark.parametrize(
    ("digests", "images", "told"),
    [
        ((OLD, NEW), (OLD, OLD), "t: task digest differs"),
        ((OLD, OLD), (OLD, NEW), "t: image of main differs"),
        ((OLD, OLD), (OLD, OLD), ""),
    ],
)
def test_b120_the_terminal_and_the_page(
    tmp_path: Path, digests: tuple[str, str], images: tuple[str, str], told: str
) -> None:
    results = two(digests, images)
    for each in results:
        write(tmp_path, each)
    lines = render_numbers(numbers(tmp_path, results))
    write_report(tmp_path, tmp_path / "r.html", results)
    sections = read_page(tmp_path / "r.html").all("section", class_="alike")
    assert any(told in line for line in lines if "differs" in line) is bool(told)
    assert len(sections) == bool(told)
    assert all(told in section.text for section in sections)
