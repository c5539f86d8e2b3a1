"""The page on writing a task: copied to disk as it stands, its tasks do what it says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "tasks.md"
# A path at the beginning of a line, some text up to an empty line, and what the file holds.
FILE = re.compile(
    r"^`(market/[^`]+)`(?:(?!\n\n|^```).)*\n\n```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL
)
WRONG = re.compile(r"^makes a mistake.*?`wrong\.yaml`.*?```yaml\n(.*?)^```$", re.M | re.S)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page's files."""
    folder = tmp_path_factory.mktemp("page")
    text = PAGE.read_text()
    for name, content in FILE.findall(text):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    (folder / "wrong.yaml").write_text(WRONG.findall(text)[0])
    (folder / "pytest.ini").write_text("[pytest]\n")
    return folder


def play(folder: Path, *words: str) -> list[str]:
    """Run the tasks; return the outcome lines."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "market", "-p", "no:cacheprovider", *words],
        cwd=folder,
        env={k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    found = re.findall(r"^(buy-fruit|sort-names) +(\w+) +([\d.]+|—)", done.stdout, re.MULTILINE)
    assert found, done.stdout + done.stderr
    return [" ".join(words) for words in sorted(found)]


def test_every_file_that_is_named_is_there(folder: Path) -> None:
    named = set(re.findall(r"^`(market/[^`]+)`", PAGE.read_text(), re.MULTILINE))
    made = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert named == made - {"wrong.yaml", "pytest.ini"}


def test_oracle_passes_nop_and_a_mistake_do_not(folder: Path) -> None:
    assert play(folder, "--harbor-agent", "oracle", "--harbor-strict") == [
        "buy-fruit passed 1.0",
        "sort-names passed 1.0",
    ]
    assert play(folder, "--harbor-agent", "nop") == [
        "buy-fruit gate_stopped 0.0",
        "sort-names failed 0.0",
    ]
    assert play(folder, "-k", "sort", "--harbor-recipe", "wrong.yaml") == ["sort-names failed 0.0"]
