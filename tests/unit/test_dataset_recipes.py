"""The recipes that come with our datasets can be used as they are."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_harbor.agents.nop import NopAgent
from pytest_harbor.episode.model_servers import make_servers, party_of, placeholder, referred
from pytest_harbor.episode.plan import make_plan
from pytest_harbor.errors import RecipeError
from pytest_harbor.recipe import make_recipe, read_layer
from pytest_harbor.task.load import load_task

DATASET = Path(__file__).parents[2] / "datasets" / "swe_interact"
KEYS = {"OPENAI_API_KEY": "canary-openai", "ANTHROPIC_API_KEY": "canary-anthropic"}


def test_our_own_tasks_need_no_model() -> None:
    recipe = make_recipe([read_layer(DATASET / "harbor.yaml")])
    assert not list(make_servers(referred(recipe), recipe, {}, replaying=False))
    assert recipe.count_as_zero == ("verifier_timeout",)


def test_the_published_tasks_run_as_their_own_configs_have_it() -> None:
    recipe = make_recipe([read_layer(DATASET / "published.yaml")])
    assert recipe.builds.force
    assert recipe.task_mcp_grants == "required"
    assert recipe.count_as_zero == ("verifier_timeout", "no_reward")
    servers = {
        each.name: each for each in make_servers(referred(recipe), recipe, KEYS, replaying=False)
    }
    user, judge = servers["user_model"], servers["judge"]
    assert (user.model, user.extra_body) == ("gpt-5.5", {"reasoning_effort": "high"})
    assert judge.model == "claude-opus-4-5-20251101"
    assert [party_of(name) for name in servers] == ["user", "judge"]
    assert (user.read_key(KEYS), judge.read_key(KEYS)) == tuple(KEYS.values())
    with pytest.raises(RecipeError, match="OPENAI_API_KEY"):
        user.read_key({})


def test_no_key_of_the_operators_is_on_its_way_into_a_container() -> None:
    recipe = make_recipe([read_layer(DATASET / "published.yaml")])
    task = load_task(DATASET / "refactor_quay_fees")
    plan = make_plan(task, recipe, NopAgent(), KEYS)
    environments = (plan.main_env, plan.variables, plan.agent_env, *plan.verifier_envs)
    assert "canary" not in str(environments)
    assert plan.variables["LITELLM_BASE_URL"] == placeholder("user_model")
    assert plan.verifier_envs[-1]["EVAL_BASE_URL"] == placeholder("judge")


def test_with_the_local_model_nobody_needs_a_key() -> None:
    recipe = make_recipe([read_layer(DATASET / "local.yaml")])
    (user,) = make_servers(referred(recipe), recipe, {}, replaying=False)
    assert (user.name, user.provider, user.is_free) == ("user_model", "local", True)
    plan = make_plan(load_task(DATASET / "refactor_quay_fees"), recipe, NopAgent(), {})
    assert plan.variables["LITELLM_BASE_URL"] == placeholder("user_model")


@pytest.mark.parametrize("name", ["harbor", "published", "local"])
def test_they_are_shown_without_a_key(name: str) -> None:
    command = [sys.executable, "-m", "pytest", str(DATASET), "--harbor-show-recipe", "-q"]
    options = ["--harbor-recipe", str(DATASET / f"{name}.yaml"), "-p", "no:cacheprovider"]
    env = {k: v for k, v in os.environ.items() if k not in KEYS and not k.startswith("PYTEST_")}
    shown = subprocess.run(
        [*command, *options], env=env, capture_output=True, text=True, check=True
    )
    assert f"{name}.yaml:" in shown.stdout
    assert "error" not in shown.stdout
