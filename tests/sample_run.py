"""A whole run made by hand: fourteen episodes that end in every kind of way, with their logs.

``python tests/sample_run.py FOLDER`` writes it with its HTML report, to be looked at.
"""

from __future__ import annotations

import json
import random
import sys
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from sample_job import START, episode, fault, interval, write

from pytest_harbor.episode.outcome import Outcome
from pytest_harbor.episode.result import (
    AgentIdentity,
    ArtifactRecord,
    EpisodeResult,
    GradeRecord,
    GrantRecord,
    Hygiene,
    RecipeValue,
    StepResult,
    TurnRecord,
)

STEPS = ("01_plan", "02_implement", "03_handoff", "04_write_tests", "05_test_handoff")
AGENT = AgentIdentity(name="claude-code", version="2.1.4", model="anthropic/claude-sonnet-4-6")
OTHER = AgentIdentity(name="codex", version="0.91.0", model="openai/gpt-5.5")
SOLO = AgentIdentity(name="oracle", version="1.0.0")
HOSTILE = "</script><script>document.title='HACKED'</script><img src=x onerror=\"alert(1)\">"
RECIPE = (
    RecipeValue(key="agent.name", value="claude-code", source="--harbor-agent"),
    RecipeValue(key="agent.model", value="anthropic/claude-sonnet-4-6", source="--harbor-model"),
    RecipeValue(
        key="task_mcp_grants", value="required", source="datasets/swe_interact/harbor.yaml:4"
    ),
    RecipeValue(
        key="compose_variables.SIM_USER_MODEL",
        value="openai/gpt-5.5",
        source="datasets/swe_interact/harbor.yaml:9",
    ),
    RecipeValue(key="timeouts.multiplier", value=1.0, source="default"),
    RecipeValue(
        key="count_as_zero",
        value=["verifier_timeout", "no_reward"],
        source="datasets/swe_interact/harbor.yaml:6",
    ),
)

QUESTIONS = (
    (
        "Before I touch anything: should `parse()` keep the old three-column layout when the file "
        "has no header line, or do you want an error?",
        "Keep the old layout. We still get a few of those files from the warehouse every week.",
    ),
    (
        "I have committed a first version. Could you have a look? The row count now comes from "
        "the trailer record.",
        "Nearly. The trailer can be missing on test exports. Then I want a warning, not a crash. "
        "One more thing after that.",
    ),
    (
        "The missing trailer is a warning now, committed as 4f1c2ab. What was the other thing?",
        "Amounts with a comma as the decimal sign. Once that is in, ship it.",
    ),
)


@dataclass
class Sketch:
    """An episode in the making: its steps, one after the other on one clock."""

    name: str
    agent: AgentIdentity = AGENT
    dataset: str = "swe_interact"
    steps: list[StepResult] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    clock: float = 14.0
    seed: int = 0

    def step(
        self,
        name: str,
        reward: float | None = 1.0,
        seconds: float = 60.0,
        *,
        talk: int = 0,
        output: str = "",
        **changes: Any,
    ) -> Sketch:
        """Add a step that ran."""
        folder = "" if name == "task" else f"steps/{name}/"
        turn_seconds, grade_seconds = seconds * 0.9, seconds * 0.08
        number = len(self.steps)
        calm = self.agent is SOLO
        trajectory = None if calm else f"{folder}agent/trajectory.json"
        log, out = f"{folder}agent/agent.log", f"{folder}verifier/test-stdout.txt"
        self.files[log] = agent_log(name, self.seed)
        self.files[out] = output or VERIFIED
        if trajectory:
            conversation = trajectory_of(name, talk, self.agent, self.clock)
            self.files[trajectory] = json.dumps(conversation)
        turn = TurnRecord(
            ran=interval(turn_seconds, self.clock),
            ended="exited",
            exit_code=0,
            budget="600 s (steps.agent.timeout_sec) x 1.0 = 600 s",
            log=log,
            trajectory=trajectory,
            input_tokens=None if calm else 41_200 * (number + 1),
            output_tokens=None if calm else 3_100,
            cost_usd=None if calm else 0.11 * (number + 1),
        )
        grade = GradeRecord(
            ran=interval(grade_seconds, self.clock + turn_seconds + 0.5),
            exit_code=0,
            rewards={} if reward is None else {"reward": reward},
            reward_file="reward.txt",
            budget="300 s (verifier.timeout_sec) x 1.0 = 300 s",
            log=out,
        )
        values: dict[str, Any] = {
            "name": name,
            "index": number,
            "implicit": name == "task",
            "outcome": Outcome.PASSED if reward == 1 else Outcome.FAILED,
            "reward": reward,
            "turn": turn,
            "grade": grade,
            "ran": interval(seconds, self.clock),
            "verdict": "passed" if reward == 1 else "failed",
            "verdict_reason": "" if reward == 1 else f"reward {reward or 0:g} < 1",
            "grants": self._grants(),
        }
        for part in ("turn", "grade"):
            if isinstance(changes.get(part), dict):
                changes[part] = values[part].model_copy(update=changes[part])
        self.steps.append(StepResult(**{**values, **changes}))
        self.clock += seconds
        return self

    def _grants(self) -> tuple[GrantRecord, ...]:
        if self.dataset != "swe_interact":
            return ()
        grant = GrantRecord(
            name="user-server",
            url="http://user-server:8000/mcp",
            mode="required",
            reachable=True,
            tools=("ask_user",),
        )
        return (grant,)

    def rest(self, reason: str, reward: float | None = None) -> Sketch:
        """Add the steps that were not reached."""
        for name in STEPS[len(self.steps) :]:
            number = len(self.steps)
            self.steps.append(
                StepResult(name=name, index=number, reward=reward, verdict_reason=reason)
            )
        return self

    def end(
        self, outcome: Outcome = Outcome.PASSED, reward: float | None = 1.0, **changes: Any
    ) -> tuple[EpisodeResult, dict[str, str]]:
        """The finished episode and its files."""
        key = f"datasets/{self.dataset}/{self.name}/task.toml::{self.name}"
        costs = [s.turn.cost_usd for s in self.steps if s.turn and s.turn.cost_usd is not None]
        tokens = [
            (s.turn.input_tokens or 0) + (s.turn.output_tokens or 0)
            for s in self.steps
            if s.turn and s.turn.input_tokens is not None
        ]
        values: dict[str, Any] = {
            "agent": self.agent,
            "steps_total": max(len(self.steps), 1),
            "reward_strategy": "final" if self.dataset == "swe_interact" else "mean",
            "cost_usd": sum(costs) if costs else None,
            "tokens": sum(tokens) if tokens else None,
            "task_digest": "sha256:" + f"{random.Random(self.name).getrandbits(256):064x}",
            "images": {
                "main": "sha256:" + f"{random.Random('main').getrandbits(256):064x}",
                "user-server": "sha256:" + f"{random.Random('user').getrandbits(256):064x}",
            },
            "recipe": RECIPE,
            "phases": {
                "group": interval(9.0, 0.2),
                "start": interval(2.2, 9.4),
                "agent-setup": interval(1.6, 11.8),
                "grants": interval(0.4, 13.5),
            },
            "ran": interval(self.clock + 1.5),
        }
        if self.dataset == "swe_interact":
            self.files["services/user-server.log"] = SIDECAR
        result = episode(key, self.steps, outcome, reward, **{**values, **changes})
        return result, self.files


VERIFIED = """\
\x1b[1m============================= test session starts ==============================\x1b[0m
collected 24 items

tests/test_parser.py ........................                             [100%]

\x1b[32m============================== 24 passed in 1.84s ==============================\x1b[0m
reward: 1.0
"""
FAILED = """\
collected 24 items

tests/test_parser.py .................F......                             [100%]

=================================== FAILURES ===================================
__________________________ test_missing_trailer_warns __________________________
    def test_missing_trailer_warns():
        with pytest.warns(TrailerMissing):
>           rows = parse(EXPORT_WITHOUT_TRAILER)
E           ParseError: line 7: the file ends without a trailer record

src/inventory/parser.py:88: ParseError
=========================== 1 failed, 23 passed in 2.02s =======================
reward: 0.0
"""
SIDECAR = """\
simulated-user listening on 0.0.0.0:8000 (model openai/gpt-5.5)
ask_user #1 from 10.89.3.2: 212 characters, 3 tool rounds, 11.4 s
ask_user #2 from 10.89.3.2: 148 characters, 2 tool rounds, 8.9 s
"""


def agent_log(name: str, seed: int) -> str:
    noise = random.Random(f"{name}{seed}")
    lines = [f"[{n:03d}] {noise.choice(('read', 'edit', 'run', 'think'))} …" for n in range(60)]
    bar = "".join(f"\rdownloading {n}%" for n in range(0, 101, 10))
    return "\x1b[36msession started\x1b[0m\n" + "\n".join(lines) + f"\n{bar}\nsession ended\n"


def trajectory_of(name: str, talk: int, agent: AgentIdentity, clock: float) -> dict[str, Any]:
    """A conversation in ATIF with ``talk`` questions to the user."""
    at = START + timedelta(seconds=clock)
    steps: list[dict[str, Any]] = []

    def say(source: str, message: Any, after: float, **more: Any) -> None:
        nonlocal at
        at += timedelta(seconds=after)
        number = len(steps) + 1
        steps.append(
            {
                "step_id": number,
                "timestamp": at.isoformat(),
                "source": source,
                "message": message,
                **more,
            }
        )

    say("system", "You are a coding agent. Work in /app. Tools: Bash, Edit, user-server.", 0)
    say("user", INSTRUCTIONS.get(name, "Make the failing test pass."), 0.1)
    say(
        "agent",
        "I'll start by looking at the repository and its history.",
        4.2,
        reasoning_content="The instruction is vague on purpose. The user knows more than it says; "
        "look first, then ask one precise question.",
        tool_calls=[
            {
                "tool_call_id": "c1",
                "function_name": "Bash",
                "arguments": {"command": "cd /app && git log --oneline | head -5 && ls src"},
            }
        ],
        observation={
            "results": [
                {
                    "source_call_id": "c1",
                    "content": "9c1f0de Read trailer records\n4d2aa10 Split reader from parser\n"
                    "\x1b[34msrc\x1b[0m/inventory/__init__.py\nsrc/inventory/parser.py",
                }
            ]
        },
        metrics={"prompt_tokens": 8210, "completion_tokens": 96, "cost_usd": 0.0261},
    )
    for number, (question, answer) in enumerate(QUESTIONS[:talk]):
        call = f"u{number}"
        say(
            "agent",
            "" if number else "One thing decides the design, so I ask.",
            18.0,
            tool_calls=[
                {
                    "tool_call_id": call,
                    "function_name": "mcp__user-server__ask_user",
                    "arguments": {"question": question},
                }
            ],
            observation={"results": [{"source_call_id": call, "content": answer}]},
            metrics={"prompt_tokens": 14_800, "completion_tokens": 120, "cached_tokens": 8200},
        )
        say(
            "agent",
            "",
            31.0,
            tool_calls=[
                {
                    "tool_call_id": f"e{number}",
                    "function_name": "Edit",
                    "arguments": {
                        "file_path": "/app/src/inventory/parser.py",
                        "old_string": "    raise ParseError(f'line {n}: no trailer')\n",
                        "new_string": "    warnings.warn(TrailerMissing(n), stacklevel=2)\n"
                        "    return rows\n",
                    },
                },
                {
                    "tool_call_id": f"t{number}",
                    "function_name": "Bash",
                    "arguments": {"command": "python -m pytest -q\ngit commit -am 'Warn'"},
                },
            ],
            observation={
                "results": [
                    {"source_call_id": f"e{number}", "content": "1 replacement"},
                    {"source_call_id": f"t{number}", "content": "24 passed in 1.80s\n[main 4f1c2]"},
                ]
            },
        )
    say("agent", "Done. The plan is in /tmp/plan.md and nothing else was changed.", 6.0)
    return {
        "schema_version": "ATIF-v1.8",
        "agent": {"name": agent.name, "version": agent.version, "model_name": agent.model},
        "steps": steps,
    }


INSTRUCTIONS = {
    "01_plan": "Talk to the user through the `ask_user` tool and agree on what is to be done. "
    "Write the plan to /tmp/plan.md. Do not edit code yet.",
    "02_implement": "Read /tmp/plan.md and implement it. Commit after each pass and ask the user "
    "for a review. You are done when the user says so.",
}


def _full(name: str, agent: AgentIdentity = AGENT, rewards: Any = (1, 1, 1, 1, 1)) -> Sketch:
    sketch = Sketch(name, agent)
    times = (95.0, 412.0, 38.0, 160.0, 44.0)
    for step, reward, seconds in zip(STEPS, rewards, times, strict=True):
        talk = {"01_plan": 1, "02_implement": 3}.get(step, 0)
        more: dict[str, Any] = {}
        if reward < 1 and step != STEPS[-1]:
            more = {
                "verdict": "xfailed",
                "verdict_reason": f"reward {reward:g} < 1; this step does not decide",
            }
        elif reward < 1:
            more = {"output": FAILED}
        sketch.step(step, float(reward), seconds, talk=talk, **more)
    return sketch


def _error(outcome: Outcome, phase: str, message: str) -> dict[str, Any]:
    return {
        "fault": fault(outcome, phase, message),
        "verdict_reason": f"{outcome} ({phase}): {message}",
        "reward_as_harbor": None,
    }


def build(job: Path) -> list[EpisodeResult]:
    """Write every episode's folder; returns the results."""
    made = [
        _full("bugfix_inq_parser").end(),
        _full("feature_tally_budgets").end(attempt=1),
        _full("feature_tally_reports", OTHER).end(),
        _full("refactor_tabx_formats", OTHER, (1, 0.5, 1, 1, 0)).end(Outcome.FAILED, 0.0),
        _full("bugfix_ledger_rounding", AGENT, (1, 1, 1, 1, 0.4)).end(Outcome.FAILED, 0.4),
        _gated(),
        _timed_out(),
        _agent_error(),
        _no_reward(),
        _died(),
        _start_failed(),
        _degraded(),
        _interrupted(),
        _hello(),
        _hostile(),
    ]
    for result, files in made:
        write(job, result, files)
    return [result for result, _ in made]


def _gated() -> tuple[EpisodeResult, dict[str, str]]:
    sketch = Sketch("feature_csv_import").step("01_plan", 1.0, 88, talk=1)
    sketch.step(
        "02_implement",
        0.3,
        505,
        talk=2,
        output=FAILED,
        gate="min_reward ≥ 0.5, got 0.3",
        verdict_reason="min_reward ≥ 0.5, got 0.3",
        grade={"rewards": {"reward": 0.3, "tests": 0.6, "style": 0.0}},
    )
    sketch.rest("not reached: min_reward ≥ 0.5, got 0.3 in step 02_implement", 0.0)
    reason = "gate_stopped: step 02_implement: min_reward ≥ 0.5, got 0.3"
    return sketch.end(Outcome.GATE_STOPPED, 0.0, reward_as_harbor=0.3, verdict_reason=reason)


def _timed_out() -> tuple[EpisodeResult, dict[str, str]]:
    told = "ran out of time after 600.0 s (agent budget of step 02_implement)"
    sketch = Sketch("perf_index_rebuild", OTHER).step("01_plan", 1.0, 131, talk=1)
    sketch.step(
        "02_implement",
        0.0,
        640,
        talk=3,
        output=FAILED,
        verdict="xfailed",
        verdict_reason=f"reward 0 < 1; {told}; this step does not decide",
        turn={"ended": "timeout", "exit_code": None, "message": told},
        hygiene=Hygiene(killed_before_grading=("node server.js --watch", "sleep 3600")),
    )
    for name in STEPS[2:]:
        sketch.step(name, 0.0 if name == STEPS[-1] else 1.0, 35, output=FAILED)
    return sketch.end(Outcome.AGENT_TIMEOUT, 0.0, verdict_reason=f"agent_timeout: {told}")


def _agent_error() -> tuple[EpisodeResult, dict[str, str]]:
    told = "the agent exited with 137: API Error: 529 overloaded"
    sketch = Sketch("bugfix_cache_expiry").step("01_plan", 1.0, 70, talk=1)
    for name in STEPS[1:]:
        last = name == STEPS[-1]
        sketch.step(
            name,
            0.0 if last else 1.0,
            45,
            output=FAILED if last else "",
            turn={"ended": "error", "exit_code": 137, "message": told} if last else {},
        )
    return sketch.end(Outcome.AGENT_ERROR, 0.0, verdict_reason=f"agent_error: {told}")


def _no_reward() -> tuple[EpisodeResult, dict[str, str]]:
    message = (
        "the verifier wrote neither reward.json nor reward.txt (/logs/verifier: test-stdout.txt)\n"
        "exit status: 2; /logs/verifier holds: test-stdout.txt; its output ends:\n"
        "E   ModuleNotFoundError: No module named 'yaml'"
    )
    sketch = Sketch("bugfix_yaml_anchor")
    for name in STEPS[:4]:
        sketch.step(name, 1.0, 60, talk=1 if name == "01_plan" else 0)
    sketch.step(
        STEPS[4],
        None,
        21,
        output="E   ModuleNotFoundError: No module named 'yaml'\n",
        outcome=Outcome.NO_REWARD,
        verdict="error",
        verdict_reason=f"no_reward: {message}",
        fault=fault(Outcome.NO_REWARD, "verify", message),
        grade={"exit_code": 2, "reward_file": None},
        artifacts=(
            ArtifactRecord(
                source="/logs/artifacts/model.patch",
                destination="artifacts/model.patch",
                type="file",
                status="ok",
            ),
            ArtifactRecord(
                source="/app/out", destination="artifacts/out", status="failed", note="no such path"
            ),
        ),
    )
    return sketch.end(Outcome.NO_REWARD, None, **_error(Outcome.NO_REWARD, "verify", message))


def _died() -> tuple[EpisodeResult, dict[str, str]]:
    message = "main stopped with exit status 137 (out of memory) in the agent phase of 02_implement"
    sketch = Sketch("feature_image_resize", OTHER).step("01_plan", 1.0, 64, talk=1)
    sketch.step(
        "02_implement",
        None,
        301,
        talk=1,
        outcome=Outcome.SANDBOX_DIED,
        verdict="error",
        verdict_reason=f"sandbox_died: {message}",
        fault=fault(Outcome.SANDBOX_DIED, "agent", message),
        grade=None,
        warnings=("/logs/artifacts could not be saved: main is not running",),
    )
    sketch.rest(f"not reached: sandbox_died: {message}")
    return sketch.end(Outcome.SANDBOX_DIED, None, **_error(Outcome.SANDBOX_DIED, "agent", message))


def _start_failed() -> tuple[EpisodeResult, dict[str, str]]:
    message = (
        "user-server did not become healthy within 60 s (10 tries every 5 s); its last words:\n"
        "KeyError: 'LITELLM_API_KEY'"
    )
    sketch = Sketch("refactor_queue_worker").rest(f"not reached: start_failed: {message}")
    sketch.clock = 60.0
    phases = {"group": interval(60.0, 0.3)}
    error = _error(Outcome.START_FAILED, "group", message)
    return sketch.end(Outcome.START_FAILED, None, phases=phases, **error)


def _degraded() -> tuple[EpisodeResult, dict[str, str]]:
    message = "the simulated user gave 4 canned replies: its model answered with status 401"
    error = _error(Outcome.USER_DEGRADED, "agent", message)
    changes = {**error, "reward_as_harbor": 0.0}
    return _full("feature_audit_log", AGENT, (1, 1, 1, 1, 0)).end(
        Outcome.USER_DEGRADED, None, **changes
    )


def _interrupted() -> tuple[EpisodeResult, dict[str, str]]:
    message = "the run ended before this episode did"
    sketch = Sketch("refactor_date_parsing").step("01_plan", 1.0, 102, talk=1)
    sketch.rest(f"not reached: interrupted: {message}")
    return sketch.end(Outcome.INTERRUPTED, None, **_error(Outcome.INTERRUPTED, "steps", message))


def _hello() -> tuple[EpisodeResult, dict[str, str]]:
    sketch = Sketch("hello_world", SOLO, "hello").step("task", 1.0, 1.4)
    sketch.clock = 3.1
    return sketch.end(phases={"group": interval(0.7, 0.1)}, images={"main": "sha256:5f0e"})


def _hostile() -> tuple[EpisodeResult, dict[str, str]]:
    sketch = Sketch(f"x{HOSTILE}", SOLO, "hello").step(
        "task",
        0.0,
        4.0,
        output=f"{HOSTILE}\n\x1b[31mred\x1b[0m \x00 nul\n" + "padding\n" * 40_000,
        hygiene=Hygiene(
            removed=("/tmp/.cache/answers", f"/tmp/{HOSTILE}"),
            tampering=("/logs/verifier/reward.txt was rewritten while test.sh ran",),
        ),
        warnings=(f"reward.json says 1 and counts; {HOSTILE}",),
    )
    reason = f"failed: reward 0 < 1; {HOSTILE} \x1b[31mred\x1b[0m"
    return sketch.end(Outcome.FAILED, 0.0, verdict_reason=reason)


def main(folder: Path) -> None:
    from pytest_harbor.report.html import write_report
    from pytest_harbor.report.job import write_job

    job = folder / "2026-11-03__14-02-07"
    results = build(job)
    write_job(job, results, started_at=START)
    write_report(job, job / "report.html", results)
    sys.stdout.write(f"{job / 'report.html'}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
