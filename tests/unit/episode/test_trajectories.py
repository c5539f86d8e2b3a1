"""The episode's trajectory: turns, calls and verdicts in order; tokens are the gateway's."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from harbor_beside import ask_harbor, needs_harbor
from sample_job import START, fault, interval
from sample_job import step as graded

from pytest_harbor.agents.base import Capabilities
from pytest_harbor.agents.nop import NopAgent
from pytest_harbor.episode.folder import EpisodeFolder
from pytest_harbor.episode.outcome import Outcome
from pytest_harbor.episode.result import GradeRecord, PartyRecord, StepResult, TurnRecord
from pytest_harbor.episode.trajectories import (
    NAME,
    OWN_COUNT,
    Chronicle,
    own_count,
    settle_trajectory,
)
from pytest_harbor.gateway.relay_log import McpCall
from pytest_harbor.redaction import Redactor
from pytest_harbor.trajectory import Step, Trajectory, dump, load

OWN = {
    "agent": {"name": "codex", "version": "1", "model_name": "m"},
    "notes": "a line was broken",
    "final_metrics": {"total_prompt_tokens": 90, "total_cost_usd": 0.5, "extra": {"k": 1}},
    "steps": [
        {"step_id": 1, "source": "user", "message": "Do it.", "timestamp": "2026-11-03T14:02:07Z"},
        {
            "step_id": 2,
            "source": "agent",
            "message": "I ask.",
            "timestamp": "2026-11-03T14:02:07.200Z",
            "tool_calls": [
                {
                    "tool_call_id": "c1",
                    "function_name": "user-server_ask_user",
                    "arguments": {"question": "What?", "wait_for_previous": True},
                }
            ],
            "observation": {
                "results": [{"source_call_id": "c1", "content": "as the agent saw it"}]
            },
        },
        {
            "step_id": 3,
            "source": "agent",
            "message": "Done.",
            "timestamp": "2026-11-03T14:02:08.100Z",
        },
    ],
}


@dataclass(frozen=True)
class Model(NopAgent):
    """An agent in the contest."""

    name: str = "codex"
    version: str = "1"
    model: str | None = "m"
    capabilities = Capabilities()


def folder(tmp_path: Path, *secrets: str) -> EpisodeFolder:
    made = EpisodeFolder(tmp_path, "t__1234567", Redactor(secrets))
    made.begin(config={})
    return made


def call(question: str, after: float, **changes: Any) -> McpCall:
    values: dict[str, Any] = {
        "episode": "t",
        "try_number": 1,
        "step": "one",
        "server": "user-server",
        "method": "tools/call",
        "tool": "ask_user",
        "arguments": {"question": question},
        "started_at": (START + timedelta(seconds=after)).isoformat(),
        "seconds": 0.25,
        "status": 200,
        "ended": "answered",
        "reply": f"About {question}",
    }
    return McpCall(**{**values, **changes})


def with_own(where: EpisodeFolder, name: str = "one", index: int = 0, **changes: Any) -> StepResult:
    """A step whose agent left a trajectory."""
    file = f"steps/{name}/agent/{NAME}"
    where.write_text(file, json.dumps({**OWN, **changes}))
    turn = TurnRecord(
        ran=interval(1.5, after=2.0 * index),
        ended="exited",
        exit_code=0,
        trajectory=file,
        input_tokens=100,
        output_tokens=10,
        cached_tokens=40,
        cost_usd=0.25,
        extra={OWN_COUNT: {"input_tokens": 90}},
    )
    return graded(name, index, turn=turn)


def told(where: EpisodeFolder) -> Trajectory:
    return load(where.path / NAME)


def shown(steps: Iterable[Step]) -> list[tuple[str, str]]:
    return [
        (step.source, str(step.message) or (step.tool_calls or ())[0].function_name)
        for step in steps
    ]


def test_steps_follow_each_other_with_the_verdict_after_each(tmp_path: Path) -> None:
    where = folder(tmp_path)
    chronicle = Chronicle(where, Model())
    chronicle.add("Do it.", with_own(where), ())
    assert [step.source for step in told(where).steps] == ["user", "agent", "agent", "system"]
    chronicle.add("Do it.", with_own(where, "two", 1), ())
    whole = told(where)
    assert [step.step_id for step in whole.steps] == list(range(1, 9))
    assert [(step.extra or {})["step"] for step in whole.steps] == ["one"] * 4 + ["two"] * 4
    assert whole.session_id == "t__1234567"
    assert (whole.agent.name, whole.agent.version, whole.agent.model_name) == ("codex", "1", "m")
    assert whole.notes == "one: a line was broken\ntwo: a line was broken"


def test_a_verdict_says_rewards_and_where_its_log_is_but_not_what_stands_there(
    tmp_path: Path,
) -> None:
    """What a verifier prints may quote hidden tests."""
    where = folder(tmp_path, "canary-0123")
    log = where.write_text("verifier/test-stdout.txt", "hidden_test_7 failed\n")
    grade = GradeRecord(
        ran=interval(0.5, after=1.5), exit_code=1, rewards={"reward": 0.5, "speed": 2}, log=log
    )
    Chronicle(where, Model()).add("Do it, canary-0123.", graded("one", grade=grade), ())
    verdict = told(where).steps[-1]
    assert verdict.source == "system"
    assert verdict.message == "The verifier gave reward 0.5, speed 2."
    assert verdict.timestamp == (START + timedelta(seconds=2)).isoformat()
    assert (verdict.extra or {})["verifier"] == {
        "rewards": {"reward": 0.5, "speed": 2.0},
        "exit_code": 1,
        "seconds": 0.5,
        "log": "verifier/test-stdout.txt",
    }
    whole = (where.path / NAME).read_text()
    assert "hidden_test_7" not in whole
    assert "Do it, [redacted]." in whole


def test_calls_of_an_agent_without_trajectory_come_from_the_relay(tmp_path: Path) -> None:
    where = folder(tmp_path)
    calls = [
        call("B?", 1.0, is_error=True),
        call("A?", 0.5),
        call("C?", 1.2, ended="timeout", reply="", fault="no answer in 5 s"),
    ]
    Chronicle(where, NopAgent()).add("Do it.", graded("one"), calls)
    user, *asked, verdict = told(where).steps
    assert (user.source, user.message) == ("user", "Do it.")
    assert verdict.source == "system"
    made = [(step.tool_calls or ())[0] for step in asked]
    assert [each.arguments for each in made] == [{"question": f"{x}?"} for x in "ABC"]
    assert {each.function_name for each in made} == {"ask_user"}
    answers = [step.observation.results[0] for step in asked if step.observation]
    assert [each.content for each in answers] == ["About A?", "About B?", "no answer in 5 s"]
    assert [(each.extra or {}).get("is_error") for each in answers] == [None, True, True]
    assert {step.llm_call_count for step in asked} == {0}
    assert asked[0].timestamp == calls[1].started_at


def test_a_call_that_the_agent_tells_of_is_not_told_twice(tmp_path: Path) -> None:
    where = folder(tmp_path)
    Chronicle(where, Model()).add("Do it.", with_own(where), [call("What?", 0.3)])
    steps = told(where).steps
    assert len(steps) == 4
    (own,) = steps[1].tool_calls or ()
    assert own.extra == {"relay": {"server": "user-server", "seconds": 0.25, "ended": "answered"}}
    assert steps[1].observation is not None
    assert [each.content for each in steps[1].observation.results] == ["as the agent saw it"]


def test_a_call_that_the_agent_does_not_tell_of_stands_where_it_belongs_in_time(
    tmp_path: Path,
) -> None:
    where = folder(tmp_path)
    calls = [call("What?", 0.3), call("What?", 0.9), call("More?", 5.0), call("Early?", -1.0)]
    Chronicle(where, Model()).add("Do it.", with_own(where), calls)
    assert shown(told(where).steps) == [
        ("user", "Do it."),
        ("agent", "ask_user"),
        ("agent", "I ask."),
        ("agent", "ask_user"),
        ("agent", "Done."),
        ("agent", "ask_user"),
        ("system", "The verifier gave reward 1."),
    ]
    assert told(where).steps[1].llm_call_count is None


@pytest.mark.parametrize(
    "name",
    [
        "ask_user",
        "mcp__user-server__ask_user",
        "mcp__user_server__ask_user",
        "user-server_ask_user",
        "mcp_user-server_ask_user",
        "user-server.ask_user",
    ],
)
def test_agents_write_a_tools_name_in_their_own_ways(tmp_path: Path, name: str) -> None:
    where = folder(tmp_path)
    steps = json.loads(json.dumps(OWN["steps"]))
    steps[1]["tool_calls"][0]["function_name"] = name
    Chronicle(where, Model()).add("", with_own(where, steps=steps), [call("What?", 0.3)])
    assert len(told(where).steps) == 4


@pytest.mark.parametrize("name", ["other-server_ask_user", "task_user", "ask_user_again"])
def test_other_tools_are_others(tmp_path: Path, name: str) -> None:
    where = folder(tmp_path)
    steps = json.loads(json.dumps(OWN["steps"]))
    steps[1]["tool_calls"][0]["function_name"] = name
    Chronicle(where, Model()).add("", with_own(where, steps=steps), [call("What?", 0.3)])
    assert len(told(where).steps) == 5


def test_the_same_question_twice_is_told_in_the_order_of_asking(tmp_path: Path) -> None:
    where = folder(tmp_path)
    steps = json.loads(json.dumps(OWN["steps"]))
    steps[1]["tool_calls"] *= 2
    steps[1]["tool_calls"][1] = {**steps[1]["tool_calls"][1], "tool_call_id": "c2"}
    late, early = call("What?", 0.4, seconds=0.1), call("What?", 0.3, seconds=0.9)
    Chronicle(where, Model()).add("", with_own(where, steps=steps), [late, early])
    asked = told(where).steps[1].tool_calls or ()
    assert [(each.extra or {})["relay"]["seconds"] for each in asked] == [0.9, 0.1]


def test_an_answer_that_the_agent_never_saw_is_filled_in(tmp_path: Path) -> None:
    where = folder(tmp_path)
    steps = json.loads(json.dumps(OWN["steps"]))
    del steps[1]["observation"]
    Chronicle(where, Model()).add("", with_own(where, steps=steps), [call("What?", 0.3)])
    observation = told(where).steps[1].observation
    assert observation is not None
    assert observation.results[0].content == "About What?"
    assert observation.results[0].extra == {"from": "relay"}


def test_how_a_turn_a_gate_and_a_fault_ended_it_is_said(tmp_path: Path) -> None:
    where = folder(tmp_path)
    chronicle = Chronicle(where, Model())
    turn = TurnRecord(ran=interval(1.0), ended="timeout", message="agent timed out: 600 s")
    chronicle.add("Do it.", graded("one", 0, 0.0, turn=turn, gate="reward 0 < 1"), ())
    broken = StepResult(
        name="two", index=1, fault=fault(Outcome.SETUP_FAILED, "setup"), ran=interval(1.0)
    )
    chronicle.add("And this.", broken, ())
    assert shown(told(where).steps) == [
        ("user", "Do it."),
        ("system", "The turn ended by timeout: agent timed out: 600 s"),
        ("system", "The verifier gave reward 0."),
        ("system", "The episode stops here: reward 0 < 1"),
        ("system", "setup_failed in setup: it broke"),
    ]


def test_tokens_are_the_gateways_and_the_agents_own_stand_beside(tmp_path: Path) -> None:
    where = folder(tmp_path)
    chronicle = Chronicle(where, Model())
    chronicle.add("", with_own(where), ())
    chronicle.add("", with_own(where, "two", 1), ())
    final = told(where).final_metrics
    assert final is not None
    assert (final.total_prompt_tokens, final.total_completion_tokens) == (200, 20)
    assert (final.total_cached_tokens, final.total_cost_usd) == (80, 0.5)
    assert final.extra == {OWN_COUNT: {"one": {"input_tokens": 90}, "two": {"input_tokens": 90}}}


def test_a_sum_of_which_a_part_is_not_known_is_not_known(tmp_path: Path) -> None:
    where = folder(tmp_path)
    chronicle = Chronicle(where, Model())
    chronicle.add("", with_own(where), ())
    parties = {"agent": PartyRecord(notes=("no price is known for m",), cost_usd=None)}
    chronicle.add("", graded("two", 1, parties=parties), ())
    whole = told(where)
    assert whole.final_metrics is not None
    assert whole.final_metrics.total_cost_usd is None
    assert "no price is known for m" in (whole.notes or "")


def test_subagents_of_different_steps_stay_apart(tmp_path: Path) -> None:
    where = folder(tmp_path)
    steps = json.loads(json.dumps(OWN["steps"]))
    steps[1]["observation"]["results"][0]["subagent_trajectory_ref"] = [{"trajectory_id": "a"}]
    sub = {"trajectory_id": "a", "agent": OWN["agent"], "steps": OWN["steps"]}
    more = {"steps": steps, "subagent_trajectories": [sub]}
    chronicle = Chronicle(where, Model())
    chronicle.add("", with_own(where, **more), ())
    chronicle.add("", with_own(where, "two", 1, **more), ())
    whole = told(where)
    names = [each.trajectory_id for each in whole.subagent_trajectories or ()]
    assert names == ["one/a", "two/a"]
    references = [
        reference.trajectory_id
        for step in whole.steps
        for result in (step.observation.results if step.observation else ())
        for reference in result.subagent_trajectory_ref or ()
    ]
    assert references == names


def test_a_turns_own_file_gets_the_gateways_figures(tmp_path: Path) -> None:
    where = folder(tmp_path)
    turn = with_own(where).turn
    assert turn is not None
    settled, warnings = settle_trajectory(where, where.step("one", implicit=False), turn)
    assert warnings == ()
    assert settled.trajectory == f"steps/one/agent/{NAME}"
    final = load(where.path / str(settled.trajectory)).final_metrics
    assert final is not None
    assert (final.total_prompt_tokens, final.total_cost_usd) == (100, 0.25)
    assert final.extra == {"k": 1, OWN_COUNT: {"input_tokens": 90}}


def test_a_trajectory_that_the_agent_does_not_name_is_found(tmp_path: Path) -> None:
    where = folder(tmp_path)
    step = where.step("task", implicit=True)
    turn = TurnRecord(ran=interval(1.0), ended="exited")
    assert settle_trajectory(where, step, turn) == (turn, ())
    where.write_text(f"agent/{NAME}", json.dumps(OWN))
    settled, _ = settle_trajectory(where, step, turn)
    assert settled.trajectory == f"agent/{NAME}"
    final = load(where.path / "agent" / NAME).final_metrics
    assert final is not None
    assert final.total_prompt_tokens == 90


def test_a_trajectory_that_is_none_is_warned_of_and_left_out(tmp_path: Path) -> None:
    where = folder(tmp_path)
    step = where.step("task", implicit=True)
    where.write_text(f"agent/{NAME}", '{"steps": []}')
    turn = TurnRecord(ran=interval(1.0), ended="exited")
    settled, (warning,) = settle_trajectory(where, step, turn)
    assert settled.trajectory == f"agent/{NAME}"
    assert warning.startswith(f"agent/{NAME} is no ATIF trajectory")
    Chronicle(where, Model()).add("Do it.", graded("task", turn=settled), ())
    assert [step.source for step in told(where).steps] == ["user", "system"]


def test_a_trajectory_that_is_not_there_is_warned_of(tmp_path: Path) -> None:
    where = folder(tmp_path)
    turn = TurnRecord(ran=interval(1.0), ended="exited", trajectory="agent/gone.json")
    settled, (warning,) = settle_trajectory(where, where.step("task", implicit=True), turn)
    assert settled.trajectory is None
    assert warning == "the agent names a trajectory agent/gone.json, which is not there"


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    """An agent could point it at any file of this host."""
    where = folder(tmp_path)
    step = where.step("task", implicit=True)
    (tmp_path / "elsewhere.json").write_text(json.dumps(OWN))
    (step.agent / NAME).symlink_to(tmp_path / "elsewhere.json")
    turn = TurnRecord(ran=interval(1.0), ended="exited")
    assert settle_trajectory(where, step, turn) == (turn, ())


def test_only_figures_that_differ_are_kept_beside() -> None:
    turn = TurnRecord(ran=interval(1.0), ended="exited", input_tokens=5, output_tokens=6)
    counted = {"input_tokens": 5, "output_tokens": 7, "cached_tokens": 1, "cost_usd": 0.1}
    assert own_count(turn, counted) == {"output_tokens": 6}


@needs_harbor
def test_harbor_loads_it(tmp_path: Path) -> None:
    where = folder(tmp_path)
    chronicle = Chronicle(where, Model())
    chronicle.add("Do it.", with_own(where), [call("What?", 0.3), call("More?", 5.0)])
    turn = TurnRecord(ran=interval(1.0), ended="error", message="it broke")
    chronicle.add("", graded("two", 1, turn=turn), [call("A?", 0.5)])
    given = json.loads(dump(told(where)))
    code = "from harbor.models.trajectories import Trajectory\n"
    assert ask_harbor(code + "answer = len(Trajectory.model_validate(given).steps)", given) == 9
