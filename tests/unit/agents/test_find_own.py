"""The agents of our own are found by name, and say what they lack."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from pytest_harbor.agents.find import find_agent
from pytest_harbor.errors import RecipeError
from pytest_harbor.recipe import Layer, make_recipe
from pytest_harbor.settings import Recipe


def recipe(**values: Any) -> Recipe:
    dotted = {f"agent.{key.replace('__', '.')}": value for key, value in values.items()}
    return make_recipe([Layer(dotted, dict.fromkeys(dotted, "here"))])


def test_they_are_found_with_what_the_recipe_says(tmp_path: Path) -> None:
    loop = find_agent(recipe(name="model-loop", model="a/b", loop__calls=3))
    assert (loop.name, loop.model, loop.capabilities.needs_model) == ("model-loop", "a/b", True)
    replay = find_agent(recipe(name="replay", trajectories=str(tmp_path)))
    assert (replay.name, replay.capabilities.is_utility) == ("replay", True)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"name": "replay"}, "here: the agent 'replay' needs the recipe key agent.trajectories"),
        ({"name": "replay", "trajectories": "/no/where"}, "here: /no/where does not exist"),
        ({"name": "model-lop"}, "did you mean model-loop?"),
        ({"name": "model-loop", "loop__calls": 0}, "agent.loop.calls"),
    ],
)
def test_what_is_missing_is_told(values: dict[str, Any], said: str) -> None:
    with pytest.raises(RecipeError, match=re.escape(said)):
        find_agent(recipe(**values))
