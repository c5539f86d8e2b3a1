"""The agent that plays a task's reference solution, step by step (harbor-format 10.4).

Unlike Harbor's, it works under the step's own time limit, and a failing solve.sh is an error.
"""

from __future__ import annotations

from dataclasses import dataclass

from pytest_harbor.agents.base import LOGS, Agent, Capabilities, Turn, TurnResult, ended
from pytest_harbor.sandbox.container import Entry
from pytest_harbor.sandbox.uploads import run_script, tree_entries

_LOG = "oracle.txt"
_SCRIPT = "solve.sh"
_PLACE = "/solution"


@dataclass(frozen=True)
class OracleAgent(Agent):
    """Runs ``/solution/solve.sh``: the step's solution, else the task's."""

    name: str = "oracle"
    version: str = "1"
    model: str | None = None
    capabilities = Capabilities(is_utility=True, plays_solution=True)

    def run_turn(self, turn: Turn) -> TurnResult:
        """Lay the solution into the container and run it."""
        if turn.solution is None or not (turn.solution / _SCRIPT).is_file():
            return TurnResult("error", message=f"the task has no {_SCRIPT} for step {turn.step}")
        container = turn.container
        owner = container.user(turn.user)
        container.put(
            [
                Entry(_PLACE, None, 0o755, owner.uid, owner.gid),
                *tree_entries(turn.solution, _PLACE, owner, scripts={_SCRIPT}),
            ]
        )
        ran = container.run_logged(
            run_script(f"{_PLACE}/{_SCRIPT}"),
            log=f"{LOGS}/{_LOG}",
            user=turn.user,
            env={"DEBIAN_FRONTEND": "noninteractive", **turn.env, **turn.solution_env},
            deadline=turn.deadline,
        )
        return ended(ran, _SCRIPT, _LOG, container)
