"""B68, B66: tables of variables arrive where they belong, and nowhere else; secrets stay inside."""

from __future__ import annotations

from pathlib import Path

import pytest
from episodes import USER, USER_FILES, Part, many_steps, one_step, play

pytestmark = pytest.mark.docker

TOML = """
[environment.env]
PLAIN = "a$bc$$d"
FROM_HOST = "${MY_TOKEN}"
DEFAULTED = "${NOT_SET_ANYWHERE:-a default}"
NO_TEMPLATE = "pre-${HOME}"
[verifier.env]
JUDGE_KEY = "${JUDGE_KEY}"
BOTH = "task"
[solution.env]
HINT = "${MY_HINT}"
"""
HOST = {"MY_TOKEN": "canary-token-4711", "JUDGE_KEY": "canary$judge'4712", "MY_HINT": "canary-h"}
SHOW = "for name in PLAIN FROM_HOST DEFAULTED NO_TEMPLATE JUDGE_KEY BOTH HINT EXTRA; do\n"
SHOW += '    printf "%s=%s\\n" $name "${!name-(unset)}"\ndone'


def test_b68_each_table_reaches_its_own(tmp_path: Path) -> None:
    step = '[steps.verifier.env]\nBOTH = "step"'
    # what the agent and the verifier see is turned over, so that it is not redacted
    agent = f"({SHOW}) | rev > /logs/artifacts/agent"
    test = f"({SHOW}) | rev > /logs/verifier/env; echo 1 > /logs/verifier/reward.txt; {SHOW}"
    task = many_steps(tmp_path, TOML, Part(agent, test, step), Part(agent, test))
    played = play(task, host=HOST | {"OTHER": "x"}, recipe={"verifier.env.EXTRA": "from recipe"})
    assert played.result.reward == 1

    def seen(path: str) -> dict[str, str]:
        lines = (line[::-1].partition("=") for line in played.read(path).splitlines())
        return {name: value for name, _, value in lines}

    shared = {
        "PLAIN": "a$bc$$d",
        "FROM_HOST": "canary-token-4711",
        "DEFAULTED": "a default",
        "NO_TEMPLATE": "pre-${HOME}",
    }
    none = dict.fromkeys(("JUDGE_KEY", "BOTH", "HINT", "EXTRA"), "(unset)")
    judged = {"JUDGE_KEY": "canary$judge'4712", "EXTRA": "from recipe"}
    for name, both in (("one", "step"), ("two", "task")):
        place = f"steps/{name}"
        assert seen(f"{place}/artifacts/logs/artifacts/agent") == shared | none | {
            "HINT": "canary-h"
        }
        assert seen(f"{place}/verifier/env") == shared | none | judged | {"BOTH": both}
    # the names are told, the values are nowhere
    assert played.result.host_names_asked == ("MY_TOKEN", "JUDGE_KEY", "MY_HINT")
    assert "JUDGE_KEY=[redacted]" in played.read("steps/one/verifier/test-stdout.txt")
    for value in (HOST["MY_TOKEN"], HOST["JUDGE_KEY"]):
        assert value not in played.everything
        assert value.encode().hex() not in played.everything


@pytest.mark.parametrize(
    ("toml", "agent", "where"),
    [
        ('[environment.env]\nA = "${NOPE}"', "nop", "[environment.env] A"),
        ('[verifier.env]\nA = "${NOPE}"', "nop", "[verifier.env] A"),
        ('[solution.env]\nA = "${NOPE}"', "oracle", "[solution.env] A"),
        (
            USER + '[environment.mcp_servers.headers]\nX-Name = "my ${NOPE}"',
            "nop",
            "[[environment.mcp_servers]] user-server X-Name",
        ),
    ],
)
def test_b68_what_is_not_set_is_named_with_its_table(
    tmp_path: Path, toml: str, agent: str, where: str
) -> None:
    result = play(one_step(tmp_path, toml, **USER_FILES), agent).result
    assert (result.outcome, result.verdict) == ("task_invalid", "error")
    assert result.fault is not None
    assert result.fault.message.startswith(f"{where} asks for the variable NOPE, which is not set")
    assert result.phases == {}  # nothing was started


def test_b68_a_step_s_own_table_is_named(tmp_path: Path) -> None:
    parts = (Part(), Part(toml='[steps.verifier.env]\nA = "${NOPE}"'))
    result = play(many_steps(tmp_path, "", *parts)).result
    assert result.fault is not None
    assert "[verifier.env] of step two A asks for the variable NOPE" in result.fault.message


def test_b68_the_solution_s_variables_are_not_asked_of_other_agents(tmp_path: Path) -> None:
    task = one_step(tmp_path, '[solution.env]\nA = "${NOPE}"')
    assert play(task, "nop").result.outcome == "passed"
