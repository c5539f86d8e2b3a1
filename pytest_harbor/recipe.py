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
from pytest_harbor.recipe_keys import NAME, NAMED_TABLES, free_table, general, is_value, split

if TYPE_CHECKING:
    from pytest_harbor.settings import Recipe

FILE_NAME = "harbor.yaml"
_FILE_KEYS = (
    "agent.cards",
    "agent.trajectories",
    "model_servers.<name>.rules",
    "model_servers.<name>.recording",
)
"""Keys whose values are paths, relative to the recipe file that they stand in."""


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
        leaves = list(_leaves(root, (), yaml.SafeLoader("")))
    except (OSError, UnicodeDecodeError) as error:
        raise RecipeError(f"{shown}: cannot be read ({error})") from None
    except yaml.YAMLError as error:
        raise RecipeError(f"{shown}: is not valid YAML: {' '.join(str(error).split())}") from None
    twice = _first_repeated(key for key, _, _ in leaves)
    if twice is not None:
        raise RecipeError(f"{shown}: the key {twice} stands there twice; keep one")
    return Layer(
        values={key: _placed(key, value, path) for key, value, _ in leaves},
        sources={key: f"{shown}:{line}" for key, _, line in leaves},
    )


def _leaves(node: Any, place: tuple[str, ...], loader: Any) -> Iterator[tuple[str, Any, int]]:
    for key_node, value_node in node.value:
        parts = (*place, str(key_node.value))
        line = key_node.start_mark.line + 1
        if value_node.id == "mapping" and value_node.value and not is_value(parts):
            yield from _leaves(value_node, parts, loader)
        else:
            yield ".".join(parts), loader.construct_document(value_node), line


def _placed(key: str, value: Any, file: Path) -> Any:
    """A value as it is meant in its file: a path there is relative to the file."""
    if general(key) not in _FILE_KEYS:
        return value
    if isinstance(value, list):
        return [_placed(key, each, file) for each in value]
    return str(file.absolute().parent / value) if isinstance(value, str) else value


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
        if general(key) not in known and free_table(key) is None
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
        *folders, leaf = split(key)
        place = nested
        for folder in folders:
            place = place.setdefault(folder, {})
        place[leaf] = value
    return nested


def _suggest(key: str, known: Iterable[str]) -> str:
    outer, _, name = key.partition(".")
    chosen = split(key)[1] if NAME in general(key) else name
    table = f"{outer}.{NAME}" if outer in NAMED_TABLES and name else key
    inside = sorted(each for each in known if each.startswith(f"{table}."))
    if inside and general(key) == key:
        return f": it is a table; set {', '.join(inside).replace(NAME, chosen)}"
    near = difflib.get_close_matches(general(key), list(known), n=1, cutoff=0.5)
    if not near:
        return f"; known keys: {', '.join(sorted(known))}"
    return f"; did you mean {near[0].replace(NAME, chosen)}?"


def _explain(problem: Mapping[str, Any], sources: Mapping[str, str]) -> str:
    parts = [str(part) for part in problem["loc"]]
    for length in range(len(parts), 0, -1):
        key = ".".join(parts[:length])
        below = (source for each, source in sources.items() if each.startswith(f"{key}."))
        if source := sources.get(key) or next(below, None):
            return f"{source}: {key}: {_complaint(key, problem)}"
    return f"{'.'.join(parts)}: {problem['msg']}, got {problem['input']!r}"


def _complaint(key: str, problem: Mapping[str, Any]) -> str:
    """What is wrong with a value, without showing one that may be a secret."""
    if general(key) == "model_servers.<name>.key":
        return "write {env: NAME}, the variable that holds the key; a key does not stand in a file"
    if free_table(key) or general(key) == "model_servers.<name>.headers":
        return f"{problem['msg']}; write a text, {{env: NAME}} or {{model_server: NAME}}"
    return f"{problem['msg']}, got {problem['input']!r}"
