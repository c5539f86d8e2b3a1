"""Harbor's own models accept our result.json, and read the same score and trust out of it."""

from __future__ import annotations

import json
from pathlib import Path

from harbor_beside import ask_harbor, needs_harbor
from sample_job import episode, fault, interval, step, unreached

from pytest_harbor.episode.outcome import Outcome
from pytest_harbor.episode.result import AgentIdentity, EpisodeResult, GradeRecord, TurnRecord
from pytest_harbor.episode.trial import error_class, trial_document


def turn(ended: str, message: str = "") -> TurnRecord:
    return TurnRecord.model_validate({"ran": interval(1), "ended": ended, "message": message})


SIMPLE = episode(steps=[step("task", implicit=True)])
STOPPED = episode(
    steps=[
        step("plan", 0, 0.5, gate="min_reward ≥ 1, got 0.5"),
        unreached("build", 1),
    ],
    outcome=Outcome.GATE_STOPPED,
    reward=0.25,
    reward_as_harbor=0.5,
    rewards={"reward": 0.25, "style": 0.1},
)
TIMED_OUT = episode(
    steps=[step("task", implicit=True, turn=turn("timeout", "the agent ran out of 600 s"))],
    outcome=Outcome.AGENT_TIMEOUT,
)


def broken(outcome: Outcome) -> EpisodeResult:
    it = fault(outcome, message=f"{outcome} happened")
    return episode(
        key=f"datasets/x/{outcome}/task.toml::{outcome}",
        steps=[step("a", 0, 1.0), step("b", 1, None, fault=it, outcome=outcome, verdict="error")],
        outcome=outcome,
        reward=None,
        fault=it,
    )


DEGRADED = episode(
    key="datasets/x/user/task.toml::user",
    steps=[step("task", 0, 1.0, implicit=True, fault=fault(Outcome.USER_DEGRADED, "agent"))],
    outcome=Outcome.USER_DEGRADED,
    reward=None,
    reward_as_harbor=1.0,
    fault=fault(Outcome.USER_DEGRADED, "agent"),
)
EVERY = [
    SIMPLE,
    STOPPED,
    TIMED_OUT,
    DEGRADED,
    *(broken(each) for each in Outcome if not each.is_graded),
]


def test_a_simple_task_has_its_parts_at_the_top() -> None:
    document = trial_document(SIMPLE, Path("/jobs/j") / SIMPLE.episode)
    assert document["step_results"] is None
    assert document["verifier_result"] == {"rewards": {"reward": 1.0}}
    assert document["agent_result"] is not None
    assert document["agent_execution"]["started_at"] == "2026-11-03T14:02:07+00:00"
    assert document["trial_uri"] == f"file:///jobs/j/{SIMPLE.episode}"
    assert document["source"] == "swe"
    assert document["agent_info"]["model_info"] == {"name": "large-1", "provider": "acme"}


def test_many_steps_are_listed_as_far_as_they_ran_and_the_score_is_harbors() -> None:
    document = trial_document(STOPPED)
    assert [each["step_name"] for each in document["step_results"]] == ["plan"]
    assert document["agent_result"] is None
    assert document["verifier_result"] == {"rewards": {"reward": 0.5, "style": 0.1}}
    assert document["exception_info"] is None


def test_a_fault_stands_on_its_step_and_not_twice() -> None:
    document = trial_document(broken(Outcome.NO_REWARD))
    assert document["exception_info"] is None
    noted = document["step_results"][1]["exception_info"]
    assert noted["exception_type"] == "RewardFileNotFoundError"
    assert noted["exception_message"] == "no_reward happened"


def test_a_fault_before_any_step_stands_on_the_trial() -> None:
    result = episode(outcome=Outcome.IMAGE_FAILED, reward=None, fault=fault(Outcome.IMAGE_FAILED))
    assert trial_document(result)["exception_info"]["exception_type"] == "SandboxBuildFailedError"
    assert trial_document(result)["verifier_result"] is None


def test_rewards_without_the_usual_key_stay_as_they_are() -> None:
    result = episode(rewards={"accuracy": 0.9}, reward=0.9, reward_as_harbor=None)
    assert trial_document(result)["verifier_result"] == {"rewards": {"accuracy": 0.9}}


def test_an_agent_that_nobody_knows_and_a_model_without_provider() -> None:
    assert trial_document(episode(agent=None))["agent_info"]["name"] == "unknown"
    alone = episode(agent=AgentIdentity(name="a", model="gpt-x"))
    assert trial_document(alone)["agent_info"]["model_info"] == {"name": "gpt-x", "provider": None}


def test_start_and_setup_are_spans_of_phases() -> None:
    phases = {"group": interval(3), "start": interval(2, 5), "agent-setup": interval(1, 8)}
    document = trial_document(episode(phases=phases))
    assert document["environment_setup"]["finished_at"] == "2026-11-03T14:02:14+00:00"
    assert document["agent_setup"]["started_at"] == "2026-11-03T14:02:15+00:00"
    assert trial_document(episode())["environment_setup"] is None


def test_the_id_is_stable_for_an_attempt_and_new_for_the_next() -> None:
    again = SIMPLE.model_copy(update={"ran": interval(1, after=60)})
    assert trial_document(SIMPLE)["id"] == trial_document(SIMPLE)["id"]
    assert trial_document(SIMPLE)["id"] != trial_document(again)["id"]


def test_the_document_is_plain_json() -> None:
    for each in EVERY:
        assert json.loads(json.dumps(trial_document(each))) == trial_document(each)


@needs_harbor
def test_harbor_reads_every_outcome_as_we_mean_it() -> None:
    documents = [
        {**trial_document(each, Path("/jobs/j") / each.episode), "pytest_harbor": each.plain()}
        for each in EVERY
    ]
    answers = ask_harbor(
        "from harbor.models.trial.result import TrialResult\n"
        "from harbor.models.trial.config import TrialConfig\n"
        "trials = [TrialResult.model_validate(d) for d in given]\n"
        "answer = [{'valid': t.reward_valid,\n"
        "           'reward': (t.verifier_result.rewards or {}).get('reward')\n"
        "                     if t.verifier_result else None,\n"
        "           'errors': [e.exception_type for e in t.recorded_exceptions()],\n"
        "           'retry': [e.policy.should_retry for e in t.recorded_exceptions()]}\n"
        "          for t in trials]",
        documents,
    )
    for result, answer in zip(EVERY, answers, strict=True):
        assert answer["valid"] is result.outcome.is_graded, result.outcome
        assert answer["reward"] == result.reward_as_harbor
        if result.fault is not None:
            assert answer["errors"] == [error_class(result.outcome)]
            assert answer["retry"] == [result.outcome.meaning.retry]


@needs_harbor
def test_classes_that_harbor_knows_are_harbors() -> None:
    names = [error_class(each) for each in Outcome]
    known = ask_harbor(
        "from harbor.models.trial.error_policy import ERROR_POLICIES\n"
        "answer = [n for n in given if n in ERROR_POLICIES]",
        names,
    )
    assert len(known) == 10


def test_the_grade_of_a_verifier_that_gave_nothing_is_null() -> None:
    nothing = step("task", 0, None, implicit=True, grade=GradeRecord(ran=interval(1)))
    result = episode(steps=[nothing], outcome=Outcome.NO_REWARD, reward=None)
    assert trial_document(result)["verifier_result"] is None
