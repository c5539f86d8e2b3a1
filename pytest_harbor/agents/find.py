"""Which agent a recipe means by a name."""

from __future__ import annotations

import difflib
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_harbor.agents.base import Agent
from pytest_harbor.errors import RecipeError

if TYPE_CHECKING:
    from pytest_harbor.settings import Recipe

BUILT_IN = ("command", "nop", "oracle")


def find_agent(recipe: Recipe) -> Agent:
    """The agent that the recipe names: built in, or ``module:Class`` made without arguments.

    Raises:
        RecipeError: there is no such agent, or it lacks what it needs.
    """
    choice, source = recipe.agent, recipe.source("agent.name")
    if choice.name == "oracle":
        from pytest_harbor.agents.oracle import OracleAgent

        return OracleAgent()
    if choice.name == "nop":
        from pytest_harbor.agents.nop import NopAgent

        return NopAgent()
    if choice.name == "command":
        from pytest_harbor.agents.command import CommandAgent

        if not choice.command:
            raise RecipeError(
                f"{source}: the agent 'command' needs the recipe key agent.command: "
                "the shell command to run in main for each turn"
            )
        return CommandAgent(choice.command, choice.model)
    if choice.name.startswith("harbor:"):
        from pytest_harbor.bridge.agents import find_harbor_agent

        return find_harbor_agent(recipe)
    if ":" in choice.name:
        return _import(choice.name, source)
    return _installed(recipe)


def _installed(recipe: Recipe) -> Agent:
    """The agent of a card, one of the operator's own before one of ours."""
    from pytest_harbor.agents.card import card_names, find_card
    from pytest_harbor.agents.installed import CliAgent

    choice = recipe.agent
    folders = [Path(folder) for folder in choice.cards]
    card = find_card(choice.name, folders)
    if card is None:
        known = (*BUILT_IN, *card_names(folders))
        near = difflib.get_close_matches(choice.name, known, n=1)
        known = (*known, "module:Class", "harbor:NAME")
        hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(known)}"
        raise RecipeError(
            f"{recipe.source('agent.name')}: there is no agent {choice.name!r}; {hint}"
        )
    if choice.effort is not None and choice.effort not in card.efforts:
        hint = f"it knows {', '.join(card.efforts)}" if card.efforts else "it has none to set"
        raise RecipeError(
            f"{recipe.source('agent.effort')}: the agent {card.name} knows no effort "
            f"{choice.effort!r}; {hint}"
        )
    return CliAgent(card, choice.version or card.version, choice.model)


def as_agent(agent: Agent | str, recipe: Recipe) -> tuple[Recipe, Agent]:
    """An agent that was given as itself or by name, and the recipe that says so.

    Raises:
        RecipeError: there is no agent of that name.
    """
    if not isinstance(agent, str):
        return recipe, agent
    table = recipe.agent.model_copy(update={"name": agent})
    sources = {**recipe.sources, "agent.name": "fixture harbor_agent"}
    named = recipe.model_copy(update={"agent": table, "sources": sources})
    return named, find_agent(named)


def _import(name: str, source: str) -> Agent:
    module, _, attribute = name.partition(":")
    try:
        agent = getattr(import_module(module), attribute)()
    except (ImportError, AttributeError, TypeError) as error:
        raise RecipeError(f"{source}: the agent {name!r} cannot be made: {error}") from error
    if not isinstance(agent, Agent):
        raise RecipeError(
            f"{source}: {name!r} is not an agent; see pytest_harbor.agents.base.Agent"
        )
    return agent
