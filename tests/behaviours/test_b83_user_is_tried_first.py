"""B83, B84, B85: a user that cannot be asked is found before the first turn, by name."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from episodes import ASK, USER, USER_FILES, one_step, play

from pytest_harbor.agents.base import Capabilities
from pytest_harbor.agents.nop import NopAgent

pytestmark = pytest.mark.docker

TOUCHES = "env > /app/env"
ASKS = ASK + "ask > /app/said"
HEARD = "grep -q 'asked 1' /app/said && echo 1 > /logs/verifier/reward.txt"


@dataclass(frozen=True)
class Deaf(NopAgent):
    """An agent in the contest that speaks no MCP."""

    name: str = "deaf"
    capabilities = Capabilities(mcp_transports=frozenset())


@dataclass(frozen=True)
class OnlySse(Deaf):
    name: str = "only-sse"
    capabilities = Capabilities(mcp_transports=frozenset({"sse"}))


def test_b85_a_user_that_listens_late_is_waited_for(tmp_path: Path) -> None:
    task = one_step(tmp_path, USER, solve=ASKS, test=HEARD, **USER_FILES)
    played = play(task, recipe={"compose_variables.LATE": "3"})
    assert (played.result.outcome, played.result.reward) == ("passed", 1)
    (grant,) = played[0].grants
    assert (grant.name, grant.url) == ("user-server", "http://user-server:8000/mcp")
    assert (grant.mode, grant.reachable, grant.tools) == ("required", True, ("ask_user",))
    assert grant.note == ""
    assert played.read("services/user-server.log").startswith("the user lives\n")
    assert played.result.phases["grants"].seconds < 10


def test_a_transport_that_was_forgotten_is_named(tmp_path: Path) -> None:
    old = USER.replace('transport = "streamable-http"\n', "")
    assert old != USER
    played = play(one_step(tmp_path, old, solve=ASKS, test=HEARD, **USER_FILES))
    assert played.result.fault is not None
    assert played.result.outcome == "mcp_unavailable"
    assert 'most servers want transport = "streamable-http"' in played.result.fault.message


@pytest.mark.parametrize(
    ("variables", "trouble"),
    [
        ({"LISTENS": "no"}, "nothing listens at http://user-server:8000/mcp"),
        ({"TOOLS": ""}, "http://user-server:8000/mcp answers, but offers no tools"),
    ],
    ids=["never listens", "no tools"],
)
def test_b83_a_user_that_cannot_be_asked(
    tmp_path: Path, variables: dict[str, str], trouble: str
) -> None:
    files = USER_FILES | {
        "environment/docker-compose.yaml": USER_FILES["environment/docker-compose.yaml"].replace(
            "${TOOLS:-ask_user}", "${TOOLS-ask_user}"
        )
    }
    task = one_step(tmp_path, USER, solve=TOUCHES, test="cat /app/env; exit 1", **files)
    settings = {f"compose_variables.{name}": value for name, value in variables.items()}
    settings |= {"mcp_ready_seconds": 1.5, "count_as_zero": ["no_reward"]}

    required = play(task, recipe={**settings, "task_mcp_grants": "required"})
    assert (required.result.outcome, required.result.verdict) == ("mcp_unavailable", "error")
    assert required.result.fault is not None
    assert required.result.fault.phase == "grants"
    assert f"MCP server 'user-server': {trouble}" in required.result.fault.message
    assert required.result.phases["grants"].seconds < 6
    assert required.result.steps_run == 0
    assert "the user lives" in required.read("services/user-server.log")

    optional = play(task, recipe={**settings, "task_mcp_grants": "optional"})
    assert optional.result.outcome == "failed"
    (grant,) = optional[0].grants
    assert grant.reachable is False
    assert trouble in grant.note

    off = play(task, recipe={**settings, "task_mcp_grants": "off"})
    assert off.result.outcome == "failed"
    assert off[0].grants == ()
    assert "USER_SERVER_URL" not in off.read("verifier/test-stdout.txt")
    assert off.result.phases["grants"].seconds < 0.5


def test_b84_an_agent_that_cannot_use_a_required_server_is_refused(tmp_path: Path) -> None:
    task = one_step(tmp_path, USER, **USER_FILES)
    for agent in (Deaf(), OnlySse()):
        result = play(task, agent, recipe={"task_mcp_grants": "required"}).result
        assert (result.outcome, result.verdict) == ("mcp_unavailable", "error")
        assert result.fault is not None
        assert result.fault.phase == "plan"  # before anything was created
        assert (
            f"agent {agent.name} cannot use the MCP server 'user-server' (streamable-http)"
            in result.fault.message
        )


@pytest.mark.parametrize("mode", ["optional", "off"])
def test_b84_where_it_is_optional_the_result_says_so(tmp_path: Path, mode: str) -> None:
    task = one_step(tmp_path, USER, **USER_FILES)
    result = play(task, Deaf(), recipe={"task_mcp_grants": mode}).result
    assert result.outcome == "passed"
    said = "agent deaf cannot use the MCP server 'user-server'" in "\n".join(result.warnings)
    assert said is (mode == "optional")


def test_b83_a_dead_server_does_not_speak_for_the_next(tmp_path: Path) -> None:
    dead = '\n[[environment.mcp_servers]]\nname = "dead"\ntransport = "http"\n'
    dead += 'url = "http://127.0.0.1:9/mcp"\n'
    task = one_step(tmp_path, dead + USER, solve=ASKS, test=HEARD, **USER_FILES)
    recipe = {"task_mcp_grants": "optional", "mcp_ready_seconds": 2.0}
    played = play(task, recipe=recipe)
    assert played.result.reward == 1
    first, second = played[0].grants
    assert (first.name, first.reachable) == ("dead", False)
    assert "cannot be reached from inside main" in first.note
    assert (second.name, second.reachable) == ("user-server", True)
