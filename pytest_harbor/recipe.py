"""The recipe: how tasks are run, put together from layers, each value knowing where it came from.

The layers, later ones win key by key: defaults, harbor.yaml files from the outermost folder
inwards, pytest ini, environment, command line. Reading the files needs only YAML; the checked
:class:`Recipe` is made when an episode needs it.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_harbor.errors import RecipeError

if TYPE_CHECKING:
    from pytest_harbor.settings import Recipe

FILE_NAME = "harbor.yaml"
_FREE_TABLES = {"compose_variables", "agent.env", "verifier.env"}
"""Tables whose keys the operator names; everything else is a known key."""


@dataclass(frozen=True)
class Layer:
    """Some recipe keys (dotted) with their values, and where each was written."""

    values: Mapping[str, Any] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)


def recipe_files(task_folder: Path, top: Path) -> tuple[Path, ...]:
    """The harbor.yaml files that hold for a task, outermost first.

    Folders from ``top`` down to the one that holds the task are looked at; one inside the task
    folder itself is never read, for a task is less trusted than its dataset. A dataset outside
    ``top`` has only its own folder.
    """
    dataset = task_folder.parent
    above = [dataset, *dataset.parents]
    inside = above[: above.index(top) + 1] if top in above else [dataset]
    return tuple(path for folder in reversed(inside) if (path := folder / FILE_NAME).is_file())


def read_layer(path: Path, *, shown: str | None = None) -> Layer:
    """Read one recipe file; each value remembers file and line.

    Raises:
        RecipeError: the file cannot be read or is not a YAML mapping; names file and line.
    """
    status = path.stat() if path.is_file() else None
    if status is None:
        raise RecipeError(f"{shown or path}: there is no such recipe file")
    return _read_layer(path, shown or _short(path), status.st_mtime_ns)


def _short(path: Path) -> str:
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative


@lru_cache(maxsize=256)
def _read_layer(path: Path, shown: str, _mtime_ns: int) -> Layer:
    import yaml

    try:
        root = yaml.compose(path.read_text(encoding="utf-8-sig"), Loader=yaml.SafeLoader)
        if root is None:
            return Layer()
        if not isinstance(root, yaml.MappingNode):
            raise RecipeError(f"{shown}: a recipe is a mapping of keys to values")
        leaves = list(_leaves(root, "", yaml.SafeLoader("")))
    except (OSError, UnicodeDecodeError) as error:
        raise RecipeError(f"{shown}: cannot be read ({error})") from None
    except yaml.YAMLError as error:
        raise RecipeError(f"{shown}: is not valid YAML: {' '.join(str(error).split())}") from None
    twice = _first_repeated(key for key, _, _ in leaves)
    if twice is not None:
        raise RecipeError(f"{shown}: the key {twice} stands there twice; keep one")
    return Layer(
        values={key: value for key, value, _ in leaves},
        sources={key: f"{shown}:{line}" for key, _, line in leaves},
    )


def _leaves(node: Any, prefix: str, loader: Any) -> Iterator[tuple[str, Any, int]]:
    for key_node, value_node in node.value:
        key = f"{prefix}{key_node.value}"
        line = key_node.start_mark.line + 1
        if value_node.id == "mapping" and value_node.value and not _is_value(prefix):
            yield from _leaves(value_node, f"{key}.", loader)
        else:
            yield key, loader.construct_document(value_node), line


def _is_value(prefix: str) -> bool:
    """Whether entries under this prefix are values already (`compose_variables.X: {env: Y}`)."""
    return prefix.rstrip(".") in _FREE_TABLES


def _first_repeated(keys: Iterable[str]) -> str | None:
    seen: set[str] = set()
    for key in keys:
        if key in seen:
            return key
        seen.add(key)
    return None


def stack(layers: Sequence[Layer]) -> Layer:
    """Lay layers over each other; the later wins, key by key."""
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for layer in layers:
        values.update(layer.values)
        sources.update(layer.sources)
    return Layer(values, sources)


def make_recipe(layers: Sequence[Layer]) -> Recipe:
    """Check the stacked layers and make the recipe of them.

    Raises:
        RecipeError: an unknown key (with a suggestion) or a value out of its range; every
            problem names the key and where it was written.
    """
    from pydantic import ValidationError

    from pytest_harbor.settings import Recipe, known_keys

    top = stack(layers)
    known = known_keys()
    problems = [
        f"{top.sources[key]}: unknown recipe key {key}{_suggest(key, known)}"
        for key in top.values
        if key not in known and key.rpartition(".")[0] not in _FREE_TABLES
    ]
    if problems:
        raise RecipeError("\n".join(problems))
    try:
        return Recipe.model_validate({**_nest(top.values), "sources": dict(top.sources)})
    except ValidationError as error:
        lines = [_explain(problem, top.sources) for problem in error.errors()]
        raise RecipeError("\n".join(lines)) from None


def _nest(values: Mapping[str, Any]) -> dict[str, Any]:
    nested: dict[str, Any] = {}
    for key, value in values.items():
        *folders, leaf = key.split(".")
        place = nested
        for folder in folders:
            place = place.setdefault(folder, {})
        place[leaf] = value
    return nested


def _suggest(key: str, known: Iterable[str]) -> str:
    inside = sorted(name for name in known if name.startswith(f"{key}."))
    if inside:
        return f": it is a table; set {', '.join(inside)}"
    near = difflib.get_close_matches(key, list(known), n=1, cutoff=0.5)
    return f"; did you mean {near[0]}?" if near else f"; known keys: {', '.join(sorted(known))}"


def _explain(problem: Mapping[str, Any], sources: Mapping[str, str]) -> str:
    parts = [str(part) for part in problem["loc"]]
    for length in range(len(parts), 0, -1):
        key = ".".join(parts[:length])
        if key in sources:
            return f"{sources[key]}: {key}: {problem['msg']}, got {problem['input']!r}"
    return f"{'.'.join(parts)}: {problem['msg']}, got {problem['input']!r}"
