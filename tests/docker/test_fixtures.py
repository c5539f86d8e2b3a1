"""The fixtures and hooks as a user meets them: overridden, asked for in own tests, shown by pytest.

Whole runs of pytest in a process of their own; each shows as much as it can.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from episodes import GIVES_0, GIVES_1, USER, USER_FILES, Part, many_steps, one_step
from junit_tools import cases
from models import KEY, MODEL, Upstream


@pytest.fixture
def dataset(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for tasks, in a project with an ini file of its own."""
    pytester.makeini("[pytest]\n")
    monkeypatch.setenv("COLUMNS", "300")
    return pytester.path / "ds"


def put(task: Path, name: str) -> Path:
    """Give a task that a builder wrote a name of its own, in its dataset."""
    return task.rename(task.parents[1] / name)


def run(pytester: pytest.Pytester, *args: str) -> pytest.RunResult:
    common = ("--harbor-job-name", "job", "--junitxml", "junit.xml", "-rA", "-v")
    return pytester.runpytest_subprocess(*common, *args)


def results(pytester: pytest.Pytester) -> dict[str, dict[str, Any]]:
    """Our part of each result file, by node id."""
    found = (json.loads(p.read_text()) for p in pytester.path.glob("jobs/job/*/result.json"))
    return {each["pytest_harbor"]["key"]: each["pytest_harbor"] for each in found}


def test_outcomes_as_pytest_shows_them(pytester: pytest.Pytester, dataset: Path) -> None:
    """B70 too: what breaks one task does not touch the others."""
    low = [Part(test=GIVES_0), Part(), Part()]
    final = 'multi_step_reward_strategy = "final"'
    dying = "kill 1; sleep 20"
    put(one_step(dataset), "good")
    put(one_step(dataset, test=GIVES_0), "low")
    put(one_step(dataset, solve=dying), "dies")
    put(one_step(dataset, test="exit 1"), "mute")
    put(one_step(dataset, '[environment.healthcheck]\ncommand = "false"\nretries = 1\n'), "sick")
    put(one_step(dataset, "[agent"), "broken")
    put(many_steps(dataset, final, *low), "undecided")
    result = run(pytester, "ds", "-p", "no:randomly")
    node = "ds/{0}/task.toml::{0}".format
    result.stdout.fnmatch_lines_random(
        [
            f"PASSED {node('good')}",
            f"FAILED {node('low')} - Failed: failed: reward 0 < 1*",
            f"ERROR {node('dies')} - *sandbox_died (agent)*",
            f"ERROR {node('mute')} - *no_reward (verify)*",
            f"ERROR {node('sick')} - *healthcheck*",
            f"ERROR {node('broken')} - *task 'broken' cannot be run*",
            f"PASSED {node('undecided')}",
            f"SUBXFAIL[[]one[]] {node('undecided')} - *this step does not decide*",
        ]
    )
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(passed=2, failed=1, errors=4, xfailed=1)
    endings = {case.name: case.ending for case in cases(pytester.path / "junit.xml")}
    assert endings == {
        "good": None,
        "low": "failure",
        "dies": "error",
        "mute": "error",
        "sick": "error",
        "broken": "error",
        "undecided": None,
        "undecided[one]": "skipped",
        "undecided[two]": None,
        "undecided[three]": None,
    }
    outcomes = {key.rpartition("::")[2]: each["outcome"] for key, each in results(pytester).items()}
    assert outcomes == {
        "good": "passed",
        "low": "failed",
        "dies": "sandbox_died",
        "mute": "no_reward",
        "sick": "start_failed",
        "broken": "task_invalid",
        "undecided": "passed",
    }


OVERRIDES = """
import dataclasses
import pytest
from pytest_harbor.agents.command import CommandAgent
from pytest_harbor.task.load import load_task

seen = []

@pytest.fixture
def harbor_task(harbor_task):
    first, *rest = harbor_task.steps
    sings = dataclasses.replace(first, instruction="Sing.\\n")
    return dataclasses.replace(harbor_task, steps=(sings, *rest))

@pytest.fixture
def harbor_recipe(harbor_recipe):
    passes = harbor_recipe.pass_rule.model_copy(update={"threshold": 0.5})
    return harbor_recipe.model_copy(update={"pass_rule": passes})

MINE = CommandAgent("cat > /app/said; echo half > /app/how")

@pytest.fixture(params=["oracle", MINE], ids=["reference", "mine"])
def harbor_agent(request):
    return request.param

@pytest.fixture
def harbor_compose(harbor_compose):
    main = harbor_compose.group.container("main")
    main.make_folder("/app/by-the-fixture")
    return harbor_compose

@pytest.fixture
def harbor_user(harbor_user):
    assert harbor_user.service == "user-server"
    seen.append(harbor_user.url)
    yield harbor_user
    assert b"the user lives" in harbor_user.logs()

@pytest.fixture
def harbor_episode(harbor_episode):
    class Watched:
        folder = harbor_episode.folder
        def run(self):
            result = harbor_episode.run()
            print("watched", result.outcome, result.reward, len(seen))
            return result
    return Watched()
"""


def test_each_fixture_can_be_overridden(pytester: pytest.Pytester, dataset: Path) -> None:
    pytester.makeconftest(OVERRIDES)
    test = f"""
    test -d /app/by-the-fixture || exit 1
    grep -x Sing. /app/said
    {GIVES_1}; [ -e /app/how ] && echo 0.5 > /logs/verifier/reward.txt; true
    """
    put(one_step(dataset, USER, solve="echo Sing. > /app/said", test=test, **USER_FILES), "sing")
    result = run(pytester, "ds", "-s")
    node = "ds/sing/task.toml::sing"
    result.stdout.fnmatch_lines_random([f"PASSED {node}[[]reference]", f"PASSED {node}[[]mine]"])
    assert result.ret == 0
    found = results(pytester)
    assert set(found) == {f"{node}[reference]", f"{node}[mine]"}
    oracle, mine = found[f"{node}[reference]"], found[f"{node}[mine]"]
    assert (oracle["agent"]["name"], mine["agent"]["name"]) == ("oracle", "command")
    assert (oracle["reward"], mine["reward"]) == (1.0, 0.5)
    assert (mine["outcome"], mine["threshold"]) == ("passed", 0.5)
    folder = pytester.path / "jobs/job" / mine["episode"]
    assert (folder / "verifier/test-stdout.txt").read_text() == "Sing.\n"
    result.stdout.fnmatch_lines_random(["*watched passed 0.5 2", "*watched passed 1.0 1"])


HOOKS = """
from pytest_harbor.agents.command import CommandAgent

def note(*words):
    with open("called", "a") as file:
        print(*words, file=file)

def pytest_harbor_recipe(task, recipe):
    note("recipe", task.name)
    if task.name == "lenient":
        rule = recipe.pass_rule.model_copy(update={"threshold": 0.0})
        return recipe.model_copy(update={"pass_rule": rule})

def pytest_harbor_agent(task, recipe):
    note("agent", task.name, recipe.pass_rule.threshold)
    if task.name == "many":
        return CommandAgent("true")

def pytest_harbor_step_finished(result):
    note("step", result.name, result.reward, result.verdict)

def pytest_harbor_episode_finished(result):
    note("episode", result.task, result.reward, result.agent.name)
"""


def test_hooks_are_called(pytester: pytest.Pytester, dataset: Path) -> None:
    (dataset).mkdir()
    (dataset / "conftest.py").write_text(HOOKS)
    gate = Part(test=GIVES_0, toml="min_reward = 1")
    put(one_step(dataset, test=GIVES_0), "lenient")
    put(many_steps(dataset, "", gate, Part()), "many")
    result = run(pytester, "ds")
    result.assert_outcomes(passed=1, failed=2, skipped=1)
    assert (pytester.path / "called").read_text().splitlines() == [
        "recipe lenient",
        "agent lenient 0.0",
        "step task 0.0 passed",
        "episode lenient 0.0 oracle",
        "recipe many",
        "agent many 1.0",
        "step one 0.0 failed",
        "step two 0.0 skipped",
        "episode many 0.0 command",
    ]


OWN_TESTS = """
import pytest

@pytest.mark.harbor_task("ds/good")
def test_an_episode_of_its_own(harbor_episode):
    result = harbor_episode.run()
    assert result is harbor_episode.run()
    assert result.reward == 1
    assert (harbor_episode.folder / "verifier/test-stdout.txt").exists()

@pytest.mark.harbor_task("ds/good")
def test_only_the_group(harbor_compose):
    from pytest_harbor.task.timeouts import Deadline
    main = harbor_compose.group.container("main")
    ran = main.run("pwd; exit 3", deadline=Deadline.after(20, "my test"))
    assert ran.output == b"/app\\n"
    assert ran.exit_code == 3

@pytest.mark.harbor_task("ds/good")
def test_that_fails(harbor_episode):
    assert harbor_episode.run().reward == 2

@pytest.mark.harbor_task("ds/good")
def test_whose_own_assertion_fails(harbor_compose):
    assert harbor_compose.group.services == ()

@pytest.mark.harbor_task("ds/sick")
def test_whose_group_is_sick(harbor_compose):
    raise AssertionError("never reached")

@pytest.mark.harbor_task("ds/nowhere")
def test_of_nothing(harbor_episode):
    raise AssertionError("never reached")

def test_without_a_mark(harbor_task):
    raise AssertionError("never reached")

@pytest.mark.harbor_task("ds/good")
def test_no_docker(harbor_task, harbor_recipe, harbor_agent):
    assert harbor_task.name == "good"
    assert harbor_recipe.agent.name == harbor_agent.name == "oracle"
"""
SICK = """
services:
  main: {depends_on: {sick: {condition: service_healthy}}}
  sick:
    image: debian:bookworm-slim
    init: true
    command: sleep infinity
    healthcheck: {test: "echo so ill; false", interval: 100ms, retries: 2}
"""


def test_own_tests_use_the_fixtures(pytester: pytest.Pytester, dataset: Path) -> None:
    put(one_step(dataset, test="echo hello; " + GIVES_1), "good")
    put(one_step(dataset, **{"environment/docker-compose.yaml": SICK}), "sick")
    pytester.makepyfile(test_mine=OWN_TESTS)
    result = run(pytester, "test_mine.py")
    result.stdout.fnmatch_lines_random(
        [
            "PASSED test_mine.py::test_an_episode_of_its_own",
            "PASSED test_mine.py::test_only_the_group",
            "PASSED test_mine.py::test_no_docker",
            "FAILED test_mine.py::test_that_fails - *1.0 == 2*",
            "FAILED test_mine.py::test_whose_own_assertion_fails - *",
            "ERROR test_mine.py::test_whose_group_is_sick - *service sick is not healthy*",
            "ERROR test_mine.py::test_of_nothing - *ds/nowhere*",
            "ERROR test_mine.py::test_without_a_mark - *has no task: mark it with*",
        ]
    )
    result.assert_outcomes(passed=3, failed=2, errors=3)
    result.stdout.no_fnmatch_line("*During handling of the above*")
    # those that played no episode are in no table
    assert {
        key.rpartition("::")[2]: each["outcome"] for key, each in results(pytester).items()
    } == {
        "test_an_episode_of_its_own": "passed",
        "test_that_fails": "passed",
        "test_whose_group_is_sick": "start_failed",
        "test_of_nothing": "task_invalid",
    }
    result.stdout.no_fnmatch_line("test_only_the_group *")
    endings = {case.name: case.ending for case in cases(pytester.path / "junit.xml")}
    assert endings == {
        "test_an_episode_of_its_own": None,
        "test_only_the_group": None,
        "test_no_docker": None,
        "test_that_fails": "failure",
        "test_whose_own_assertion_fails": "failure",
        "test_whose_group_is_sick": "error",
        "test_of_nothing": "error",
        "test_without_a_mark": "error",
    }


RECIPE = """
model_servers:
  policy: {{base_url: "{url}", key: {{env: UPSTREAM_KEY}}, model: real-1}}
prices:
  real-1: {{input: 10, output: 100}}
agent:
  env: {{POLICY: {{model_server: policy}}}}
"""
WATCHED = """
import os, subprocess, sys, threading
import pytest

WORKER = os.environ.get("PYTEST_XDIST_WORKER", "main")

@pytest.fixture
def harbor_compose(harbor_compose):
    group = harbor_compose.group
    ids = [group.container_id(name) for name in group.services]
    with open(f"seen-{WORKER}", "a") as file:
        file.write(subprocess.check_output(["docker", "inspect", *ids], text=True))
        file.write(subprocess.check_output(["ps", "axww"], text=True))
    yield harbor_compose

def pytest_unconfigure():
    left = [thread.name for thread in threading.enumerate()]
    with open(f"left-{WORKER}", "w") as file:
        print("pytest_harbor.gateway" in sys.modules, *left, file=file)
"""


@pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["serial", "n2"])
def test_a_key_reaches_the_model_server_and_nothing_else(
    workers: tuple[str, ...],
    pytester: pytest.Pytester,
    dataset: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ask = MODEL + 'model "$POLICY" hello | grep -q "hello from upstream"; env > /logs/agent/env'
    for name in ("one", "two"):
        put(one_step(dataset, solve=ask), name)
    monkeypatch.setenv("UPSTREAM_KEY", KEY)
    pytester.makeconftest(WATCHED)
    pytester.makeini("[pytest]\nfilterwarnings = error\n")
    with Upstream() as upstream:
        (dataset / "harbor.yaml").write_text(RECIPE.format(url=upstream.url))
        done = run(pytester, "ds", "--harbor-record", "tapes", *workers)
        assert len(upstream.got) == 3  # the two episodes, and one try for all workers
    done.assert_outcomes(passed=2)
    for result in results(pytester).values():
        assert result["parties"]["agent"]["calls"] == 1
        assert result["cost_usd"] == result["steps"][0]["turn"]["cost_usd"] == 0.003
        assert result["tokens"] == 120
    costs = [case.properties["harbor.cost_usd"] for case in cases(pytester.path / "junit.xml")]
    assert costs == ["0.003", "0.003"]

    assert len(list(pytester.path.glob("tapes/*/agent.jsonl"))) == 2
    files = [path for path in pytester.path.rglob("*") if path.is_file()]
    assert {"junit.xml", "report.html", "agent.jsonl", "result.json"} <= {p.name for p in files}
    for path in files:
        assert KEY.encode() not in path.read_bytes(), path
    assert KEY not in done.stdout.str() + done.stderr.str()
    for path in pytester.path.glob("left-*"):
        imported, *threads = path.read_text().split()
        assert imported == "True" or path.name == "left-main"
        assert "pytest-harbor-gateway" not in threads

    # and the same again from the record, with neither key nor server
    monkeypatch.delenv("UPSTREAM_KEY")
    again = run(pytester, "ds", "--harbor-replay", "tapes", *workers)
    again.assert_outcomes(passed=2)


def test_no_gateway_is_made_where_no_recipe_asks_for_one(
    pytester: pytest.Pytester, dataset: Path
) -> None:
    put(one_step(dataset), "one")
    pytester.makeconftest(WATCHED)
    run(pytester, "ds").assert_outcomes(passed=1)
    assert (pytester.path / "left-main").read_text().split() == ["False", "MainThread"]


def test_the_gateway_can_be_a_users_own(pytester: pytest.Pytester, dataset: Path) -> None:
    ask = MODEL + 'model "$POLICY" hello | grep -q "hello from upstream"'
    put(one_step(dataset, solve=ask), "one")
    pytester.makeconftest(
        "import pytest\n"
        "from pytest_harbor.gateway import Gateway\n"
        "@pytest.fixture(scope='session')\n"
        "def harbor_gateway():\n"
        f"    with Gateway(environment={{'UPSTREAM_KEY': {KEY!r}}}) as gateway:\n"
        "        yield gateway\n"
    )
    with Upstream() as upstream:
        (dataset / "harbor.yaml").write_text(RECIPE.format(url=upstream.url))
        run(pytester, "ds").assert_outcomes(passed=1)
