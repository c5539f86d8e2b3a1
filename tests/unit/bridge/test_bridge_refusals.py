"""A sandbox that cannot be used is refused while the episode is planned, before anything starts."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from episodes import USER, USER_FILES, one_step

from pytest_harbor.agents.find import find_agent
from pytest_harbor.bridge import provider
from pytest_harbor.episode.plan import make_plan
from pytest_harbor.errors import HarborError, RecipeError, TaskError
from pytest_harbor.recipe import Layer, make_recipe
from pytest_harbor.task.load import load_task


def plan(task: Path, **values: Any) -> None:
    values = {"sandbox.name": "harbor:docker", **values}
    recipe = make_recipe([Layer(values, dict.fromkeys(values, "a test"))])
    make_plan(load_task(task), recipe, find_agent(recipe), {})


def test_without_harbor_the_remedy_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 11, 7, "final", 0))
    with pytest.raises(RecipeError, match=r"^a test: .*Python 3\.12"):
        plan(one_step(tmp_path))


def test_an_unknown_sandbox_is_told(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="no sandbox 'podman'; known: docker, harbor:"):
        plan(one_step(tmp_path), **{"sandbox.name": "podman"})


@pytest.mark.parametrize(
    ("toml", "recipe", "kind", "word"),
    [
        (USER, {}, RecipeError, "the MCP server user-server"),
        ("", {"keep": True}, RecipeError, "keep"),
        ("", {"compose_overlays": ["more.yaml"]}, RecipeError, "compose_overlays"),
        (
            "",
            {
                "verifier.env.JUDGE": {"model_server": "judge"},
                "model_servers.judge.base_url": "http://judge",
            },
            RecipeError,
            "model server judge",
        ),
    ],
)
def test_what_no_provider_can_do_is_named(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    toml: str,
    recipe: dict[str, Any],
    kind: type[HarborError],
    word: str,
) -> None:
    monkeypatch.setattr(provider, "require_harbor", lambda _: None)
    with pytest.raises(kind, match=word):
        plan(one_step(tmp_path, toml), **recipe)
    plan(one_step(tmp_path))


def test_a_compose_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider, "require_harbor", lambda _: None)
    with pytest.raises(TaskError, match="no sidecar, no simulated user"):
        plan(one_step(tmp_path, **USER_FILES))
