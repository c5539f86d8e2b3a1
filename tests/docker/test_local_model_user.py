"""A whole SWE-Interact episode whose user is a real model: on this machine, and from a recording.

The recording was made by the first test's run, with ``--harbor-record tests/docker/recordings``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from test_swe_interact_models import ROOT, TASK, Run, run

from pytest_harbor.episode.outcome import Outcome

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
RECORDING = HERE / "recordings"
LONGEST: Final = 30
"""Tokens of an answer: what a test has time for."""


def asking_recipe(place: Path) -> Path:
    """The dataset's recipe for the local model, with an agent that only asks."""
    client = (ROOT / TASK / "steps/01_plan/solution/ask_user.py").read_text()
    agent = (HERE / "asking_agent.sh").read_text()
    command = f"cat > /tmp/ask_user.py <<'PYTHON'\n{client}PYTHON\n{agent}"
    values = yaml.safe_load((ROOT / "datasets/swe_interact/local.yaml").read_text())
    values["model_servers"]["user_model"]["extra_body"]["max_tokens"] = LONGEST
    path = place / "recipe.yaml"
    path.write_text(yaml.safe_dump(values | {"agent": {"name": "command", "command": command}}))
    return path


def heard(played: Run) -> list[Any]:
    """What the user answered, as it recorded it itself."""
    return [each["answer"] for each in played.asked()]


def recorded() -> list[Any]:
    """What the model answered when the recording was made."""
    (file,) = RECORDING.glob("*/user.jsonl")
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    return [
        line["body"]["choices"][0]["message"]["content"].strip()
        for line in lines
        if "exchange" in line
    ]


def check_whole(played: Run, provider: str) -> None:
    """Every step was played and graded, and each answer is one real call's."""
    assert played.result.outcome == Outcome.FAILED, played.done.stdout
    assert played.result.reward == 0
    assert [step.grade is not None for step in played.result.steps] == [True] * 5
    assert [call["provider"] for call in played.calls] == [provider] * 3
    assert [call["step"] for call in played.calls] == ["01_plan", "01_plan", "02_implement"]
    for call in played.calls:
        assert call["usage"]["input"] > 1000
        assert 0 < call["usage"]["output"] <= LONGEST
    user = played.result.parties["user"]
    assert (user.calls, user.failed) == (3, 0)
    assert user.models == ("SmolLM2-135M-Instruct",)
    log = (played.folder / "steps/01_plan/agent/command.txt").read_text()
    assert len(heard(played)) == 3
    assert all(answer in log for answer in heard(played)[:2])


@pytest.mark.local_model
def test_a_real_model_plays_the_user(tmp_path: Path) -> None:
    played = run(tmp_path / "jobs", asking_recipe(tmp_path))
    check_whole(played, "local")


def test_a_real_models_episode_is_played_again_without_it(tmp_path: Path) -> None:
    played = run(tmp_path / "jobs", asking_recipe(tmp_path), "--harbor-replay", str(RECORDING))
    check_whole(played, "replay")
    assert heard(played) == recorded()
    assert not any("not asked for" in warning for warning in played.result.warnings)
