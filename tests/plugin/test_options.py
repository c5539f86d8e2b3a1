"""One setting under three names; which of them wins; what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_datasets import STEPS_TOML, collect, run, write_task

from pytest_harbor import options
from pytest_harbor.recipe import stack

ENVIRONMENT = "PYTEST_HARBOR_"


def test_the_strongest_layer_wins_and_is_named(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makeini(
        "[pytest]\nharbor_agent = nop\nharbor_model = small\nharbor_attempts = 2\n"
        "harbor_strict = true\nharbor_jobs_dir = ini-jobs\n"
    )
    task = write_task(pytester.path / "ds" / "task")
    (pytester.path / "ds" / "harbor.yaml").write_text("agent: {name: yaml}\nkeep: true\n")
    monkeypatch.setenv("PYTEST_HARBOR_MODEL", "middle")
    monkeypatch.setenv("PYTEST_HARBOR_AGENT", "replay")
    monkeypatch.setenv("PYTEST_HARBOR_STRICT", "no")
    monkeypatch.chdir(pytester.path / "ds")
    config = pytester.parseconfig("--harbor-agent=oracle", "--harbor-html=out/report.html")
    layers = options.recipe_layers(config, task)
    recipe = stack(layers)
    assert recipe.values == {
        "agent.name": "oracle",
        "agent.model": "middle",
        "attempts": 2,
        "keep": True,
        "strict": False,
    }
    assert recipe.sources == {
        "agent.name": "--harbor-agent",
        "agent.model": "PYTEST_HARBOR_MODEL",
        "attempts": "harbor_attempts in tox.ini",
        "keep": "harbor.yaml:2",
        "strict": "PYTEST_HARBOR_STRICT",
    }
    assert options.given(config, "jobs-dir") == options.Given(
        pytester.path / "ini-jobs", "harbor_jobs_dir in tox.ini"
    )
    assert options.given(config, "html") == options.Given(
        pytester.path / "ds" / "out" / "report.html", "--harbor-html"
    )
    assert options.given(config, "agent") == options.Given("oracle", "--harbor-agent")
    assert options.given(config, "model") == options.Given("middle", "PYTEST_HARBOR_MODEL")
    assert options.given(config, "job-name") is None


def test_a_recipe_file_stands_in_for_those_of_the_datasets(pytester: pytest.Pytester) -> None:
    task = write_task(pytester.path / "ds" / "task")
    (pytester.path / "ds" / "harbor.yaml").write_text("keep: true\n")
    (pytester.path / "mine.yaml").write_text("attempts: 3\n")
    config = pytester.parseconfig("--harbor-recipe=mine.yaml")
    assert stack(options.recipe_layers(config, task)).values == {"attempts": 3}


@pytest.mark.parametrize(
    ("arguments", "environment", "message"),
    [
        (("--harbor-attempts=0",), {}, "--harbor-attempts: must be 1 or more, not 0"),
        (("-o", "harbor_attempts=-1"), {}, "harbor_attempts in tox.ini: must be 1 or more"),
        (("-o", "harbor_attempts=two"), {}, "*harbor_attempts*two*"),
        (("--harbor-recipe=no.yaml",), {}, "--harbor-recipe: there is no recipe file */no.yaml"),
        (("--harbor-replay=no",), {}, "--harbor-replay: nothing was recorded in */no"),
        (
            ("--harbor-replay=.",),
            {"RECORD": "r"},
            "--harbor-replay and PYTEST_HARBOR_RECORD: record",
        ),
        ((), {"ATTEMPTS": "two"}, "PYTEST_HARBOR_ATTEMPTS: a number is expected, not 'two'"),
        ((), {"KEEP": "maybe"}, "PYTEST_HARBOR_KEEP: yes or no is expected, not 'maybe'"),
        ((), {"AGNET": "nop"}, "* PYTEST_HARBOR_AGNET is not known; did you mean *HARBOR_AGENT[?]"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    arguments: tuple[str, ...],
    environment: dict[str, str],
    message: str,
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytester.makeini("[pytest]\n")
    for name, value in environment.items():
        monkeypatch.setenv(ENVIRONMENT + name, value)
    result = run(pytester, "--collect-only", *arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {message}*"])


def test_every_option_says_what_it_is(pytester: pytest.Pytester) -> None:
    shown = run(pytester, "--help").stdout.str()
    for setting in options.SETTINGS:
        assert setting.option in shown
        assert (f"  {setting.dest} " in shown) == setting.everywhere


def test_a_step_can_be_named_as_the_last_one(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\n")
    task = write_task(pytester.path / "ds" / "task", STEPS_TOML)
    write_task(pytester.path / "ds" / "other", STEPS_TOML)
    nodeid = "ds/task/task.toml::task"
    assert collect(pytester, f"{nodeid}::build") == [nodeid]
    attempts = ("--harbor-attempts=2", f"{nodeid}[attempt2]::build")
    assert collect(pytester, *attempts) == [f"{nodeid}[attempt2]"]

    config = pytester.parseconfigure(f"{nodeid}::build", "ds/other", "--harbor-until-step=plan")
    of_task, of_other = (
        stack(options.recipe_layers(config, folder)) for folder in (task, task.parent / "other")
    )
    assert (of_task.values["until_step"], of_other.values["until_step"]) == ("build", "plan")
    assert of_task.sources["until_step"] == f"the argument {nodeid}::build"
    for arguments, message in (
        ([f"{nodeid}::deploy"], "no such step; the steps of the task: plan, build, test"),
        ([f"{nodeid}::plan", f"{nodeid}::build"], "the task is also to stop after plan"),
    ):
        result = run(pytester, *arguments)
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        result.stderr.fnmatch_lines([f"ERROR: {arguments[-1]}: {message}"])


def test_workers_take_a_named_step_the_same_way(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\n")
    write_task(pytester.path / "ds" / "task", STEPS_TOML)
    pytester.makeconftest(
        "import pytest\n"
        "from pytest_harbor import options\n"
        "from pytest_harbor.recipe import stack\n"
        "@pytest.fixture\n"
        "def harbor_episode(request):\n"
        "    layers = options.recipe_layers(request.config, request.node.task.folder)\n"
        "    pytest.skip(f'until {stack(layers).values}')\n"
    )
    result = run(pytester, "-n2", "-rs", "ds/task/task.toml::task::build")
    result.stdout.fnmatch_lines(["SKIPPED*until {'until_step': 'build'}"])


def test_a_recipe_inside_a_task_is_said_to_be_ignored(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\n")
    task = write_task(pytester.path / "ds" / "task")
    Path(task / "harbor.yaml").write_text("attempts: 7\n")
    result = run(pytester, "--collect-only", "-q")
    result.stdout.fnmatch_lines(["*HarborWarning: */ds/task/harbor.yaml is ignored: *Move it to *"])
    assert len(collect(pytester)) == 1
