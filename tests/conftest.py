"""What all tests share: those that need a Docker engine say so, and know what to do without one."""

from __future__ import annotations

import functools
import os
from pathlib import Path

import pytest
from hypothesis import settings

# A busy machine is no finding; and CI shall find tomorrow what it found today.
settings.register_profile("house", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("house")

DOCKER_TESTS = Path(__file__).parent / "docker"


def pytest_itemcollected(item: pytest.Item) -> None:
    """Everything in tests/docker needs the engine; elsewhere a test says it by the mark itself."""
    if item.path.is_relative_to(DOCKER_TESTS):
        item.add_marker(pytest.mark.docker)


@pytest.fixture(autouse=True)
def not_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of pytest inside a test are runs of their own, also where xdist runs the test."""
    for name in [name for name in os.environ if name.startswith("PYTEST_XDIST_")]:
        monkeypatch.delenv(name)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    needs = {"docker": why_no_engine, "local_model": why_no_local_model}
    for mark, why_not in needs.items():
        fault = why_not() if item.get_closest_marker(mark) else None
        if fault and os.environ.get(f"PYTEST_HARBOR_REQUIRE_{mark.upper()}"):
            pytest.fail(f"This run must not skip tests marked {mark}. {fault}", pytrace=False)
        elif fault:
            pytest.skip(fault)


@functools.cache
def why_no_engine() -> str | None:
    """The reason, asked once in a process and only when a test that needs the engine starts."""
    from pytest_harbor.errors import SandboxError
    from pytest_harbor.sandbox.engine import Engine

    engine = Engine()
    try:
        _ = engine.facts
    except SandboxError as fault:
        return str(fault)
    finally:
        engine.close()
    return None


def why_no_local_model() -> str | None:
    """The reason why the extra local-model cannot be used."""
    from pytest_harbor.errors import RecipeError
    from pytest_harbor.gateway.local import find_weights

    try:
        find_weights()
    except RecipeError as fault:
        return str(fault)
    return None
