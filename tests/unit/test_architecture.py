"""The house stands: imports go down or stay in the room, and never in a circle."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "pytest_harbor"
FLOORS = {
    "errors": 0, "hints": 0, "plain": 0, "recipe": 0, "recipe_keys": 0, "redaction": 0,
    "settings": 0, "steady": 0, "task": 0, "trajectory": 0,
    "sandbox": 1,
    "agents": 2, "bridge": 2, "gateway": 2, "user": 2,
    "episode": 3,
    "report": 4,
    "collection": 5, "durations": 5, "fixtures": 5, "guard": 5, "hookspecs": 5, "ignoring": 5,
    "items": 5, "job": 5, "longest_first": 5, "options": 5, "orders": 5, "plugin": 5,
    "reporting": 5, "scheduling": 5, "terminal": 5, "until_step": 5,
}  # fmt: skip
KNOWS_PYTEST = 5
KNOWS_DOCKER = {"sandbox"}


def modules() -> dict[str, ast.Module]:
    paths = [path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py"]
    return {name_of(path): ast.parse(path.read_text()) for path in paths}


def name_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room(module: str) -> str:
    return module.partition(".")[0]


def imports(tree: ast.Module) -> Iterator[tuple[str, str | None]]:
    """Each import as (module, name); the name is None for a plain import."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from ((node.module, alias.name) for alias in node.names)


def ours(tree: ast.Module) -> Iterator[tuple[str, str | None]]:
    for module, name in imports(tree):
        if module == "pytest_harbor" and name is not None:
            yield name, None
        elif module.startswith("pytest_harbor."):
            yield module.removeprefix("pytest_harbor."), name


def test_every_room_has_a_floor() -> None:
    assert {room(module) for module in modules()} <= set(FLOORS)


def test_nothing_climbs() -> None:
    climbs = [
        f"{module} imports {target}"
        for module, tree in modules().items()
        for target, _ in ours(tree)
        if FLOORS[room(target)] > FLOORS[room(module)]
    ]
    assert not climbs


def test_private_names_stay_in_their_module() -> None:
    taken = [
        f"{module} takes {target}.{name}"
        for module, tree in modules().items()
        for target, name in ours(tree)
        if target != module and (name or "").startswith("_")
    ]
    assert not taken


def test_there_are_no_circles() -> None:
    found = modules()
    graph = {
        module: {
            f"{target}.{name}" if f"{target}.{name}" in found else target
            for target, name in ours(tree)
        }
        - {module}
        for module, tree in ((name, _without_typing(tree)) for name, tree in found.items())
    }
    while leaves := [module for module, targets in graph.items() if not targets & set(graph)]:
        for leaf in leaves:
            del graph[leaf]
    assert not graph


def _without_typing(tree: ast.Module) -> ast.Module:
    """The module without what only a type checker reads."""

    class Drop(ast.NodeTransformer):
        def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
            is_typing = isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
            return node.orelse if is_typing else node

    return Drop().visit(tree)


def test_only_the_roof_knows_pytest_and_only_the_sandbox_knows_docker() -> None:
    for module, tree in modules().items():
        outside = {target.partition(".")[0] for target, _ in imports(tree)}
        assert "_pytest" not in outside, module
        assert "pytest" not in outside or FLOORS[room(module)] == KNOWS_PYTEST, module
        assert "docker" not in outside or room(module) in KNOWS_DOCKER, module
