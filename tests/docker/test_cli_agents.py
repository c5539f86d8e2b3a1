"""Real coding-agent CLIs in the container: a scripted model, the scripted user, whole episodes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
import yaml
from cli_rules import calls_of_the_user, rules_for

from pytest_harbor.episode.outcome import Outcome
from pytest_harbor.episode.result import EpisodeResult

pytestmark = [pytest.mark.docker, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
TASK = ROOT / "datasets/swe_interact/feature_tally_budgets"
OTHERS = ("gemini-cli", "qwen-code", "kimi-code")
AGENTS = (
    *("codex", "claude-code", "opencode"),
    *(pytest.param(name, marks=pytest.mark.slow_cli) for name in OTHERS),
)


@dataclass(frozen=True)
class Run:
    """A finished run of the one task."""

    done: subprocess.CompletedProcess[str]
    folder: Path

    @cached_property
    def result(self) -> EpisodeResult:
        result = EpisodeResult.read(self.folder)
        assert result is not None
        return result

    def lines(self, path: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder / path).read_text().splitlines()]


def run(place: Path, agent: str, *options: str, **recipe: Any) -> Run:
    (place / "rules.yaml").write_text(yaml.safe_dump(rules_for(TASK)))
    server = {"provider": "script", "rules": "rules.yaml"}
    values = {"model_servers": {"policy": server}, **recipe}
    (place / "recipe.yaml").write_text(yaml.safe_dump(values))
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", str(TASK.relative_to(ROOT)), "-q"),
            *("-p", "no:cacheprovider", "--harbor-recipe", str(place / "recipe.yaml")),
            *("--harbor-jobs-dir", str(place), "--harbor-job-name", "job"),
            *("--harbor-agent", agent, "--harbor-model", "openai/scripted", *options),
        ],
        cwd=ROOT,
        env=inherited,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    (path,) = place.glob("job/*/result.json")
    return Run(done, path.parent)


@pytest.mark.parametrize("agent", AGENTS)
def test_five_steps_with_the_real_cli(tmp_path: Path, agent: str) -> None:
    played = run(tmp_path, agent)
    result = played.result
    assert result.outcome == Outcome.PASSED, played.done.stdout
    assert result.reward == 1
    asked = [(step.grants[0].calls or {}).get("ask_user") for step in result.steps]
    assert asked == calls_of_the_user(TASK)
    assert [step.grants[0].offered for step in result.steps] == [("ask_user",)] * 5
