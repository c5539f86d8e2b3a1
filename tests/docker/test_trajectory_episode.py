"""The trajectory that an episode leaves, on the real engine: the user's answers, the verdicts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from episodes import ASK, GIVES_0, USER, USER_FILES, Part, many_steps, one_step, play
from harbor_beside import ask_harbor, needs_harbor
from models import KEY, MODEL, Upstream

from pytest_harbor.agents.base import LOGS, Capabilities, Turn, TurnResult
from pytest_harbor.agents.nop import NopAgent
from pytest_harbor.gateway import Gateway
from pytest_harbor.sandbox.container import Entry
from pytest_harbor.task.timeouts import Deadline
from pytest_harbor.trajectory import Trajectory, load

pytestmark = pytest.mark.docker

HOST = {"UPSTREAM_KEY": KEY}
OWN = {
    "agent": {"name": "counting", "version": "1"},
    "steps": [
        {"step_id": 1, "source": "user", "message": "Do it."},
        {"step_id": 2, "source": "agent", "message": "I asked a model."},
    ],
    "final_metrics": {"total_prompt_tokens": 7},
}


@pytest.fixture
def gateway() -> Iterator[Gateway]:
    with Gateway(environment=HOST) as gateway:
        yield gateway


def shown(trajectory: Trajectory) -> list[tuple[str, str]]:
    return [
        (step.source, str(step.message).strip() or (step.tool_calls or ())[0].function_name)
        for step in trajectory.steps
    ]


@needs_harbor
def test_an_oracle_leaves_what_it_was_told_what_it_asked_and_how_it_was_graded(
    tmp_path: Path, gateway: Gateway
) -> None:
    say = "echo three of four; "
    parts = (Part(ASK + "ask; ask"), Part("true", say + GIVES_0, "min_reward = 0.5"), Part())
    played = play(many_steps(tmp_path, USER, *parts, **USER_FILES), gateway=gateway)
    whole = load(played.folder / "trajectory.json")
    assert shown(whole) == [
        ("user", "Do one."),
        ("agent", "ask_user"),
        ("agent", "ask_user"),
        ("system", "The verifier gave reward 1."),
        ("user", "Do two."),
        ("system", "The verifier gave reward 0."),
        ("system", f"The episode stops here: {played['two'].gate}"),
    ]
    answers = [step.observation.results[0] for step in whole.steps[1:3] if step.observation]
    assert [each.content for each in answers] == ["asked 1", "asked 2"]
    times = [str(step.timestamp) for step in whole.steps]
    assert times == sorted(times)
    graded = (whole.steps[5].extra or {})["verifier"]
    assert isinstance(graded, dict)
    assert played.read(str(graded["log"])) == "three of four\n"
    assert "three of four" not in played.read("trajectory.json")
    code = "from harbor.models.trajectories import Trajectory\nTrajectory.model_validate(given)\n"
    given = json.loads(played.read("trajectory.json"))
    assert ask_harbor(code + "answer = True", given)


@dataclass(frozen=True)
class Counting(NopAgent):
    """Asks a model from inside, counts badly, and leaves a trajectory that it does not name."""

    name: str = "counting"
    capabilities = Capabilities()

    def run_turn(self, turn: Turn) -> TurnResult:
        turn.container.put([Entry(f"{LOGS}/trajectory.json", json.dumps(OWN).encode(), 0o644)])
        turn.container.run(
            MODEL + 'model "$POLICY" hello',
            user=None,
            env=turn.env,
            deadline=Deadline.after(30, "asking a model"),
        )
        return TurnResult("exited", 0, input_tokens=7)


def test_the_gateways_count_is_the_truth_and_the_agents_own_stands_beside(
    tmp_path: Path, gateway: Gateway
) -> None:
    with Upstream() as upstream:
        recipe = {
            "model_servers.policy.base_url": upstream.url,
            "model_servers.policy.key": {"env": "UPSTREAM_KEY"},
            "model_servers.policy.model": "real-1",
            "agent.env.POLICY": {"model_server": "policy"},
        }
        task = one_step(tmp_path)
        played = play(task, Counting(), recipe=recipe, host=HOST, gateway=gateway)
    turn = played[0].turn
    assert turn is not None
    assert turn.trajectory == "agent/trajectory.json"
    assert (turn.input_tokens, turn.extra) == (100, {"by_the_agent": {"input_tokens": 7}})
    for file in ("agent/trajectory.json", "trajectory.json"):
        final = load(played.folder / file).final_metrics
        assert final is not None
        assert (final.total_prompt_tokens, final.total_completion_tokens) == (100, 20)
        assert "input_tokens" in json.dumps(final.extra)
    assert [step.source for step in load(played.folder / "trajectory.json").steps] == [
        "user",
        "agent",
        "system",
    ]
    assert KEY not in played.everything
