"""Which agent a recipe means by a name."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pytest_harbor.agents.base import Agent
from pytest_harbor.errors import RecipeError
from pytest_harbor.hints import hint

if TYPE_CHECKING:
    from pytest_harbor.settings import Recipe


def find_agent(recipe: Recipe) -> Agent:
    """The agent that the recipe names: built in, or ``module:Class`` made without arguments.

    Raises:
        RecipeError: there is no such agent, or it lacks what it needs.
    """
    name = recipe.agent.name
    if name in _OWN:
        return _OWN[name](recipe)
    if name.startswith("harbor:"):
        from pytest_harbor.bridge.agents import find_harbor_agent

        return find_harbor_agent(recipe)
    if ":" in name:
        return _import(name, recipe.source("agent.name"))
    return _installed(recipe)


def _oracle(_recipe: Recipe) -> Agent:
    from pytest_harbor.agents.oracle import OracleAgent

    return OracleAgent()


def _nop(_recipe: Recipe) -> Agent:
    from pytest_harbor.agents.nop import NopAgent

    return NopAgent()


def _command(recipe: Recipe) -> Agent:
    from pytest_harbor.agents.command import CommandAgent

    if not recipe.agent.command:
        raise RecipeError(
            f"{recipe.source('agent.name')}: the agent 'command' needs the recipe key "
            "agent.command: the shell command to run in main for each turn"
        )
    return CommandAgent(recipe.agent.command, recipe.agent.model)


def _model_loop(recipe: Recipe) -> Agent:
    from pytest_harbor.agents.model_loop import ModelLoop

    return ModelLoop(recipe.agent.model, recipe.agent.loop)


def _replay(recipe: Recipe) -> Agent:
    from pytest_harbor.agents.replay import ReplayAgent

    if not recipe.agent.trajectories:
        raise RecipeError(
            f"{recipe.source('agent.name')}: the agent 'replay' needs the recipe key "
            "agent.trajectories: an ATIF file, or the run folder of an earlier episode"
        )
    path = Path(recipe.agent.trajectories)
    if not path.exists():
        raise RecipeError(f"{recipe.source('agent.trajectories')}: {path} does not exist")
    return ReplayAgent(path)


def _human(recipe: Recipe) -> Agent:
    from pytest_harbor.agents.human import HumanAgent, refusal

    if why := refusal(os.environ):
        raise RecipeError(f"{recipe.source('agent.name')}: {why}")
    return HumanAgent()


_OWN: Final[Mapping[str, Callable[[Recipe], Agent]]] = {
    "command": _command,
    "human": _human,
    "model-loop": _model_loop,
    "nop": _nop,
    "oracle": _oracle,
    "replay": _replay,
}


def _installed(recipe: Recipe) -> Agent:
    """The agent of a card, one of the operator's own before one of ours."""
    from pytest_harbor.agents.card import card_names, find_card
    from pytest_harbor.agents.installed import CliAgent

    choice = recipe.agent
    folders = [Path(folder) for folder in choice.cards]
    if missing := [str(folder) for folder in folders if not folder.is_dir()]:
        raise RecipeError(
            f"{recipe.source('agent.cards')}: there is no folder {', '.join(missing)} to take "
            "cards from"
        )
    card = find_card(choice.name, folders)
    if card is None:
        known = (*_OWN, *card_names(folders))
        near = hint(choice.name, known, ("module:Class", "harbor:NAME"))
        raise RecipeError(
            f"{recipe.source('agent.name')}: there is no agent {choice.name!r}; {near}"
        )
    if choice.effort is not None and choice.effort not in card.efforts:
        known_efforts = f"it knows {', '.join(card.efforts)}" if card.efforts else "it has none"
        raise RecipeError(
            f"{recipe.source('agent.effort')}: the agent {card.name} knows no effort "
            f"{choice.effort!r}; {known_efforts}"
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
