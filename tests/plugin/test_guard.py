"""No file of a task is ever run or obeyed by pytest on the host, however the task is named.

Every task here is full of Python that leaves a mark and ends the process.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from fake_datasets import EPISODES, collect, run, set_traps, write_task

DATASET_CONFTEST = """
from pathlib import Path

def pytest_addoption(parser):
    parser.addoption("--of-the-dataset", action="store_true")

Path(__file__).with_name("conftest-was-here").touch()
"""


@pytest.fixture
def mark(pytester: pytest.Pytester) -> Path:
    """What is written when the Python of a task is run."""
    return pytester.path / "task-code-was-run"


@pytest.fixture
def project(pytester: pytest.Pytester, mark: Path) -> Path:
    """Datasets with a conftest.py of their own and tasks that must not be run."""
    root = pytester.path / "project"
    swe = root / "datasets" / "swe"
    for folder in (
        swe / "task-1",
        swe / "test-2",
        swe / "build",
        swe / "deep" / "inner",
        root / "datasets" / "other" / "lone",
    ):
        set_traps(write_task(folder), mark)
    (swe / "build" / "__init__.py").write_text((swe / "build" / "conftest.py").read_text())
    write_task(swe / "task-1" / "environment" / "inner")
    (root / "pytest.ini").write_text("[pytest]\n")
    (swe / "conftest.py").write_text(DATASET_CONFTEST)
    (swe / "test_own.py").write_text("def test_of_the_dataset(): pass\n")
    (root / "linked").symlink_to(swe / "task-1")
    (root / "link-into").symlink_to(swe / "task-1" / "tests")
    return root


SWE = "datasets/swe"
T1 = f"{SWE}/task-1/task.toml::task-1"
T2 = f"{SWE}/test-2/task.toml::test-2"
BUILD = f"{SWE}/build/task.toml::build"
INNER = f"{SWE}/deep/inner/task.toml::inner"
LONE = "datasets/other/lone/task.toml::lone"
OWN = f"{SWE}/test_own.py::test_of_the_dataset"
LINKED = "linked/task.toml::linked"
OF_SWE = {T1, T2, BUILD, INNER, OWN}
ALL = {*OF_SWE, LONE}

ACCEPTED: list[tuple[str, list[str], set[str]]] = [
    (".", [], {*ALL, LINKED}),
    (".", ["datasets"], ALL),
    (".", [SWE], OF_SWE),
    (".", [f"{SWE}/"], OF_SWE),
    (".", [SWE, "--of-the-dataset"], OF_SWE),
    (".", [f"{SWE}/task-1"], {T1}),
    (".", [f"{SWE}/task-1/"], {T1}),
    (".", [f"./{SWE}/../swe/task-1"], {T1}),
    (".", [f"{SWE}/task-1", "--of-the-dataset"], {T1}),
    (".", [f"{SWE}/task-1/task.toml"], {T1}),
    (".", [T1], {T1}),
    (".", [T2, "--of-the-dataset"], {T2}),
    (".", [f"{SWE}/test-2"], {T2}),
    (".", [f"{SWE}/build"], {BUILD}),
    (".", [f"{SWE}/deep/inner"], {INNER}),
    (".", [f"{SWE}/deep"], {INNER}),
    (".", [SWE, "datasets/other"], ALL),
    (".", ["datasets/other", T1, T2], {LONE, T1, T2}),
    (".", [f"{SWE}/task-1", f"{SWE}/task-1", "--keep-duplicates"], {T1}),
    (".", ["--pyargs", f"{SWE}/task-1"], {T1}),
    (".", ["linked"], {LINKED}),
    (".", [SWE, "-k", "task-1"], {T1}),
    (".", [SWE, f"--ignore={SWE}/task-1"], OF_SWE - {T1}),
    (".", [SWE, f"--ignore={SWE}/build"], OF_SWE - {BUILD}),
    (".", [SWE, "--ignore-glob=*/b*ld"], OF_SWE - {BUILD}),
    (".", [SWE, f"--deselect={T1}"], OF_SWE - {T1}),
    (".", [SWE, "--doctest-modules", "--import-mode=importlib"], OF_SWE),
    (".", [SWE, "--noconftest"], OF_SWE),
    (".", ["-o", f"testpaths={SWE}/test-2"], {T2}),
    (".", ["-o", "norecursedirs=deep"], {*ALL, LINKED} - {INNER}),
    (SWE, [], OF_SWE),
    (SWE, ["."], OF_SWE),
    (SWE, ["task-1", "test-2"], {T1, T2}),
    (f"{SWE}/task-1", [], {T1}),
    (f"{SWE}/task-1", ["."], {T1}),
    (f"{SWE}/task-1", ["task.toml", "../test-2"], {T1, T2}),
    (f"{SWE}/test-2", ["--of-the-dataset"], {T2}),
    (f"{SWE}/task-1/tests", [".."], {T1}),
    (f"{SWE}/task-1/tests", ["../../build"], {BUILD}),
]


@pytest.mark.parametrize(("where", "arguments", "expected"), ACCEPTED)
def test_a_task_is_collected_and_not_run(
    where: str,
    arguments: list[str],
    expected: set[str],
    pytester: pytest.Pytester,
    project: Path,
    mark: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(project / where)
    assert set(collect(pytester, *arguments)) == expected
    assert not mark.exists()
    touched = (project / SWE / "conftest-was-here").exists()
    assert touched == ("--noconftest" not in arguments and expected != {LINKED})


REFUSED: list[tuple[str, list[str]]] = [
    (".", [f"{SWE}/task-1/tests"]),
    (".", [f"{SWE}/task-1/tests/test_outputs.py"]),
    (".", [f"{SWE}/task-1/tests/test_outputs.py::test_it"]),
    (".", [f"{SWE}/task-1/conftest.py"]),
    (".", [f"{SWE}/task-1/test_task.py"]),
    (".", [f"{SWE}/task-1/steps/plan/tests"]),
    (".", [SWE, f"{SWE}/test-2/environment"]),
    (".", [f"{SWE}/task-1/environment/inner"]),
    (".", ["linked/tests"]),
    (".", ["link-into"]),
    (".", ["link-into/test_outputs.py"]),
    (".", ["-o", f"testpaths={SWE}/task-1/tests"]),
    (".", [f"--confcutdir={SWE}/task-1/tests", f"{SWE}/task-1"]),
    (".", [f"--rootdir={SWE}/task-1", SWE]),
    (f"{SWE}/task-1/tests", []),
    (f"{SWE}/task-1/tests", ["test_outputs.py"]),
    (f"{SWE}/task-1/environment", ["."]),
    ("link-into", []),
]


@pytest.mark.parametrize(("where", "arguments"), REFUSED)
def test_what_is_inside_a_task_is_refused_with_a_remedy(
    where: str,
    arguments: list[str],
    pytester: pytest.Pytester,
    project: Path,
    mark: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(project / where)
    result = run(pytester, *arguments, inside=True)
    assert result.ret == pytest.ExitCode.USAGE_ERROR, result.outlines
    assert not mark.exists()
    result.stderr.re_match_lines([r"ERROR: .*/project/(datasets/swe/(task-1|test-2)|linked)"])
    result.stderr.re_match_lines([r".*(Name the task: pytest|Run: pytest|give a folder)"])


def pytest_in(
    folder: Path, *arguments: str, python: tuple[str, ...] = ("-P",)
) -> subprocess.CompletedProcess[str]:
    """Run pytest as the command ``pytest`` does (pytester adds its folder to the import path)."""
    calm = ("-p", "no:anyio", "-p", "no:hypothesispytest")
    command = (sys.executable, *python, "-m", "pytest", *calm, *arguments)
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_workers_keep_the_promise(project: Path, mark: Path) -> None:
    """Workers parse the same command line again, and start in the same folder."""
    (project / "conftest.py").write_text(EPISODES)
    task = project / SWE / "task-1"
    for module in ("queue.py", "struct.py", "threading.py", "xdist.py", "execnet.py"):
        (task / module).write_text((task / "conftest.py").read_text())
    for where, arguments, expected in (
        (".", [SWE], OF_SWE),
        (".", [f"{SWE}/task-1", f"{SWE}/test-2"], {T1, T2}),
        (f"{SWE}/task-1", [], {T1}),
    ):
        result = pytest_in(project / where, "-n2", "-v", *arguments)
        assert result.returncode == pytest.ExitCode.OK, result.stdout
        ran = {nodeid for nodeid in ALL if f"::{nodeid.partition('::')[2]} " in result.stdout}
        assert ran == expected, result.stdout
        assert not mark.exists()
    assert pytest_in(task / "tests", "-n2").returncode == pytest.ExitCode.USAGE_ERROR
    assert not mark.exists()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pytest.ini", "[pytest]\naddopts = --version\n"),
        ("pytest.toml", "[pytest]\naddopts = ['--version']\n"),
        ("tox.ini", "[pytest]\npython_files = *.py\n"),
        ("pyproject.toml", "[tool.pytest.ini_options]\npython_files = '*.py'\n"),
        ("setup.cfg", "[tool:pytest]\npython_files = *.py\n"),
    ],
)
def test_a_task_may_not_configure_pytest(
    name: str, text: str, pytester: pytest.Pytester, project: Path, mark: Path
) -> None:
    (project / SWE / "task-1" / name).write_text(text)
    result = run(pytester, project / SWE / "task-1", inside=True)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [f"ERROR: *{SWE}/task-1/{name} belongs to the task folder *task-1, which*pytest -c FILE*"]
    )
    assert set(collect(pytester, project / SWE)) == OF_SWE
    own = ("-c", project / "pytest.ini", project / SWE / "task-1")
    assert collect(pytester, *own) == [T1]
    assert not mark.exists()


def test_a_task_is_not_the_root_of_a_run(
    pytester: pytest.Pytester, project: Path, mark: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "pytest.ini").unlink()
    task = project / SWE / "task-1"
    monkeypatch.chdir(task)
    result = run(pytester, inside=True)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*Run: pytest --rootdir={task.parent} {task}"])
    assert collect(pytester, f"--rootdir={task.parent}", task) == ["task-1/task.toml::task-1"]
    assert not mark.exists()


def test_a_working_folder_on_the_import_path_is_refused(
    pytester: pytest.Pytester, project: Path, mark: Path
) -> None:
    inside = pytest_in(project / SWE / "task-1", "--collect-only", python=())
    assert inside.returncode == pytest.ExitCode.USAGE_ERROR
    assert "its modules would be imported in place of others" in inside.stderr
    assert not mark.exists()


def test_dotted_names_do_not_lead_through_a_task(
    pytester: pytest.Pytester, mark: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To find ``a.b.c``, pytest imports ``a.b``."""
    root = pytester.path
    pytester.makeini("[pytest]\n")
    set_traps(write_task(root / "packed" / "task_1"), mark)
    (root / "packed" / "__init__.py").touch()
    (root / "packed" / "task_1" / "__init__.py").write_text("raise SystemExit\n")
    monkeypatch.syspath_prepend(root)
    for name in (
        "packed.task_1",
        "packed.task_1.tests",
        "packed.task_1.tests.test_outputs::test_it",
    ):
        result = run(pytester, "--pyargs", name, inside=True)
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        result.stderr.fnmatch_lines([f"ERROR: {name.partition('::')[0]} leads into the task*"])
    assert collect(pytester, "--pyargs", "packed") == ["packed/task_1/task.toml::task_1"]
    assert not mark.exists()


def test_a_task_that_is_called_like_a_module_is_not_imported(
    pytester: pytest.Pytester, project: Path, mark: Path
) -> None:
    """The folder of a conftest.py goes first on the import path."""
    swe = project / SWE
    for name in ("colorsys", "this_is_nowhere"):
        set_traps(write_task(swe / name), mark)
        (swe / name / "__init__.py").write_text((swe / name / "conftest.py").read_text())
    (swe / "conftest.py").write_text(
        "import sys\n"
        "assert sys.path[0] == __file__.rpartition('/')[0]\n"
        "import colorsys\n"
        "assert colorsys.rgb_to_hls\n"
        "try:\n    import this_is_nowhere.tests\n"
        "except ModuleNotFoundError:\n    pass\n"
        "else:\n    raise AssertionError\n"
    )
    before = list(sys.meta_path)
    for workers in ((), ("-n1",)):
        result = run(pytester, "--collect-only", "-q", *workers, swe / "task-1")
        result.stdout.fnmatch_lines([f"{SWE}/task-1/task.toml::task-1"])
    assert sys.meta_path == before
    assert not mark.exists()


def test_with_nothing_to_look_at_pytest_looks_around(
    pytester: pytest.Pytester, project: Path, mark: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no argument is a path, the ``test*`` folders beside are searched for conftest.py."""
    monkeypatch.chdir(project / SWE)
    for arguments in (("--pyargs", "xml.dom"), ("nowhere",), ("x" * 5000,)):
        run(pytester, "--collect-only", *arguments)
        assert not mark.exists()


def test_a_link_into_a_task_is_skipped_and_said(
    pytester: pytest.Pytester, project: Path, mark: Path
) -> None:
    swe = project / SWE
    (swe / "tests").symlink_to(swe / "task-1" / "tests")
    (swe / "test_link.py").symlink_to(swe / "task-1" / "test_task.py")
    result = run(pytester, "--collect-only", "-q", swe, inside=True)
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(
        ["*HarborWarning: *swe/tests is skipped: it leads into *swe/task-1, which*"]
    )
    result.stdout.fnmatch_lines(["*HarborWarning: *test_link.py is skipped*"])
    assert not mark.exists()


def test_a_task_file_that_is_no_file_still_makes_a_task(
    pytester: pytest.Pytester, project: Path, mark: Path
) -> None:
    """A dangling link or a folder called task.toml does not open a task's Python to pytest."""
    dangling, folder = project / SWE / "dangling", project / SWE / "folder"
    for task in (dangling, folder):
        set_traps(write_task(task), mark)
        (task / "task.toml").unlink()
    (dangling / "task.toml").symlink_to("nowhere")
    (folder / "task.toml").mkdir()
    ids = {f"{SWE}/{task.name}/task.toml::{task.name}" for task in (dangling, folder)}
    assert set(collect(pytester, dangling, folder)) == ids
    assert not mark.exists()


def test_what_an_agent_left_is_never_run(
    pytester: pytest.Pytester, project: Path, mark: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder of an episode holds artifacts of the agent, and lies in the project."""
    jobs = project / "jobs" / "2026-01-02__03-04-05"
    left = jobs / "task-1__0123456" / "artifacts"
    set_traps(left, mark)
    set_traps(jobs / "test-2__0123456" / "steps" / "plan", mark)
    for folder in jobs.iterdir():
        (folder / "result.json").write_text('{"id": "x", "trial_name": "task-1__0123456"}')
    monkeypatch.chdir(project)
    for arguments in ((), ("jobs", SWE), (jobs, SWE)):
        assert set(collect(pytester, *arguments)) - {LONE, LINKED} == OF_SWE
    for argument in (left, left / "test_task.py", jobs / "task-1__0123456"):
        result = run(pytester, argument)
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        result.stderr.fnmatch_lines(["ERROR: * the run folder *: what an agent left is never run*"])
    monkeypatch.chdir(left)
    assert run(pytester).ret == pytest.ExitCode.USAGE_ERROR
    assert not mark.exists()
