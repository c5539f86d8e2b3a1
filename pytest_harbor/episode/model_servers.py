"""The recipe's model servers as the gateway knows them, and how variables refer to one.

Where a container finds a server is known when the group's network is; until then a placeholder
stands for the address, the same in every run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pytest_harbor.errors import RecipeError
from pytest_harbor.hints import hint
from pytest_harbor.settings import (
    FromHost,
    FromModelServer,
    ModelServerTable,
    Recipe,
    TryWith,
    Value,
)

if TYPE_CHECKING:
    from pytest_harbor.gateway import ModelServer, Terms

POLICY: Final = "policy"
"""The model server that an agent asks which needs one."""
MARK: Final = ".model-server.pytest-harbor.invalid"
"""What every placeholder holds."""
_PARTIES: Final = {POLICY: "agent", "user_model": "user"}
_GOOGLE: Final = "https://generativelanguage.googleapis.com/v1beta/openai"
"""Google's own API lies above this address, and is found from it."""
_MAKERS: Final[dict[str, tuple[str, str, TryWith]]] = {
    "openai": ("https://api.openai.com/v1", "OPENAI_API_KEY", "responses"),
    "anthropic": ("https://api.anthropic.com", "ANTHROPIC_API_KEY", "messages"),
    "openrouter": ("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY", "chat"),
    "google": (_GOOGLE, "GEMINI_API_KEY", "gemini"),
}
"""Where the models of a maker answer, the variable that holds the key, what all answer to."""
_REPLAYED: Final = "http://replayed.invalid"


def placeholder(name: str) -> str:
    """What stands for a server's address until it is known; no other's beginning."""
    return f"http://{name}{MARK}"


def party_of(name: str) -> str:
    """Whose calls those to a server are."""
    return _PARTIES.get(name, name)


def settle(
    values: Mapping[str, Value], table: str, recipe: Recipe, host: Mapping[str, str]
) -> dict[str, str]:
    """A table of variables as texts, placeholders for the addresses of model servers.

    Raises:
        RecipeError: a host variable is not set, or there is no such model server.
    """
    return {
        name: _settled(value, f"{table}.{name}", recipe, host) for name, value in values.items()
    }


def _settled(value: Value, key: str, recipe: Recipe, host: Mapping[str, str]) -> str:
    if isinstance(value, FromHost):
        return _from_host(value, key, recipe, host)
    if isinstance(value, str):
        return value
    name = value.model_server
    if name in recipe.model_servers:
        return placeholder(name)
    near = hint(name, recipe.model_servers)
    raise RecipeError(f"{recipe.source(key)}: {key} asks for the model server {name}; {near}")


def _from_host(value: FromHost, key: str, recipe: Recipe, host: Mapping[str, str]) -> str:
    if value.env in host:
        return host[value.env]
    raise RecipeError(
        f"{recipe.source(key)}: {key} takes its value from the environment variable {value.env}, "
        "which is not set"
    )


def with_policy(recipe: Recipe, wire: TryWith | None = None) -> tuple[Recipe, str]:
    """A recipe with a model server for the agent's calls, and what to ask it for.

    Where the recipe names none, the model's own provider is taken: ``openai/gpt-5.5``. Where it
    does not say how its own is tried, that is by ``wire``, which the agent will ask by.

    Raises:
        RecipeError: no model is named, or nothing says where it answers.
    """
    source, model = recipe.source("agent.name"), recipe.agent.model
    agent = recipe.agent.name
    if POLICY in recipe.model_servers:
        asked = model or recipe.model_servers[POLICY].model
        if asked is None:
            raise RecipeError(
                f"{source}: the agent {agent} needs a model: name one with --harbor-model or "
                f"model_servers.{POLICY}.model"
            )
        return _tried_with(recipe, wire), asked
    maker, slash, asked = (model or "").partition("/")
    if not slash or maker not in _MAKERS:
        known = ", ".join(f"{name}/..." for name in _MAKERS)
        raise RecipeError(
            f"{recipe.source('agent.model') if model else source}: nothing says where the model "
            f"of the agent {agent} answers: give --harbor-model as {known}, or describe a model "
            f"server called {POLICY} in the recipe"
        )
    base_url, key, try_with = _MAKERS[maker]
    table = ModelServerTable(base_url=base_url, key=FromHost(env=key), try_with=try_with)
    servers = {**recipe.model_servers, POLICY: table}
    sources = {**recipe.sources, f"model_servers.{POLICY}.base_url": recipe.source("agent.model")}
    return recipe.model_copy(update={"model_servers": servers, "sources": sources}), asked


def _tried_with(recipe: Recipe, wire: TryWith | None) -> Recipe:
    if wire is None or f"model_servers.{POLICY}.try_with" in recipe.sources:
        return recipe
    table = recipe.model_servers[POLICY].model_copy(update={"try_with": wire})
    return recipe.model_copy(update={"model_servers": {**recipe.model_servers, POLICY: table}})


def referred(recipe: Recipe) -> tuple[str, ...]:
    """The names of the model servers that variables refer to, each once."""
    tables = (recipe.compose_variables, recipe.agent.env, recipe.verifier.env)
    values = (value for table in tables for value in table.values())
    names = (value.model_server for value in values if isinstance(value, FromModelServer))
    return tuple(dict.fromkeys(names))


def make_servers(
    names: Iterable[str], recipe: Recipe, host: Mapping[str, str], *, replaying: bool
) -> Iterator[ModelServer]:
    """Model servers of the recipe; where a recording answers, the host is not asked.

    Raises:
        RecipeError: one lacks what its provider needs, or a host variable is not set.
    """
    from pytest_harbor.gateway import ModelServer

    def text(value: str | FromHost, key: str) -> str:
        if isinstance(value, str):
            return value
        return _REPLAYED if replaying else _from_host(value, key, recipe, host)

    for name in names:
        table, key = recipe.model_servers[name], f"model_servers.{name}"
        try:
            yield ModelServer(
                name,
                provider=table.provider,
                base_url=text(table.base_url, f"{key}.base_url") if table.base_url else None,
                model=table.model,
                key_env=table.key.env if table.key else None,
                auth=table.auth,
                extra_body=table.extra_body,
                headers={
                    header: text(value, f"{key}.headers") for header, value in table.headers.items()
                },
                timeout=table.timeout,
                retries=table.retries,
                concurrency=table.concurrency,
                keep_tokens=table.keep_tokens,
                try_with=table.try_with,
                rules=Path(table.rules) if table.rules else None,
                recording=Path(table.recording) if table.recording else None,
            )
        except RecipeError as error:
            raise located(error, name, recipe) from None


def located(error: RecipeError, name: str, recipe: Recipe) -> RecipeError:
    """An error about a model server that also says where the server is defined."""
    table = f"model_servers.{name}"
    key = next((key for key in recipe.sources if key.startswith(f"{table}.")), table)
    return RecipeError(f"{recipe.source(key)}: {error}", outcome=error.outcome)


def make_terms(recipe: Recipe, ledger: Path) -> Terms:
    """What the gateway is told of an episode."""
    from pytest_harbor.gateway import Budget, Price, Terms

    episode, run = recipe.budget.episode, recipe.budget.run
    return Terms(
        ledger=ledger,
        prices={
            model: Price(price.input, price.output, price.cached, price.written)
            for model, price in recipe.prices.items()
        },
        budget=Budget(usd=episode.usd, tokens=episode.tokens),
        run_budget=Budget(usd=run.usd, tokens=run.tokens),
    )
