"""A whole SWE-Interact episode whose user is a real model: on this machine, and from a recording.

The recordings are what the last test's real run leaves in ``recordings`` of its folder: call it
with ``-k real --basetemp=FOLDER``, and copy them here when a task or a user's words have changed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from test_swe_interact_models import ROOT, TASK, Run, run

from pytest_harbor.episode.outcome import Outcome
from pytest_harbor.episode.result import EpisodeResult

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
RECORDING = HERE / "recordings"
LONGEST: Final = 30
"""Tokens of an answer: what a test has time for."""


def asking_recipe(place: Path, **more: Any) -> Path:
    """The dataset's recipe for the local model, with an agent that only asks."""
    client = (ROOT / TASK / "steps/01_plan/solution/ask_user.py").read_text()
    asks = (HERE / "asking_agent.sh").read_text()
    command = f"cat > /tmp/ask_user.py <<'PYTHON'\n{client}PYTHON\n{asks}"
    values = yaml.safe_load((ROOT / "datasets/swe_interact/local.yaml").read_text())
    values["model_servers"]["user_model"]["extra_body"]["max_tokens"] = LONGEST
    path = place / "recipe.yaml"
    agent = {"name": "command", "command": command}
    path.write_text(yaml.safe_dump(values | {"agent": agent} | more))
    return path


def heard(played: Run) -> list[Any]:
    """What the user answered, as it recorded it itself."""
    return [each["answer"] for each in played.asked()]


def recorded() -> list[Any]:
    """What the model answered when the recording was made."""
    (file,) = RECORDING.glob(f"{Path(TASK).name}__*/user.jsonl")
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


@pytest.mark.parametrize(
    "provider", [pytest.param("local", marks=pytest.mark.local_model, id="real"), "replay"]
)
def test_the_whole_dataset(tmp_path: Path, provider: str) -> None:
    """Nobody can be graded by such a user, so an episode that comes to its end passes."""
    recipe = asking_recipe(tmp_path, **{"pass": {"threshold": 0}})
    options = {
        "local": ("--harbor-record", str(tmp_path / "recordings")),
        "replay": ("--harbor-replay", str(RECORDING)),
    }
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "datasets/swe_interact", "-n", "4"),
            *("-q", "-p", "no:cacheprovider", "--harbor-jobs-dir", str(tmp_path / "jobs")),
            *("--harbor-recipe", str(recipe), *options[provider]),
        ],
        cwd=ROOT,
        env={k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")},
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    folders = [path.parent for path in (tmp_path / "jobs").glob("*/*/result.json")]
    assert len(folders) == len(list((ROOT / "datasets/swe_interact").glob("*/task.toml")))
    for folder in folders:
        result = EpisodeResult.read(folder)
        assert result is not None
        assert (result.parties["user"].calls, result.parties["user"].failed) == (3, 0), folder
        assert not [warning for warning in result.warnings if "not asked for" in warning]
        calls = (folder / "model-calls.jsonl").read_text().splitlines()
        assert {json.loads(line)["provider"] for line in calls} == {provider}
