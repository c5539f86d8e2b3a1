"""Task folders become items: their ids, marks, keywords, order; and what is not collected."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_datasets import EPISODES, STEPS_TOML, collect, write_task


@pytest.fixture
def dataset(pytester: pytest.Pytester) -> Path:
    """Two tasks beside each other in a project with an ini file."""
    pytester.makeini("[pytest]\n")
    folder = pytester.path / "datasets" / "swe"
    write_task(folder / "task-1")
    write_task(folder / "task-2", STEPS_TOML)
    return folder


def test_node_ids_can_be_pasted_back(pytester: pytest.Pytester, dataset: Path) -> None:
    ids = collect(pytester)
    assert ids == [
        "datasets/swe/task-1/task.toml::task-1",
        "datasets/swe/task-2/task.toml::task-2",
    ]
    assert collect(pytester, ids[1]) == ids[1:]


def test_a_dataset_outside_the_rootdir(pytester: pytest.Pytester, dataset: Path) -> None:
    root = pytester.mkdir("elsewhere")
    away = (f"--rootdir={root}", "-c", pytester.path / "tox.ini")
    assert collect(pytester, *away, dataset) == [
        "task-1/task.toml::task-1",
        "task-2/task.toml::task-2",
    ]
    for words in ("task-1", "task-1/task.toml", "task-1/task.toml::task-1"):
        assert len(collect(pytester, *away, dataset / words)) == 1, words


def test_what_a_task_says_of_itself_selects_it(pytester: pytest.Pytester, dataset: Path) -> None:
    hard = ["datasets/swe/task-2/task.toml::task-2"]
    for selection in (
        ("-m", "harbor(difficulty='hard')"),
        ("-m", "harbor(est_minutes=5)"),
        ("-m", "harbor(tag_web_dev=True)"),
        ("-m", "harbor(steps=3)"),
        ("-k", "web-dev"),
        ("-k", "task-2"),
    ):
        assert collect(pytester, "--strict-markers", *selection) == hard, selection


def test_each_attempt_is_an_item(pytester: pytest.Pytester, dataset: Path) -> None:
    dataset.joinpath("conftest.py").write_text(
        "import pytest\n" + EPISODES + "\n"
        "@pytest.fixture(params=['claude', 'gpt'], scope='session')\n"
        "def harbor_agent(request):\n    return request.param\n"
        "@pytest.fixture(autouse=True)\n"
        "def use(harbor_agent): ...\n"
    )
    of_first = [
        "datasets/swe/task-1/task.toml::task-1[attempt1-claude]",
        "datasets/swe/task-1/task.toml::task-1[attempt1-gpt]",
        "datasets/swe/task-1/task.toml::task-1[attempt2-claude]",
        "datasets/swe/task-1/task.toml::task-1[attempt2-gpt]",
    ]
    ids = collect(pytester, "--harbor-attempts=2")
    assert sorted(ids[:4]) == of_first, "the items of a task stay together"
    assert len(ids) == 8
    assert collect(pytester, "--harbor-attempts=2", of_first[2]) == [of_first[2]]
    assert collect(pytester, "-k", "claude and task-1") == [
        "datasets/swe/task-1/task.toml::task-1[claude]"
    ]


def test_attempts_are_read_from_the_dataset(pytester: pytest.Pytester, dataset: Path) -> None:
    dataset.joinpath("harbor.yaml").write_text("attempts: 2\n")
    write_task(pytester.path / "datasets" / "other" / "alone")
    assert collect(pytester) == [
        "datasets/other/alone/task.toml::alone",
        *(
            f"datasets/swe/{name}/task.toml::{name}[attempt{number}]"
            for name in ("task-1", "task-2")
            for number in (1, 2)
        ),
    ]
    assert len(collect(pytester, "--harbor-attempts=1")) == 3


def test_a_slow_fixture_of_the_users_own_keeps_its_grouping(
    pytester: pytest.Pytester, dataset: Path
) -> None:
    dataset.joinpath("conftest.py").write_text(
        "import pytest\n"
        "@pytest.fixture(params=['big', 'small'], scope='session', autouse=True)\n"
        "def model_server(request): ...\n"
    )
    ids = collect(pytester)
    assert [name.rpartition("::")[2] for name in ids] == [
        "task-1[big]",
        "task-2[big]",
        "task-1[small]",
        "task-2[small]",
    ]


NAMES = [
    *("build", "dist", "venv", "node_modules", "x.egg", ".hidden", "test-x", "pytestmark"),
    *("setup_module", "__test__", "pytest_generate_tests", "Über Task", "My.Task", "my-task"),
    *("run_task", "package", "virtual", "a" * 200),
]


def test_what_the_user_left_out_stays_out(pytester: pytest.Pytester) -> None:
    """Patterns of the user's own and collect_ignore hold for tasks, whatever they are called."""
    pytester.makeini("[pytest]\nnorecursedirs = slow-* .* build other/dist\n")
    for name in ("a/slow-1", "a/build", "a/dist", "other/dist", "other/build", "b/one", "b/venv"):
        write_task(pytester.path / name)
    for folder, wish in (("a", "collect_ignore = ['dist']"), ("b", "collect_ignore_glob = ['*e']")):
        (pytester.path / folder / "conftest.py").write_text(f"{wish}\n")
    names = [nodeid.rpartition("/")[0] for nodeid in collect(pytester)]
    assert names == ["a/build", "b/venv", "other/build"]


def test_any_sensible_name_is_collect(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\n")
    for name in NAMES:
        write_task(pytester.path / "ds" / name)
    (pytester.path / "ds" / "package" / "__init__.py").write_text("raise SystemExit\n")
    (pytester.path / "ds" / "virtual" / "pyvenv.cfg").write_text("")
    expected = sorted(f"ds/{name}/task.toml::{name}" for name in NAMES)
    assert sorted(collect(pytester, "ds")) == expected
    assert sorted(collect(pytester, *expected)) == expected
