"""Episodes whose main runs at one of Harbor's sandbox providers."""

from __future__ import annotations

import subprocess
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from episodes import (
    GIVES_WHAT_STANDS_IN_APP,
    USER,
    USER_FILES,
    Part,
    Played,
    many_steps,
    one_step,
    play,
)

from pytest_harbor.episode.outcome import Outcome

pytestmark = [
    pytest.mark.docker,
    pytest.mark.skipif(
        find_spec("harbor") is None,
        reason="the package harbor is not installed: Python 3.12, pip install -e '.[harbor,dev]'",
    ),
]

FARAWAY = "harbor:harbor_providers:Faraway"
GRADE = "cat /app/reward > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt"


def far(task: Path, sandbox: str = FARAWAY, agent: str = "oracle", **recipe: Any) -> Played:
    """Play a task at a provider's; nothing of it is left there."""
    played = play(task, agent, recipe={"sandbox.name": sandbox, **recipe})
    names = subprocess.check_output(["docker", "ps", "-a", "--format", "{{.Names}}"], text=True)
    assert not set(names.split()) & set(import_module("harbor_providers").STARTED)
    return played


@pytest.mark.parametrize("sandbox", [FARAWAY, "harbor:docker"])
def test_an_episode_is_the_same_far_away(tmp_path: Path, sandbox: str) -> None:
    toml = """
[environment.env]
COLOUR = "blue"
[agent]
user = "ann"
"""
    image = "FROM debian:bookworm-slim\nRUN useradd -m ann && mkdir -m 777 /app\nWORKDIR /app\n"
    one = Part(
        "whoami; pwd; echo $COLOUR; sleep 300 & disown; mkdir /app/out; echo kept > /app/out/file\n"
        "ln -s /etc/passwd /logs/agent/link; echo 0.5 > reward",
        "echo secret > /tmp/left; mkdir /tmp/new; touch /tmp/new/x; cat /tests/key; "
        "grep -l sleep /proc/[0-9]*/comm | wc -l; " + GIVES_WHAT_STANDS_IN_APP,
        'artifacts = ["/app/out"]\n',
        {"tests/key": "the key\n", "workdir/setup.sh": "echo set up > /app/setup\n"},
    )
    two = Part(
        "ls -d /tests/* /tmp/left /tmp/new /logs/verifier/*; cat setup; echo 1 > reward",
        GIVES_WHAT_STANDS_IN_APP,
    )
    files = {"environment/Dockerfile": image}
    played = far(many_steps(tmp_path, toml, one, two, **files), sandbox)
    assert [step.reward for step in played.result.steps] == [0.5, 1], str(played.result.fault)
    assert played.read("steps/one/agent/oracle.txt") == "ann\n/app\nblue\n"
    assert played.read("steps/one/verifier/test-stdout.txt").startswith("the key\n")
    assert played.read("steps/one/artifacts/app/out/file") == "kept\n"
    assert played["one"].hygiene.killed_before_grading == ("sleep",)
    assert set(played["one"].hygiene.removed) == {"/tmp/left", "/tmp/new"}
    said = played.read("steps/two/agent/oracle.txt")
    assert said.splitlines()[-1] == "set up"
    assert said.count("No such file") >= 3
    assert any("from inside only" in warning for warning in played.result.warnings)


def test_a_turn_out_of_time_is_ended(tmp_path: Path) -> None:
    task = one_step(tmp_path, solve="echo begun; sleep 300", test=GRADE)
    played = far(task, **{"timeouts.agent.seconds": 3.0})
    assert played.result.outcome is Outcome.AGENT_TIMEOUT
    assert played.read("agent/oracle.txt") == "begun\n"
    assert "sleep" in played[0].hygiene.killed_before_grading


def test_a_container_that_dies_is_an_error(tmp_path: Path) -> None:
    played = far(one_step(tmp_path, solve="kill -9 -1; kill 1; sleep 5", test=GRADE))
    assert played.result.outcome is Outcome.SANDBOX_DIED


def test_an_agent_of_harbors_acts_there(tmp_path: Path) -> None:
    recipe = {"agent.options.act": "work", "agent.env.COLOUR": "blue"}
    played = far(one_step(tmp_path, test=GRADE), FARAWAY, "harbor:harbor_agents:Probe", **recipe)
    assert played[0].turn is not None
    assert played.result.reward == 1, played[0].turn.message


@pytest.mark.parametrize(
    ("fails", "word", "outcome"),
    [
        ("options", "no region of that name", Outcome.TASK_INVALID),
        ("start", "no machine is free", Outcome.START_FAILED),
    ],
)
def test_a_provider_that_cannot_says_why(
    tmp_path: Path, fails: str, word: str, outcome: Outcome
) -> None:
    played = far(one_step(tmp_path), **{"sandbox.options.fails": fails})
    assert played.result.outcome is outcome
    assert played.result.fault is not None
    assert word in played.result.fault.message


def test_what_no_provider_can_do_is_refused_by_name(tmp_path: Path) -> None:
    sidecar = far(one_step(tmp_path, USER, **USER_FILES)).result.fault
    server = far(one_step(tmp_path, USER)).result.fault
    keep = far(one_step(tmp_path), keep=True).result.fault
    unknown = far(one_step(tmp_path), "harbor:nowhere").result.fault
    typo = far(one_step(tmp_path), "podman").result.fault
    faults = (sidecar, server, keep, unknown, typo)
    words = ("sidecar", "user-server", "keep", "daytona", "podman")
    for fault, word in zip(faults, words, strict=True):
        assert fault is not None
        assert word in fault.message
