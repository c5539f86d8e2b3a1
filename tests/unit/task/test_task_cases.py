"""Every published task.toml and every edge case that we have: loaded, with the expected values.

The files belong to others and lie outside this repository (see ``task_folders.cases_folder``).
"""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from pydantic import BaseModel
from task_folders import cases_folder, cases_required

from pytest_harbor.errors import TaskError
from pytest_harbor.task.config import parse_task_toml
from pytest_harbor.task.outline import read_outline
from pytest_harbor.task.schema import TaskConfig
from pytest_harbor.task.timeouts import Declared, resolve

CASES = cases_folder()


def _real() -> list[dict[str, Any]]:
    if CASES is None:
        return []
    lines = (CASES / "real-task-toml.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


def _edges() -> dict[str, dict[str, Any]]:
    return {} if CASES is None else json.loads((CASES / "task-toml-edges.json").read_text("utf-8"))


# What we do otherwise than Harbor, and why it is said in the warning.
KINDER = {
    "bom": ("byte order mark", {"agent": {"timeout_sec": 5.0}}),
    "memory_int": ("memory_mb = 2048", {"environment": {"memory_mb": 2048}}),
    "timeout_nan": ("counts as unset", {"verifier": {"timeout_sec": None}}),
    "timeout_neg": ("counts as unset", {"agent": {"timeout_sec": None}}),
    "timeout_zero": ("counts as unset", {"agent": {"timeout_sec": None}}),
}
# What Harbor takes without a word, and we warn of.
WARNED = {
    "mcp_default_transport": 'declare "sse" or "streamable-http"',
    "typo_table": "'verifier'",
    "typo_timeout": "'timeout_sec'",
    "unknown_root": "foo",
}


def test_the_cases_are_here() -> None:
    if CASES is None and not cases_required():
        pytest.skip("the case files are not part of the project; see PYTEST_HARBOR_CASES")
    assert len(_real()) == 156
    assert len(_edges()) == 60


@pytest.mark.parametrize("case", _real(), ids=lambda case: case["id"])
def test_published_file(case: dict[str, Any]) -> None:
    parsed = parse_task_toml(case["toml"].encode(), "task.toml")
    config, expect = parsed.config, case["expect"]
    environment = config.environment

    assert parsed.warnings == ()
    assert [step.name for step in config.steps] == expect["steps"]
    assert config.agent.timeout_sec == expect["agent_timeout"]
    assert _seconds("verifier", config.verifier.timeout_sec) == expect["verifier_timeout"]
    assert _seconds("environment start", environment.build_timeout_sec) == expect["build_timeout"]
    assert environment.cpus == expect["cpus"]
    assert environment.memory_mb == expect["memory_mb"]
    assert environment.docker_image == expect["image"]
    assert [server.name for server in environment.mcp_servers] == expect["mcp"]
    assert environment.network_mode == expect["network"]
    assert [[step.agent.timeout_sec, step.verifier.timeout_sec] for step in config.steps] == expect[
        "step_timeouts"
    ]


@pytest.mark.parametrize("case", _real(), ids=lambda case: case["id"])
def test_outline_agrees(case: dict[str, Any], tmp_path: Any) -> None:
    (tmp_path / "task.toml").write_text(case["toml"], "utf-8")
    config = parse_task_toml(case["toml"].encode(), "task.toml").config
    outline = read_outline(tmp_path / "task.toml")

    assert outline.error is None
    assert list(outline.steps) == case["expect"]["steps"]
    assert outline.name_hint == (config.task.name if config.task else tmp_path.name)
    assert list(outline.tags) == config.metadata.get("tags", [])
    assert outline.timeout_hint == _sum_of_budgets(config)


@pytest.mark.parametrize(("name", "case"), _edges().items(), ids=_edges())
def test_edge_case(name: str, case: dict[str, Any]) -> None:
    data = case["toml"].encode()
    if not case["ok"] and name not in KINDER:
        with pytest.raises(TaskError, match=r"^task\.toml[:,] .*[:;]"):
            parse_task_toml(data, "task.toml")
        return
    parsed = parse_task_toml(data, "task.toml")
    hint, expected = KINDER.get(name, (WARNED.get(name), case.get("non_default")))
    assert len(parsed.warnings) == (hint is not None), parsed.warnings
    assert (hint or "") in "".join(parsed.warnings)
    _assert_holds(parsed.config, expected)


def _seconds(phase: Any, value: float | None) -> float | None:
    return resolve(phase, None, Declared(value, "task.toml")).seconds


def _sum_of_budgets(config: TaskConfig) -> float | None:
    total = 0.0
    for step in config.steps or [None]:
        for phase in ("agent", "verifier"):
            own = getattr(step, phase).timeout_sec if step else None
            seconds = _seconds(phase, own or getattr(config, phase).timeout_sec)
            if seconds is None:
                return None
            total += seconds
    return total


def _assert_holds(actual: Any, expected: Any) -> None:
    """Compare only what the case names: everything else is a default."""
    if isinstance(expected, dict) and isinstance(actual, BaseModel):
        for key, value in expected.items():
            _assert_holds(getattr(actual, key), value)
    elif isinstance(expected, list):
        assert len(actual) == len(expected)
        for one, other in zip(actual, expected, strict=True):
            _assert_holds(one, other)
    else:
        assert actual == expected
        assert not (isinstance(actual, float) and math.isnan(actual))
