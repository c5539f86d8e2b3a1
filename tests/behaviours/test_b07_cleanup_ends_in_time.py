"""B07, B08, B10: cleanup ends in time whatever the engine does, never raises, and says how to
finish by hand."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from fake_engine import Answer, fake_engine
from groups import a_spec, an_owner, soon

from pytest_harbor.sandbox import janitor
from pytest_harbor.sandbox.engine import Engine
from pytest_harbor.sandbox.group import Group

CONTAINERS = [{"Id": name * 64, "Labels": {}} for name in "ab"]
NETWORKS = [{"Id": "c" * 64, "Labels": {}}]


def engine_where(deletes: Any) -> Answer:
    """An engine with two containers and a network, which answers a removal like this."""

    def answer(method: str, path: str) -> tuple[int, Any] | None:
        if method == "DELETE":
            return deletes(path) if callable(deletes) else deletes
        lists: dict[str, Any] = {"/containers": CONTAINERS, "/networks": NETWORKS}
        found = [lists[start] for start in lists if path.startswith(start)]
        return (200, found[0] if found else {"Volumes": None})

    return answer


def closed(tmp_path: Path, answer: Answer, seconds: float) -> tuple[tuple[str, ...], float, Group]:
    with fake_engine(tmp_path, answer) as environment:
        engine = Engine(environment)
        group = Group(engine, a_spec(), an_owner())
        group._registry.register(group.project)
        began = time.monotonic()
        warnings = group.close(soon(seconds))
        took = time.monotonic() - began
        engine.close()
        return warnings, took, group


def is_on_record(tmp_path: Path, group: Group) -> bool:
    """Whether the janitor would go on with it; it is then told not to, for there is no engine."""
    found = list((tmp_path / "state/runs").rglob(group.project))
    group._registry.forget(group.project)
    return bool(found)


def test_an_engine_that_hangs_while_removing(tmp_path: Path) -> None:
    warnings, took, group = closed(tmp_path, engine_where(None), 1)
    assert took < 3
    assert "container aaaaaaaaaaaa was not removed in time" in "\n".join(warnings)
    assert warnings[-1] == (
        f"To finish by hand: docker compose -p {group.project} down --volumes --timeout 0"
    )
    assert is_on_record(tmp_path, group)  # the janitor goes on when we are gone


def test_an_engine_that_hangs_at_everything(tmp_path: Path) -> None:
    warnings, took, group = closed(tmp_path, lambda *_: None, 1)
    assert took < 3
    assert is_on_record(tmp_path, group)
    assert warnings[-1].startswith("To finish by hand: docker compose -p ")


def test_an_engine_that_is_gone(tmp_path: Path) -> None:
    engine = Engine({"DOCKER_HOST": f"unix://{tmp_path}/none", "HOME": str(tmp_path)})
    warnings = Group(engine, a_spec(), an_owner()).close(soon(1))
    assert "No Docker engine answers" in warnings[0]


def test_an_engine_that_refuses(tmp_path: Path) -> None:
    refusal = (500, {"message": "driver failed to remove root filesystem"})
    warnings, _, group = closed(
        tmp_path, engine_where(lambda path: refusal if "/aaa" in path else (204, None)), 5
    )
    assert "container aaaaaaaaaaaa could not be removed: driver failed" in warnings[0]
    assert is_on_record(tmp_path, group)


@pytest.mark.parametrize(
    "refusal",
    [
        (404, {"message": "No such container"}),
        (409, {"message": "removal of container a is already in progress"}),
    ],
)
def test_what_somebody_else_removes_is_no_trouble(tmp_path: Path, refusal: tuple[int, Any]) -> None:
    warnings, _, group = closed(tmp_path, engine_where(lambda _: refusal), 5)
    assert warnings == ()
    assert not is_on_record(tmp_path, group)


def test_a_network_that_is_busy_for_a_moment_is_tried_again(tmp_path: Path) -> None:
    tries: list[str] = []

    def deletes(path: str) -> tuple[int, Any]:
        tries.append(path)
        busy = path.startswith("/networks") and sum("/networks" in p for p in tries) < 3
        return (403, {"message": "network has active endpoints"}) if busy else (204, None)

    warnings, _, _ = closed(tmp_path, engine_where(deletes), 5)
    assert warnings == ()


def test_a_sweep_survives_all_this(tmp_path: Path) -> None:
    with fake_engine(tmp_path, engine_where((500, {"message": "no"}))) as environment:
        engine = Engine(environment)
        assert janitor.sweep_dead_owners(engine).found == 0
        engine.close()
