"""Whole SWE-Interact episodes whose simulated user is a model behind the gateway."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from pytest_harbor.episode.outcome import Outcome
from pytest_harbor.episode.result import EpisodeResult

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
TASK = "datasets/swe_interact/feature_tally_budgets"
RULES = Path(__file__).parent / "scripted_user.yaml"
REFACTORING = "datasets/swe_interact/refactor_quay_fees"


@dataclass(frozen=True)
class Run:
    """A finished run of the one task."""

    done: subprocess.CompletedProcess[str]
    folder: Path
    result: EpisodeResult

    @property
    def calls(self) -> list[dict[str, Any]]:
        lines = (self.folder / "model-calls.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]

    def asked(self) -> list[dict[str, Any]]:
        """What agent and user said, without times."""
        text = (self.folder / "services/user-server/ask-user.jsonl").read_text()
        return [
            {key: value for key, value in json.loads(line).items() if key != "time"}
            for line in text.splitlines()
        ]


def recipe(place: Path, server: dict[str, Any] | None, **more: Any) -> Path:
    """A recipe in which a model plays the user; without a server, at an address of nobody's."""
    variables: dict[str, Any] = {"SIM_USER_MODEL": "openai/scripted", "LITELLM_API_KEY": "unused"}
    if server is None:
        variables["LITELLM_BASE_URL"] = "http://127.0.0.1:9"
        values: dict[str, Any] = {"compose_variables": variables}
    else:
        variables["LITELLM_BASE_URL"] = {"model_server": "user_model"}
        values = {"compose_variables": variables, "model_servers": {"user_model": server}}
    path = place / "recipe.yaml"
    place.mkdir(exist_ok=True)
    path.write_text(yaml.safe_dump(values | more))
    return path


def run(place: Path, recipe: Path, *options: str, task: str = TASK) -> Run:
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", task, "-q", "-p", "no:cacheprovider"),
            *("--harbor-recipe", str(recipe), "--harbor-jobs-dir", str(place)),
            *("--harbor-job-name", "job", "--junitxml", str(place / "junit.xml"), *options),
        ],
        cwd=ROOT,
        env=inherited,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    (path,) = place.glob("job/*/result.json")
    result = EpisodeResult.read(path.parent)
    assert result is not None
    return Run(done, path.parent, result)


SCRIPTED = {"provider": "script", "rules": str(RULES)}


def test_a_recorded_episode_is_played_again_without_key_and_network(tmp_path: Path) -> None:
    tapes = tmp_path / "tapes"
    first = run(tmp_path / "first", recipe(tmp_path / "a", SCRIPTED), "--harbor-record", str(tapes))
    assert first.result.outcome == Outcome.PASSED, first.done.stdout
    user = first.result.parties["user"]
    assert (user.calls, user.failed, user.models) == (16, 0, ("scripted",))
    assert user.tokens > 1000
    assert {call["step"] for call in first.calls} == {"01_plan", "02_implement"}
    by_step = [step.parties["user"].calls for step in first.result.steps]
    assert by_step == [3, 13, 0, 0, 0]
    assert [each["call"] for each in first.asked()] == list(range(1, 16))

    nowhere = {"base_url": "http://127.0.0.1:9", "key": {"env": "NO_SUCH_KEY"}}
    again = run(tmp_path / "again", recipe(tmp_path / "b", nowhere), "--harbor-replay", str(tapes))
    assert again.result.outcome == Outcome.PASSED, again.done.stdout
    assert again.asked() == first.asked()
    assert again.result.parties["user"].tokens == user.tokens


def test_a_user_whose_model_fails_in_the_middle_is_degraded(tmp_path: Path) -> None:
    """B87: not failed, although the solution got an answer that it did not expect."""
    rules = yaml.safe_load(RULES.read_text())
    rules["rules"].insert(0, {"when": {"user": "^List budgets"}, "fault": {"status": 500}})
    tmp_path.joinpath("rules.yaml").write_text(yaml.safe_dump(rules))
    server = {"provider": "script", "rules": "rules.yaml"}
    played = run(tmp_path / "job", recipe(tmp_path, server))
    assert played.result.outcome == Outcome.USER_DEGRADED
    assert "model calls of the simulated user failed" in str(played.result.fault)
    assert played.result.reward is None
    last = played.done.stdout.splitlines()[-1]
    assert "errors" in last
    assert "failed" not in last
    # what the user recorded is there, though the step that exports it was never reached
    events = (played.folder / "services/user-server/events.jsonl").read_text()
    assert "llm_last_resort_reply" in events


def test_a_model_elsewhere_that_fails_is_seen_in_the_users_own_records(tmp_path: Path) -> None:
    played = run(tmp_path / "job", recipe(tmp_path, None))
    assert played.result.outcome == Outcome.USER_DEGRADED
    assert "llm_last_resort_reply" in str(played.result.fault)
    assert played.result.parties == {}


def test_a_spent_budget_is_no_failure(tmp_path: Path) -> None:
    played = run(
        tmp_path / "job", recipe(tmp_path, SCRIPTED, budget={"episode": {"tokens": 20_000}})
    )
    assert played.result.outcome == Outcome.BUDGET_SPENT
    assert played.result.parties["user"].refused > 0


def test_the_judge_of_a_rubric_is_a_model_behind_the_gateway(tmp_path: Path) -> None:
    rubric = json.loads((ROOT / REFACTORING / "tests" / "rubrics.json").read_text())
    asked = [each for each in rubric if each["annotations"]["type"] != "high level intent"]
    no = [each for each in asked if each["annotations"]["type"].startswith("negative")]
    rules: list[dict[str, Any]] = [
        {"when": {"user": re.escape(each["title"])}, "say": "NO. It does not."} for each in no
    ]
    rules.append({"say": "YES. It does."})
    (tmp_path / "judge.yaml").write_text(yaml.safe_dump({"model": "judge-1", "rules": rules}))
    recipe = {
        "model_servers": {"judge": {"provider": "script", "rules": "judge.yaml"}},
        "verifier": {
            "env": {
                "EVAL_MODEL": "some-judge",
                "EVAL_BASE_URL": {"model_server": "judge"},
                "EVAL_API_KEY": "none",
            }
        },
    }
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    played = run(tmp_path / "jobs", tmp_path / "recipe.yaml", task=REFACTORING)
    assert played.result.outcome == Outcome.PASSED, played.done.stdout
    judge = played.result.parties["judge"]
    assert (judge.calls, judge.failed, judge.models) == (len(asked), 0, ("judge-1",))
    assert {call["step"] for call in played.calls} == {"05_test_handoff"}
