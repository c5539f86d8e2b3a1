"""B22, B70: a sidecar that never gets healthy is told in time, with its health log, as a fault of
this group only."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from groups import a_group, a_spec, an_engine, an_owner, environment, soon, what_is_left

from pytest_harbor.errors import SandboxError
from pytest_harbor.sandbox.group import Group

pytestmark = pytest.mark.docker

COMPOSE = """
services:
  main:
    image: debian:bookworm-slim
    depends_on: {sick: {condition: service_healthy}}
  sick:
    image: debian:bookworm-slim
    command: sh -c "echo I am up; sleep infinity"
    init: true
    healthcheck:
      test: PROBE
      interval: 1s
      retries: 2
"""
FAILS = '["CMD-SHELL", "echo no answer; exit 1"]'
HANGS = '["CMD-SHELL", "sleep 60"]'


def refused(
    tmp_path: Path, probe: str, seconds: float, compose: str = COMPOSE
) -> tuple[str, float]:
    engine = an_engine()
    place = environment(tmp_path, compose.replace("PROBE", probe))
    group = Group(engine, a_spec(place), an_owner())
    began = time.monotonic()
    with pytest.raises(SandboxError) as caught:
        group.start(soon(seconds))
    took = time.monotonic() - began
    assert caught.value.outcome == "start_failed"
    assert what_is_left(group.project) == []
    engine.close()
    return str(caught.value), took


def test_failing_probes_are_told_when_the_tasks_own_patience_is_over(tmp_path: Path) -> None:
    said, took = refused(tmp_path, FAILS, 60)
    assert "service sick is not healthy" in said
    assert "no answer" in said
    assert "I am up" in said
    assert took < 10  # two probes, one second apart, and starting


def test_a_sidecar_that_another_one_waits_for(tmp_path: Path) -> None:
    compose = COMPOSE + (
        "  second:\n    image: debian:bookworm-slim\n    command: sleep infinity\n"
        "    depends_on: {sick: {condition: service_healthy}}\n"
    )
    said, took = refused(tmp_path, FAILS, 60, compose)
    assert "service sick is not healthy" in said
    assert took < 15


def test_hanging_probes_are_told_at_the_deadline(tmp_path: Path) -> None:
    said, took = refused(tmp_path, HANGS, 4)
    assert "not ready in time (a test's patience" in said
    assert "no probe of its healthcheck has ended" in said
    assert took < 8


def test_the_next_group_starts_all_the_same(tmp_path: Path) -> None:
    refused(tmp_path, FAILS, 2)
    with a_group(a_spec(environment(tmp_path, COMPOSE.replace("PROBE", '["CMD", "true"]')))) as up:
        assert up.state("sick").health == "healthy"


def test_a_sidecar_that_crashes_again_and_again(tmp_path: Path) -> None:
    compose = COMPOSE.replace("{sick: {condition: service_healthy}}", "[sick]")
    compose = compose.replace("I am up; sleep infinity", "no config; exit 3")
    said, took = refused(tmp_path, '["CMD", "true"]', 60, compose + "    restart: always\n")
    assert "service sick ended with exit code 3, again after" in said
    assert "no config" in said
    assert took < 20
