"""The docs name what exists, and everything that exists."""

from __future__ import annotations

import re
from pathlib import Path

from pytest_harbor.episode.outcome import Outcome
from pytest_harbor.options import SETTINGS
from pytest_harbor.recipe_keys import NAMED_TABLES
from pytest_harbor.settings import known_keys

ROOT = Path(__file__).parents[2]
DOCS = {path.name: path.read_text() for path in (ROOT / "docs").glob("*.md")}
PAGES = {**DOCS, "README.md": (ROOT / "README.md").read_text()}


def test_every_option_is_told_and_no_other() -> None:
    known = {setting.option for setting in SETTINGS}
    told = set(re.findall(r"--harbor-[a-z-]+", DOCS["usage.md"]))
    assert told == known
    for name, text in PAGES.items():
        assert set(re.findall(r"--harbor-[a-z-]+", text)) <= known, name


def test_every_recipe_key_is_told() -> None:
    rows = re.findall(r"^\| `([a-z_.<>*]+)`(, `(\.[a-z]+)`)?", DOCS["recipe.md"], re.MULTILINE)
    told = {key for key, _, _ in rows}
    told |= {key.rpartition(".")[0] + further for key, _, further in rows if further}
    for key in known_keys() - set(NAMED_TABLES):
        phase = re.sub(r"^timeouts\.(start|setup|agent|verifier)\.", "timeouts.<phase>.", key)
        assert phase in told, key
    assert {key for key in told if not key.endswith("*")} <= {
        re.sub(r"^timeouts\.agent\.", "timeouts.<phase>.", key) for key in known_keys()
    }


def test_every_outcome_is_told_with_its_meaning() -> None:
    for outcome in Outcome:
        meaning = outcome.meaning
        row = next(x for x in DOCS["outcomes.md"].splitlines() if x.startswith(f"| `{outcome}` |"))
        assert meaning.text in row
        if meaning.trusted:
            assert f"| {meaning.shown} |" in row
        else:
            assert f"| {'yes' if meaning.retry else 'no'} |" in row


def test_links_lead_somewhere() -> None:
    for name, text in PAGES.items():
        base = ROOT if name == "README.md" else ROOT / "docs"
        for target in re.findall(r"\]\((?!http)([^)#]+)", text):
            assert (base / target).exists(), f"{name}: {target}"
