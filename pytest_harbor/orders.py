"""Orders to a run that make it do something else than run tests."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from pytest_harbor.errors import HarborError
from pytest_harbor.options import given, recipe_layers


def clean(config: pytest.Config) -> int | None:
    """Obey ``--harbor-clean``: remove what killed runs left; None where that is not asked.

    ``--harbor-clean-images`` takes what is kept for later runs as well.
    """
    images = given(config, "clean-images") is not None
    if not images and given(config, "clean") is None:
        return None
    from pytest_harbor.sandbox.engine import Engine
    from pytest_harbor.sandbox.janitor import clean as sweep

    try:
        with closing(Engine()) as engine:
            swept = sweep(engine, images=images)
    except HarborError as error:
        raise pytest.UsageError(str(error)) from None
    groups = [f"  of {group}" for group in swept.groups]
    for line in (f"removed: {swept}", *groups, *swept.warnings):
        print(line)  # noqa: T201  there is no terminal reporter yet
    return pytest.ExitCode.OK


def show_recipe(session: pytest.Session) -> bool | None:
    """Obey ``--harbor-show-recipe``: print the recipe of each dataset that was collected."""
    if given(session.config, "show-recipe") is None:
        return None
    from pytest_harbor.recipe import make_recipe

    folders: dict[Path, Path] = {}
    for item in session.items:
        if item.path.name == "task.toml":
            folders.setdefault(item.path.parent.parent, item.path.parent)
    for dataset, task in folders.items():
        rows = list(make_recipe(recipe_layers(session.config, task)).rows())
        width = max(len(key) for key, _, _ in rows)
        print(f"\nrecipe of {dataset}")  # noqa: T201  this is what was asked for
        for key, value, source in rows:
            print(f"  {key:{width}}  {value!r:24}  {source}")  # noqa: T201
    return True
