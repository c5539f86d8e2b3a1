"""Recipes: layers, provenance, and errors that name the place."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_harbor.errors import RecipeError
from pytest_harbor.recipe import Layer, make_recipe, read_layer, recipe_files
from pytest_harbor.settings import FromHost, FromModelServer


def written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def layer(**values: object) -> Layer:
    named = {key.replace("__", "."): value for key, value in values.items()}
    return Layer(named, dict.fromkeys(named, "here:1"))


def test_the_later_layer_wins_key_by_key_and_says_so(tmp_path: Path) -> None:
    outer = written(tmp_path / "harbor.yaml", "attempts: 2\nagent:\n  name: nop\n  model: small\n")
    inner = written(tmp_path / "set" / "harbor.yaml", "\nagent: {model: large}\n")
    found = recipe_files(tmp_path / "set" / "task", tmp_path)
    assert found == (outer, inner)
    option = Layer({"attempts": 3}, {"attempts": "--harbor-attempts"})
    recipe = make_recipe([*(read_layer(path, shown=path.name) for path in found), option])
    assert (recipe.attempts, recipe.agent.name, recipe.agent.model) == (3, "nop", "large")
    assert recipe.source("attempts") == "--harbor-attempts"
    assert recipe.source("agent.name") == "harbor.yaml:3"
    assert recipe.source("agent.model") == "harbor.yaml:2"
    assert recipe.source("keep") == "default"


def test_a_recipe_inside_the_task_folder_is_not_among_its_files(tmp_path: Path) -> None:
    written(tmp_path / "set" / "task" / "harbor.yaml", "agent: {name: nop}\n")
    assert recipe_files(tmp_path / "set" / "task", tmp_path) == ()


def test_a_dataset_elsewhere_has_its_own_recipe_only(tmp_path: Path) -> None:
    written(tmp_path / "harbor.yaml", "attempts: 2\n")
    own = written(tmp_path / "set" / "harbor.yaml", "attempts: 3\n")
    assert recipe_files(tmp_path / "set" / "task", tmp_path / "other") == (own,)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"atempts": 1}, "here:1: unknown recipe key atempts; did you mean attempts?"),
        ({"agent": "oracle"}, "here:1: unknown recipe key agent: it is a table; set agent.cards"),
        ({"timeouts__agent__capp": 1}, "did you mean timeouts.agent.cap?"),
        ({"attempts": 0}, "here:1: attempts: Input should be greater than or equal to 1, got 0"),
        ({"attempts": True}, "here:1: attempts: Input should be a valid integer, got True"),
        ({"timeouts__multiplier": 0}, "here:1: timeouts.multiplier"),
        ({"timeouts__agent__cap": float("inf")}, "here:1: timeouts.agent.cap"),
        ({"pass__threshold": float("nan")}, "here:1: pass.threshold"),
        ({"task_mcp_grants": "maybe"}, "'off', 'optional' or 'required', got 'maybe'"),
        ({"count_as_zero": ["failed"]}, "here:1: count_as_zero"),
        ({"compose_variables__X": {"evn": "Y"}}, "here:1: compose_variables.X"),
        ({"compose_variables__X": {"model_sevrer": "Y"}}, "here:1: compose_variables.X"),
        (
            {"model_servers__judge__base_ulr": "x"},
            "unknown recipe key model_servers.judge.base_ulr; "
            "did you mean model_servers.judge.base_url?",
        ),
        ({"model_servers__judge": "x"}, "it is a table; set model_servers.judge.auth, model_ser"),
        (
            {"model_servers__judge__key": "sk-1"},
            "here:1: model_servers.judge.key: write {env: NAME}",
        ),
        ({"model_servers__a judge__model": "x"}, "here:1: model_servers.a judge"),
        ({"prices__gpt-5.5__inptu": 1.0}, "did you mean prices.gpt-5.5.input?"),
        ({"prices__gpt-5.5__input": -1.0}, "here:1: prices.gpt-5.5.input"),
        ({"budget__episode__usd": 0.0}, "here:1: budget.episode.usd"),
        ({"budget__epsiode__usd": 1.0}, "did you mean budget.episode.usd?"),
    ],
)
def test_mistakes_name_the_key_and_the_place(values: dict[str, object], said: str) -> None:
    with pytest.raises(RecipeError) as error:
        make_recipe([layer(**values)])
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- a\n", "harbor.yaml: a recipe is a mapping"),
        ("a: [\n", "harbor.yaml: is not valid YAML"),
        ("keep: true\nkeep: false\n", "harbor.yaml: the key keep stands there twice"),
    ],
)
def test_a_broken_file_is_named(tmp_path: Path, text: str, said: str) -> None:
    path = written(tmp_path / "harbor.yaml", text)
    with pytest.raises(RecipeError, match=said):
        read_layer(path, shown="harbor.yaml")


def test_yes_and_no_of_old_yaml_are_not_guessed(tmp_path: Path) -> None:
    path = written(tmp_path / "harbor.yaml", "task_mcp_grants: off\n")
    assert make_recipe([read_layer(path)]).task_mcp_grants == "off"


def test_an_edited_file_is_read_again(tmp_path: Path) -> None:
    path = written(tmp_path / "harbor.yaml", "attempts: 2\n")
    assert make_recipe([read_layer(path)]).attempts == 2
    path.write_text("attempts: 5\n")
    assert make_recipe([read_layer(path)]).attempts == 5


def test_values_that_may_be_secret_are_not_shown() -> None:
    recipe = make_recipe(
        [
            layer(
                agent__env__TOKEN="canary-1",
                verifier__env__KEY="canary-2",
                compose_variables__A="canary-3",
                compose_variables__B={"env": "HOST_B"},
            )
        ]
    )
    assert recipe.compose_variables["B"] == FromHost(env="HOST_B")
    shown = {key: value for key, value, _ in recipe.rows()}
    assert "canary" not in str(shown)
    assert shown["compose_variables.B"] == {"env": "HOST_B"}
    assert shown["agent.env.TOKEN"] == "***"


@pytest.mark.parametrize(
    "key", ["model_servers__a__key", "agent__env__KEY", "compose_variables__K"]
)
def test_a_secret_in_the_wrong_place_is_not_shown(key: str) -> None:
    with pytest.raises(RecipeError) as error:
        make_recipe([layer(**{key: ["canary-6"]})])
    assert "canary" not in str(error.value)


SERVERS = """
model_servers:
  user_model:
    base_url: https://models.example/v1
    key: {env: USER_KEY}
    extra_body: {reasoning: {effort: high}}
    headers: {x-team: canary-4, authorization: {env: USER_KEY}}
  judge: {provider: script, rules: rules/judge.yaml}
prices:
  gpt-5.5: {input: 1, output: 10.5}
  openai/gpt-5.5-mini:
    input: 0.1
    output: 1
budget:
  episode: {usd: 5}
  run: {tokens: 1000000}
compose_variables:
  LITELLM_BASE_URL: {model_server: user_model}
agent:
  env: {PLAIN: canary-5, MODEL_URL: {model_server: judge}}
"""


def test_tables_whose_names_are_the_operators(tmp_path: Path) -> None:
    path = written(tmp_path / "set" / "harbor.yaml", SERVERS)
    nearer = layer(model_servers__user_model__model="small", **{"prices__gpt-5.5__output": 9.0})
    recipe = make_recipe([read_layer(path, shown="harbor.yaml"), nearer])
    user, judge = recipe.model_servers["user_model"], recipe.model_servers["judge"]
    assert (user.base_url, user.model) == ("https://models.example/v1", "small")
    assert user.extra_body == {"reasoning": {"effort": "high"}}
    assert judge.rules == str(tmp_path / "set" / "rules" / "judge.yaml")
    price = recipe.prices["gpt-5.5"]
    assert (price.input, price.output, price.cached) == (1, 9, None)
    assert recipe.prices["openai/gpt-5.5-mini"].output == 1
    assert (recipe.budget.episode.usd, recipe.budget.run.tokens) == (5, 1_000_000)
    assert recipe.compose_variables == {
        "LITELLM_BASE_URL": FromModelServer(model_server="user_model")
    }

    rows = {key: (value, source) for key, value, source in recipe.rows()}
    assert "canary" not in str(rows)
    assert rows["model_servers.user_model.model"] == ("small", "here:1")
    assert rows["model_servers.user_model.base_url"][1] == "harbor.yaml:4"
    assert rows["model_servers.user_model.headers"][0] == {
        "x-team": "***",
        "authorization": {"env": "USER_KEY"},
    }
    assert rows["model_servers.user_model.key"][0] == {"env": "USER_KEY"}
    assert rows["prices.gpt-5.5.output"] == (9.0, "here:1")
    assert rows["prices.gpt-5.5.input"][1] == "harbor.yaml:10"
    assert rows["agent.env.MODEL_URL"][0] == {"model_server": "judge"}
    assert rows["budget.episode.usd"] == (5.0, "harbor.yaml:15")
    assert "model_servers.judge.base_url" not in rows
