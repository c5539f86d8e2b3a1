"""B24: setting up an agent has a budget and an outcome of its own."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from episodes import one_step, play

from pytest_harbor.agents.nop import NopAgent
from pytest_harbor.errors import AgentError
from pytest_harbor.sandbox.container import Container
from pytest_harbor.task.timeouts import Deadline

pytestmark = pytest.mark.docker


@dataclass(frozen=True)
class Slow(NopAgent):
    """Its setup takes three seconds inside main; ``careless`` ones do not look at the time."""

    name: str = "slow"
    careless: bool = False

    def setup(self, container: Container, *, user: Any, deadline: Deadline) -> None:
        if self.careless:
            time.sleep(1.2)
            return
        ran = container.run("echo installing; sleep 3", user=user, deadline=deadline)
        if ran.timed_out:
            raise AgentError(f"slow could not be installed: {ran.limit}")


@pytest.mark.parametrize("careless", [False, True])
def test_b24_agent_setup_out_of_time(tmp_path: Path, careless: bool) -> None:
    task = one_step(tmp_path, "[agent]\ntimeout_sec = 600")
    result = play(task, Slow(careless=careless), recipe={"timeouts.setup.seconds": 1.0}).result
    assert (result.outcome, result.verdict) == ("setup_failed", "error")
    assert result.fault is not None
    assert result.fault.phase == "agent-setup"
    assert "agent setup: 1 s (a test: timeouts.setup.seconds), after 1" in result.fault.message
    assert result.steps_run == 0
    assert (result.reward, result.reward_as_harbor) == (None, None)
