"""B19: explicit step, else task, else default; times the multiplier once; then the hard cap."""

from __future__ import annotations

from pathlib import Path

import pytest
from task_folders import write_steps, write_task

from pytest_harbor.errors import RecipeError
from pytest_harbor.task.load import load_task
from pytest_harbor.task.timeouts import Declared, resolve


def step(seconds: float | None) -> Declared:
    return Declared(seconds, "[[steps]] a [agent] timeout_sec")


def task(seconds: float | None) -> Declared:
    return Declared(seconds, "[agent] timeout_sec")


@pytest.mark.parametrize(
    ("of_step", "of_task", "multiplier", "cap", "expected"),
    [
        # which value counts
        (None, None, 1, None, None),
        (None, 600, 1, None, 600),
        (60, 600, 1, None, 60),
        (900, 600, 1, None, 900),
        (60, None, 1, None, 60),
        # the multiplier, once, whoever set the value
        (60, 600, 3, None, 180),
        (None, 600, 3, None, 1800),
        (None, None, 3, None, None),
        (None, 600, 0.5, None, 300),
        # the cap has the last word
        (None, 600, 3, 900, 900),
        (None, 600, 1, 900, 600),
        (60, 600, 3, 900, 180),
        (None, None, 1, 900, 900),
        (None, 1200, 0.5, 900, 600),
    ],
)
def test_agent(
    of_step: float | None,
    of_task: float | None,
    multiplier: float,
    cap: float | None,
    expected: float | None,
) -> None:
    budget = resolve("agent", step(of_step), task(of_task), multiplier=multiplier, cap=cap)
    assert budget.seconds == expected


@pytest.mark.parametrize(
    ("phase", "seconds"),
    [
        ("environment start", 600),
        ("agent setup", 360),
        ("step setup", 600),
        ("agent", None),
        ("verifier", 600),
    ],
)
def test_defaults(phase: str, seconds: float | None) -> None:
    budget = resolve(phase)  # type: ignore[arg-type]
    assert budget.seconds == seconds
    assert "default" in budget.source


@pytest.mark.parametrize("multiplier", [1.0, 3.0])
def test_an_override_replaces_what_the_task_says(multiplier: float) -> None:
    budget = resolve("agent", step(60), task(600), multiplier=multiplier, override=100)
    assert budget.seconds == 100 * multiplier


@pytest.mark.parametrize("value", [0, 0.0, -1, float("nan"), float("inf"), True])
@pytest.mark.parametrize("name", ["override", "multiplier", "cap"])
def test_nought_in_a_recipe_or_option_is_an_error_not_unset(name: str, value: float) -> None:
    source = {f"{name}_source": "harbor.yaml:12"}
    with pytest.raises(RecipeError, match=r"^harbor\.yaml:12 is .*; give a number above 0"):
        resolve("agent", None, task(600), **{name: value}, **source)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        ({}, "600 s ([agent] timeout_sec)"),
        (
            {"multiplier": 3, "cap": 900, "cap_source": "recipe timeouts.agent.cap"},
            "600 s ([agent] timeout_sec) × 3 = 1800 s, capped at 900 s (recipe timeouts.agent.cap)",  # noqa: RUF001
        ),
        (
            {"multiplier": 0.5, "multiplier_source": "--harbor-timeout-multiplier"},
            "600 s ([agent] timeout_sec) × 0.5 (--harbor-timeout-multiplier) = 300 s",  # noqa: RUF001
        ),
        ({"override": 7.25, "override_source": "harbor.yaml:3"}, "7.25 s (harbor.yaml:3)"),
        ({"cap": 900}, "600 s ([agent] timeout_sec)"),
    ],
)
def test_the_sum_is_printed(arguments: dict[str, float], printed: str) -> None:
    assert str(resolve("agent", step(None), task(600), **arguments)) == printed  # type: ignore[arg-type]


def test_no_limit_with_a_cap_is_printed() -> None:
    budget = resolve("agent", cap=900, cap_source="recipe")
    assert str(budget) == "no limit (default), capped at 900 s (recipe)"


def test_fractions_and_large_numbers_are_printed_as_a_person_writes_them() -> None:
    assert str(resolve("agent", step(0.1), multiplier=3)).endswith("= 0.3 s")
    assert str(resolve("agent", step(1_500_000))).startswith("1500000 s")


def test_a_step_inherits_both_budgets_of_its_task(tmp_path: Path) -> None:
    """Unlike Harbor, where a step's verifier has 600 s whatever the task says (sharp edge 5)."""
    toml = (
        "[agent]\ntimeout_sec = 600\n[verifier]\ntimeout_sec = 60\n"
        "[[steps]]\nname = 'a'\n"
        "[[steps]]\nname = 'b'\n"
        "[steps.agent]\ntimeout_sec = 30\n[steps.verifier]\ntimeout_sec = 9\n"
    )
    first, second = load_task(write_steps(tmp_path, "a", "b", toml=toml)).steps
    assert first.agent_timeout == Declared(600.0, "[agent] timeout_sec")
    assert first.verifier_timeout == Declared(60.0, "[verifier] timeout_sec")
    assert second.agent_timeout == Declared(30.0, "[[steps]] b [agent] timeout_sec")
    assert second.verifier_timeout == Declared(9.0, "[[steps]] b [verifier] timeout_sec")
    assert resolve("verifier", second.verifier_timeout, multiplier=2).seconds == 18


@pytest.mark.parametrize("value", ["0", "-5", "nan", "true"])
def test_nought_in_a_task_is_a_warning_and_unset(tmp_path: Path, value: str) -> None:
    loaded = load_task(write_task(tmp_path, f"[agent]\ntimeout_sec = {value}\n"))
    assert loaded.steps[0].agent_timeout == Declared(None, "not set")
    assert "[agent] timeout_sec" in loaded.warnings[0]
