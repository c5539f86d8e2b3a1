"""From the recipe's model servers to the gateway's, and the variables that refer to them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pytest_harbor.agents.base import Agent, Capabilities
from pytest_harbor.agents.nop import NopAgent
from pytest_harbor.episode import model_servers
from pytest_harbor.episode.plan import Plan, make_plan
from pytest_harbor.errors import RecipeError
from pytest_harbor.recipe import Layer, make_recipe
from pytest_harbor.settings import Recipe
from pytest_harbor.task.load import load_task

SERVER = {
    "model_servers.user_model.base_url": {"env": "WHERE"},
    "model_servers.user_model.key": {"env": "KEY"},
    "model_servers.user_model.headers": {"x-team": {"env": "TEAM"}, "x-plain": "plain"},
}
USED = {"compose_variables.URL": {"model_server": "user_model"}}


def recipe(values: Mapping[str, Any]) -> Recipe:
    return make_recipe([Layer(values, {key: f"here: {key}" for key in values})])


def servers(values: Mapping[str, Any], host: Mapping[str, str], **more: bool) -> list[Any]:
    options = {"replaying": False, **more}
    made = recipe(values)
    return list(model_servers.make_servers(model_servers.referred(made), made, host, **options))


def test_a_server_is_what_its_table_says() -> None:
    host = {"WHERE": "https://models.example", "TEAM": "blue"}
    (server,) = servers({**SERVER, **USED}, host)
    assert (server.name, server.base_url, server.key_env) == (
        "user_model",
        "https://models.example",
        "KEY",
    )
    assert server.headers == {"x-team": "blue", "x-plain": "plain"}
    assert (server.timeout, server.retries, server.concurrency) == (600, 4, None)


def test_only_what_is_referred_to_is_made_each_once() -> None:
    more = {
        "model_servers.spare.base_url": "https://spare.example",
        "agent.env.A": {"model_server": "user_model"},
        "verifier.env.B": {"model_server": "user_model"},
    }
    host = {"WHERE": "https://models.example", "TEAM": "blue"}
    assert [each.name for each in servers({**SERVER, **USED, **more}, host)] == ["user_model"]
    assert servers(SERVER, {}) == []


def test_a_replay_asks_the_host_for_nothing() -> None:
    (server,) = servers({**SERVER, **USED}, {}, replaying=True)
    assert server.base_url.startswith("http")


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (
            {**SERVER, "compose_variables.URL": {"model_server": "user_modle"}},
            "here: compose_variables.URL: compose_variables.URL asks for the model server "
            "user_modle; did you mean user_model?",
        ),
        ({"agent.env.URL": {"model_server": "x"}}, "here: agent.env.URL: .* known: none"),
        ({"agent.env.KEY": {"env": "NONE"}}, "here: agent.env.KEY: .* variable NONE, which is not"),
        ({"verifier.env.KEY": {"env": "NONE"}}, "here: verifier.env.KEY"),
    ],
)
def test_a_variable_that_cannot_be_set_is_named(values: dict[str, Any], said: str) -> None:
    made = recipe(values)
    tables = {
        "compose_variables": made.compose_variables,
        "agent.env": made.agent.env,
        "verifier.env": made.verifier.env,
    }
    name = next(name for name, table in tables.items() if table)
    with pytest.raises(RecipeError, match=said):
        model_servers.settle(tables[name], name, made, {})


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (SERVER, "here: model_servers.user_model.base_url: .* variable WHERE, which is not set"),
        ({"model_servers.user_model.model": "m"}, "here: model_servers.user_model.model: .* needs"),
        ({"model_servers.user_model.base_url": "models"}, "must start with http:// or https://"),
        ({"model_servers.user_model.provider": "script"}, "provider 'script' needs rules"),
    ],
)
def test_a_server_that_cannot_be_made_is_named(values: dict[str, Any], said: str) -> None:
    with pytest.raises(RecipeError, match=said):
        servers({**values, **USED}, {})


@pytest.mark.parametrize(
    ("name", "party"),
    [("policy", "agent"), ("user_model", "user"), ("judge", "judge"), ("other", "other")],
)
def test_the_name_says_whose_calls_they_are(name: str, party: str) -> None:
    assert model_servers.party_of(name) == party


def test_prices_and_budgets_reach_the_gateway() -> None:
    values = {
        "prices.gpt-5.5.input": 1.0,
        "prices.gpt-5.5.output": 10.0,
        "prices.gpt-5.5.cached": 0.1,
        "budget.episode.usd": 5.0,
        "budget.run.tokens": 7,
    }
    terms = model_servers.make_terms(recipe(values), Path("ledger"))
    price = terms.prices["gpt-5.5"]
    assert (price.input, price.output, price.cached, price.written) == (1, 10, 0.1, None)
    assert (terms.budget.usd, terms.budget.tokens) == (5, None)
    assert terms.run_budget is not None
    assert (terms.run_budget.usd, terms.run_budget.tokens) == (None, 7)


def plan(
    folder: Path,
    values: Mapping[str, Any],
    host: Mapping[str, str],
    agent: Agent = NopAgent(),  # noqa: B008  it is frozen
) -> Plan:
    for name, text in {"task.toml": "", "instruction.md": "x", "tests/test.sh": ""}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "environment").mkdir(exist_ok=True)
    (folder / "environment" / "Dockerfile").write_text("FROM x\n")
    return make_plan(load_task(folder), recipe(values), agent, host)


def test_a_plan_holds_placeholders_and_hides_what_comes_from_the_host(tmp_path: Path) -> None:
    values = {
        **SERVER,
        **USED,
        "agent.env.URL": {"model_server": "user_model"},
        "agent.env.MY_KEY": {"env": "MINE"},
        "verifier.env.OTHER_KEY": {"env": "OTHER"},
    }
    host = {"MINE": "canary-mine", "OTHER": "canary-other"}
    made = plan(tmp_path / "a-task", values, host)
    stands = model_servers.placeholder("user_model")
    assert made.variables["URL"] == made.agent_env["URL"] == stands
    assert made.agent_env["MY_KEY"] == "canary-mine"
    assert made.verifier_envs[0]["OTHER_KEY"] == "canary-other"
    assert made.model_servers == ("user_model",)
    assert set(made.secrets) == {"canary-mine", "canary-other"}


@dataclass(frozen=True)
class Thinker(NopAgent):
    name: str = "thinker"
    capabilities = Capabilities(needs_model=True)


@pytest.mark.parametrize(
    ("model", "url", "key", "asked"),
    [
        ("openai/gpt-5.5", "https://api.openai.com/v1", "OPENAI_API_KEY", "gpt-5.5"),
        ("anthropic/claude-x", "https://api.anthropic.com", "ANTHROPIC_API_KEY", "claude-x"),
        ("openrouter/a/b", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY", "a/b"),
        (
            "google/gemini-x",
            "https://generativelanguage.googleapis.com/v1beta/openai",
            "GEMINI_API_KEY",
            "gemini-x",
        ),
    ],
)
def test_a_models_name_says_where_it_answers(
    tmp_path: Path, model: str, url: str, key: str, asked: str
) -> None:
    made = plan(tmp_path, {"agent.name": "thinker", "agent.model": model}, {}, Thinker())
    assert (made.model, made.model_servers) == (asked, ("policy",))
    (server,) = model_servers.make_servers(made.model_servers, made.recipe, {}, replaying=False)
    assert (server.name, server.base_url, server.key_env) == ("policy", url, key)


def test_the_recipes_own_policy_server_is_asked(tmp_path: Path) -> None:
    values = {
        "agent.name": "thinker",
        "model_servers.policy.base_url": "http://own.example",
        "model_servers.policy.model": "own-1",
    }
    assert plan(tmp_path / "own", values, {}, Thinker()).model == "own-1"
    named = {**values, "agent.model": "openai/other"}
    made = plan(tmp_path / "named", named, {}, Thinker())
    assert made.model == "openai/other"
    assert made.recipe.model_servers["policy"].base_url == "http://own.example"


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({}, "here: agent.name: nothing says where the model of the agent thinker answers"),
        ({"agent.model": "gpt-5.5"}, "here: agent.model: nothing says where the model"),
        ({"agent.model": "acme/m"}, "give --harbor-model as openai/..., anthropic/..."),
        (
            {"model_servers.policy.base_url": "http://own.example"},
            "name one with --harbor-model or model_servers.policy.model",
        ),
        ({"agent.resume_sessions": True, "agent.model": "openai/m"}, "cannot go on with an earl"),
    ],
)
def test_what_an_agent_lacks_is_told_before_anything_starts(
    tmp_path: Path, values: Mapping[str, Any], said: str
) -> None:
    with pytest.raises(RecipeError, match=re.escape(said)):
        plan(tmp_path, {"agent.name": "thinker", **values}, {}, Thinker())


def test_an_agent_without_a_model_opens_no_server(tmp_path: Path) -> None:
    made = plan(tmp_path, {"model_servers.policy.base_url": "http://own.example"}, {})
    assert (made.model, made.model_servers) == (None, ())


@dataclass(frozen=True)
class Messenger(NopAgent):
    name: str = "messenger"
    capabilities = Capabilities(needs_model=True, wire="messages")


@pytest.mark.parametrize(("said", "tried"), [({}, "messages"), ({"try_with": "off"}, "off")])
def test_a_server_is_tried_as_the_agent_will_ask_it(
    tmp_path: Path, said: Mapping[str, str], tried: str
) -> None:
    table = {"base_url": "http://own.example", "model": "own-1", **said}
    values = {f"model_servers.policy.{key}": value for key, value in table.items()}
    made = plan(tmp_path, values, {}, Messenger())
    (server,) = model_servers.make_servers(made.model_servers, made.recipe, {}, replaying=False)
    assert server.try_with == tried
