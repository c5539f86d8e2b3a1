"""Episodes whose model calls go through the gateway, on the real engine."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from episodes import GIVES_1, Part, many_steps, one_step, play
from models import KEY, MODEL, Upstream

from pytest_harbor.episode.outcome import Outcome
from pytest_harbor.gateway import Gateway
from pytest_harbor.sandbox.group import Group

HOST = {"UPSTREAM_KEY": KEY}


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    with Upstream() as upstream:
        yield upstream


@pytest.fixture
def gateway() -> Iterator[Gateway]:
    with Gateway(environment=HOST) as gateway:
        yield gateway


def server(name: str, upstream: Upstream, **more: Any) -> dict[str, Any]:
    """A model server in a recipe; tokens of its model have a price."""
    table = {"base_url": upstream.url, "key": {"env": "UPSTREAM_KEY"}, "model": "real-1", **more}
    prices = {"prices.real-1.input": 10.0, "prices.real-1.output": 100.0}
    return {f"model_servers.{name}.{key}": value for key, value in table.items()} | prices


SIDE = """
services:
  main: {}
  side:
    image: debian:bookworm-slim
    init: true
    command: sleep infinity
    environment: {MODEL: "${MODEL}/v1", WHERE: "${WHERE:-}"}
"""
ASK_SIDE = MODEL + 'model "${MODEL%/v1}" "from the side"'


def side_asks(group: Group) -> str:
    """Let the sidecar ask its model, after the episode."""
    from groups import soon

    ran = group.container("side").run(ASK_SIDE, deadline=soon(20))
    return ran.output.decode()


def test_every_party_reaches_its_model_and_nobody_the_key(
    tmp_path: Path, gateway: Gateway, upstream: Upstream
) -> None:
    ask = MODEL + 'model "$POLICY" hello; model "$POLICY/v1" again; env; cat /proc/*/environ'
    grade = MODEL + 'model "$JUDGE" verdict; env; ' + GIVES_1
    collect = '[[steps.verifier.collect]]\nservice = "side"\ncommand = """' + ASK_SIDE + '"""\n'
    files = {"environment/docker-compose.yaml": SIDE}
    task = many_steps(tmp_path, "", Part(ask, grade, collect), Part("true"), **files)
    recipe = {
        **server("policy", upstream),
        **server("user_model", upstream),
        **server("judge", upstream),
        "agent.env.POLICY": {"model_server": "policy"},
        "verifier.env.JUDGE": {"model_server": "judge"},
        "compose_variables.MODEL": {"model_server": "user_model"},
    }
    seen: dict[str, Any] = {}

    def look(group: Group) -> None:
        ids = [group.container_id(name) for name in group.services]
        seen["inspected"] = subprocess.check_output(["docker", "inspect", *ids], text=True)
        seen["dead"] = side_asks(group)
        seen["processes"] = subprocess.check_output(["ps", "axeww"], text=True)

    played = play(task, recipe=recipe, host=HOST, gateway=gateway, look=look)
    result = played.result
    assert (result.outcome, result.reward) == (Outcome.PASSED, 1)
    assert "hello from upstream" in played.read("steps/one/agent/oracle.txt")
    assert "hello from upstream" in played.read("steps/one/verifier/test-stdout.txt")

    # who asked how much, by the ledger
    calls = {name: (party.calls, party.failed) for name, party in result.parties.items()}
    assert calls == {"agent": (2, 0), "user": (1, 0), "judge": (1, 0)}
    agent = result.parties["agent"]
    assert (agent.input_tokens, agent.output_tokens) == (200, 40)
    assert agent.cost_usd == pytest.approx(2 * (100 * 10 + 20 * 100) / 1e6)
    assert agent.models == ("real-1-2026-01-01",)
    assert agent.server["model"] == "real-1"
    one, two = result.steps
    assert (one.parties["agent"].calls, two.parties["agent"].calls) == (2, 0)
    assert one.turn is not None
    assert (one.turn.input_tokens, one.turn.output_tokens) == (200, 40)
    assert one.turn.cost_usd == agent.cost_usd == result.cost_usd
    assert result.tokens == 240
    ledger = [json.loads(line) for line in played.read("model-calls.jsonl").splitlines()]
    assert {(call["party"], call["step"]) for call in ledger} == {
        ("agent", "one"),
        ("user", "one"),
        ("judge", "one"),
    }

    # the address died with the episode, and was written nowhere
    assert "hello" not in seen["dead"]
    addresses = json.loads(seen["inspected"])[1]["Config"]["Env"]
    secret = next(a for a in addresses if a.startswith("MODEL=")).split("/")[3]
    assert len(secret) > 20
    assert secret not in played.everything

    # the key is with the upstream, and nowhere else
    assert {got["authorization"] for got in map(_lower, upstream.got)} == {f"Bearer {KEY}"}
    for text in (played.everything, seen["inspected"], seen["processes"]):
        assert KEY not in text


def _lower(headers: dict[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}
