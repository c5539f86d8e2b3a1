"""B25: a schema's default is no declaration; each limit says where it comes from."""

from __future__ import annotations

from pathlib import Path

from task_folders import write_steps, write_task

from pytest_harbor.task.load import load_task
from pytest_harbor.task.timeouts import NOT_SET, resolve


def test_a_task_without_an_agent_table_has_no_limit_by_default(tmp_path: Path) -> None:
    [step] = load_task(write_task(tmp_path)).steps
    assert step.agent_timeout == NOT_SET
    budget = resolve("agent", step.agent_timeout)
    assert budget.seconds is None
    assert str(budget) == "no limit (default)"


def test_an_empty_agent_table_sets_nothing_either(tmp_path: Path) -> None:
    [step] = load_task(write_task(tmp_path, "[agent]\n[verifier]\n")).steps
    assert step.agent_timeout == NOT_SET
    assert str(resolve("verifier", step.verifier_timeout)) == "600 s (default)"


def test_a_value_that_equals_the_default_is_still_a_declaration(tmp_path: Path) -> None:
    toml = (
        "[verifier]\ntimeout_sec = 60\n[[steps]]\nname = 'a'\n[steps.verifier]\ntimeout_sec = 600\n"
    )
    [step] = load_task(write_steps(tmp_path, "a", toml=toml)).steps
    assert str(resolve("verifier", step.verifier_timeout)) == (
        "600 s ([[steps]] a [verifier] timeout_sec)"
    )


def test_each_phase_reads_its_own_table(tmp_path: Path) -> None:
    toml = (
        "[agent]\ntimeout_sec = 1\n"
        "[verifier]\ntimeout_sec = 2\n"
        "[environment]\nbuild_timeout_sec = 3\n"
    )
    task = load_task(write_task(tmp_path, toml))
    assert task.steps[0].agent_timeout.seconds == 1
    assert task.steps[0].verifier_timeout.seconds == 2
    assert task.config.environment.build_timeout_sec == 3


def test_a_budget_in_the_wrong_table_is_named(tmp_path: Path) -> None:
    toml = "[environment]\ntimeout_sec = 900\n"
    task = load_task(write_task(tmp_path, toml))
    assert task.steps[0].agent_timeout == NOT_SET
    assert "[environment] timeout_sec" in task.warnings[0]
