"""A folder becomes a Task, or one error that lists what is wrong with it."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pytest
from task_folders import write_files, write_steps, write_task

import pytest_harbor
from pytest_harbor.errors import TaskError
from pytest_harbor.task.load import load_task
from pytest_harbor.task.timeouts import NOT_SET


def refusal(folder: Path) -> str:
    with pytest.raises(TaskError) as caught:
        load_task(folder)
    return str(caught.value)


def warnings(folder: Path) -> str:
    return "\n".join(load_task(folder).warnings)


class TestSingleStep:
    def test_one_implicit_step(self, tmp_path: Path) -> None:
        task = load_task(write_task(tmp_path / "demo"))
        [step] = task.steps
        assert (task.name, task.display_name, task.warnings) == ("demo", "demo", ())
        assert (task.declares_steps, task.reward_strategy) == (False, "mean")
        assert (step.name, step.index, step.implicit) == ("task", 0, True)
        assert step.instruction == "Do it.\n"
        assert step.test_trees == (tmp_path / "demo/tests",)
        assert step.test_script == "test.sh"
        assert (step.workdir, step.has_setup_script, step.solution) == (None, False, None)
        assert step.agent_timeout == step.verifier_timeout == NOT_SET
        assert task.environment_dir == tmp_path / "demo/environment"
        assert task.dockerfile == tmp_path / "demo/environment/Dockerfile"
        assert task.compose_file is None

    def test_an_empty_list_of_steps_is_a_single_step(self, tmp_path: Path) -> None:
        assert not load_task(write_task(tmp_path, "steps = []\n")).declares_steps

    def test_the_packages_name_is_for_display(self, tmp_path: Path) -> None:
        task = load_task(write_task(tmp_path / "demo", "[task]\nname = 'acme/other'\n"))
        assert (task.name, task.display_name) == ("demo", "acme/other")

    def test_root_values_reach_the_step(self, tmp_path: Path) -> None:
        toml = (
            "artifacts = ['/a']\n[agent]\nuser = 1000\n"
            "[verifier]\nuser = 'root'\nenv = {A = '${B}'}\n"
            "[[verifier.collect]]\ncommand = 'x'\n"
        )
        [step] = load_task(write_task(tmp_path, toml)).steps
        assert (step.agent_user, step.verifier_user) == (1000, "root")
        assert step.verifier_env == {"A": "${B}"}
        assert [artifact.source for artifact in step.artifacts] == ["/a"]
        assert [hook.command for hook in step.collect] == ["x"]

    def test_a_relative_path_and_a_link_keep_their_name(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write_task(tmp_path / "demo")
        (tmp_path / "link").symlink_to("demo")
        monkeypatch.chdir(tmp_path)
        assert load_task(Path("demo")).folder == tmp_path / "demo"
        assert load_task(Path("link")).name == "link"
        monkeypatch.chdir(tmp_path / "demo")
        assert load_task(Path()).name == "demo"

    def test_the_public_name(self, tmp_path: Path) -> None:
        assert isinstance(pytest_harbor.load_task(write_task(tmp_path)), pytest_harbor.Task)

    def test_it_cannot_be_changed(self, tmp_path: Path) -> None:
        task = load_task(write_task(tmp_path))
        with pytest.raises(dataclasses.FrozenInstanceError):
            task.name = "other"  # type: ignore[misc]
        with pytest.raises(dataclasses.FrozenInstanceError):
            task.steps[0].instruction = "other"  # type: ignore[misc]

    def test_the_digest_is_computed_when_asked_for(self, tmp_path: Path) -> None:
        task = load_task(write_task(tmp_path))
        (tmp_path / "README.md").write_text("new")
        first = task.digest
        (tmp_path / "README.md").write_text("newer")
        assert task.digest == first
        assert load_task(tmp_path).digest != first


class TestSteps:
    TOML = (
        "multi_step_reward_strategy = 'final'\nartifacts = ['/root-a']\n"
        "[agent]\nuser = 'agent'\n"
        "[verifier]\nuser = 1\nenv = {A = 'task', B = 'task'}\n"
        "[[verifier.collect]]\ncommand = 'of task'\n"
        "[[steps]]\nname = 'one'\nmin_reward = 0.5\nartifacts = ['/step-a']\n"
        "[steps.agent]\nuser = 0\n"
        "[steps.verifier]\nuser = 'v'\nenv = {B = 'step'}\n"
        "[[steps.verifier.collect]]\ncommand = 'of step'\n"
        "[steps.healthcheck]\ncommand = 'true'\n"
        "[[steps]]\nname = 'two'\n"
    )

    def test_the_steps_values_then_the_tasks(self, tmp_path: Path) -> None:
        task = load_task(write_steps(tmp_path, "one", "two", toml=self.TOML))
        one, two = task.steps
        assert (task.declares_steps, task.reward_strategy) == (True, "final")
        assert [(s.name, s.index, s.implicit) for s in task.steps] == [
            ("one", 0, False),
            ("two", 1, False),
        ]
        assert (one.agent_user, two.agent_user) == (0, "agent")
        assert (one.verifier_user, two.verifier_user) == ("v", 1)
        assert one.verifier_env == {"A": "task", "B": "step"}
        assert two.verifier_env == {"A": "task", "B": "task"}
        assert [hook.command for hook in one.collect] == ["of task", "of step"]
        assert [artifact.source for artifact in one.artifacts] == ["/root-a", "/step-a"]
        assert [artifact.source for artifact in two.artifacts] == ["/root-a"]
        assert (one.min_reward, two.min_reward) == (0.5, None)
        assert one.healthcheck is not None
        assert two.healthcheck is None
        assert [step.instruction for step in task.steps] == ["Do one.\n", "Do two.\n"]

    def test_root_tests_first_then_the_steps(self, tmp_path: Path) -> None:
        write_steps(tmp_path, "one", "two", **{"tests/lib.sh": "x", "tests/test.sh": "root"})
        write_files(tmp_path, {"steps/two/tests/test.sh": "own"})
        one, two = load_task(tmp_path).steps
        assert one.test_trees == (tmp_path / "tests", tmp_path / "steps/one/tests")
        assert two.test_trees == (tmp_path / "tests", tmp_path / "steps/two/tests")

    def test_the_roots_script_serves_a_step_without_its_own(self, tmp_path: Path) -> None:
        write_steps(tmp_path, "one", **{"steps/one/tests/test.sh": None, "tests/test.sh": "x"})
        [step] = load_task(tmp_path).steps
        assert step.test_trees == (tmp_path / "tests",)

    def test_solutions(self, tmp_path: Path) -> None:
        files = {
            "solution/solve.sh": "root",
            "steps/own/solution/solve.sh": "own",
            "steps/data/solution/notes.txt": "no script here",
        }
        write_steps(tmp_path, "own", "data", "none", **files)
        own, data, none = load_task(tmp_path).steps
        assert own.solution == tmp_path / "steps/own/solution"
        assert data.solution == none.solution == tmp_path / "solution"

    def test_a_solution_without_a_script_is_still_the_solution(self, tmp_path: Path) -> None:
        """The oracle says what it misses there, with the folder's name."""
        write_steps(tmp_path, "a", "b", **{"solution/x": "", "steps/a/solution/x": ""})
        a, b = load_task(tmp_path).steps
        assert a.solution == tmp_path / "steps/a/solution"
        assert b.solution == tmp_path / "solution"

    def test_an_ignore_file_hides_nothing_in_a_workdir(self, tmp_path: Path) -> None:
        write_steps(tmp_path, "a", **{"steps/a/workdir/.harborignore": "*\n"})
        (tmp_path / "steps/a/workdir/link").symlink_to("/etc/passwd")
        assert "steps/a/workdir/link leads out of the task" in refusal(tmp_path)

    def test_workdir_and_setup(self, tmp_path: Path) -> None:
        files = {"steps/a/workdir/setup.sh": "x", "steps/b/workdir/data": "x"}
        write_steps(tmp_path, "a", "b", "c", **files)
        a, b, c = load_task(tmp_path).steps
        assert (a.workdir, a.has_setup_script) == (tmp_path / "steps/a/workdir", True)
        assert (b.workdir, b.has_setup_script) == (tmp_path / "steps/b/workdir", False)
        assert (c.workdir, c.has_setup_script) == (None, False)

    def test_the_order_is_that_of_the_file(self, tmp_path: Path) -> None:
        task = load_task(write_steps(tmp_path, "z", "a", "m"))
        assert [step.name for step in task.steps] == ["z", "a", "m"]


class TestEnvironment:
    IMAGE = "[environment]\ndocker_image = 'debian'\n"

    def test_a_prebuilt_image_needs_no_folder(self, tmp_path: Path) -> None:
        task = load_task(write_task(tmp_path, self.IMAGE, **{"environment/Dockerfile": None}))
        assert (task.environment_dir, task.dockerfile, task.compose_file) == (None, None, None)

    def test_a_compose_file(self, tmp_path: Path) -> None:
        files = {"environment/docker-compose.yaml": "x", "environment/Dockerfile": None}
        task = load_task(write_task(tmp_path, **files))
        assert task.compose_file == tmp_path / "environment/docker-compose.yaml"
        assert task.dockerfile is None

    def test_of_two_servers_with_one_name_the_last_counts(self, tmp_path: Path) -> None:
        toml = "".join(
            f"[[environment.mcp_servers]]\nname = '{name}'\ntransport = 'sse'\nurl = '{url}'\n"
            for name, url in [("u", "http://1"), ("v", "http://2"), ("u", "http://3")]
        )
        task = load_task(write_task(tmp_path, toml))
        assert [(server.name, server.url) for server in task.mcp_servers] == [
            ("u", "http://3"),
            ("v", "http://2"),
        ]
        assert "'u' more than once" in task.warnings[0]


LONELY = {"environment/Dockerfile": None}


class TestBrokenTasks:
    def test_no_folder(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        assert "is not a folder; name the folder of a task" in refusal(tmp_path / "file")
        assert "is not a folder" in refusal(tmp_path / "gone")

    def test_no_task_toml(self, tmp_path: Path) -> None:
        assert refusal(tmp_path).startswith(f"{tmp_path}/task.toml is missing; a task needs one")

    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"instruction.md": None}, "instruction.md is missing; write there what the agent"),
            ({"instruction.md": ""}, "instruction.md is empty; write what the agent shall do"),
            ({"instruction.md": b"caf\xe9"}, "instruction.md, line 1: byte 0xe9 is not UTF-8"),
            (
                {"instruction.md": None, "Instruction.md": "x"},
                "instruction.md is missing (there is 'Instruction.md'); write",
            ),
            ({"instruction.md": None, "instruction.md/x": ""}, "instruction.md is not a file"),
            ({"tests/test.sh": None}, "tests/test.sh is missing; add the script that grades"),
            ({"tests/test.sh": None, "tests/tests.sh": ""}, "(there is 'tests.sh'); add the"),
            ({"tests/test.sh": None, "tests/test.bat": ""}, "(there is 'test.bat'); add the"),
            ({"tests/test.sh": None, "tests/test.sh/x": ""}, "tests/test.sh is not a file"),
            ({"tests/test.sh": None, "tests": "x"}, "tests is not a folder; make it one"),
            ({"tests/.harborignore": "*.sh\n"}, "tests/test.sh is excluded by a .harborignore"),
            (
                {"solution/solve.sh": "", "solution/.harborignore": "solve.*\n"},
                "solution/solve.sh is excluded by a .harborignore",
            ),
            (LONELY, "environment/Dockerfile is missing; add it, or name a prebuilt image"),
            (LONELY | {"environment/x": ""}, "environment/Dockerfile is missing; add it, or"),
            (LONELY | {"environment/dockerfile": ""}, "(there is 'dockerfile'); add it, or"),
            (LONELY | {"environment": "x"}, "environment is not a folder; make it one"),
            (LONELY | {"environment/Dockerfile/x": ""}, "environment/Dockerfile is not a file"),
        ],
    )
    def test_files(
        self, tmp_path: Path, changes: dict[str, str | bytes | None], words: str
    ) -> None:
        message = refusal(write_task(tmp_path / "demo", **changes))
        assert message.startswith(f"task 'demo' cannot be run ({tmp_path}/demo):\n  ")
        assert words in message
        assert message.count("\n") == 1, "one problem is reported once"

    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"steps/one/instruction.md": None}, "steps/one/instruction.md is missing; write"),
            ({"steps/one/tests/test.sh": None}, "steps/one/tests/test.sh is missing; add the"),
            ({"steps/one/workdir": "x"}, "steps/one/workdir is not a folder"),
            ({"steps/one/workdir/setup.sh/x": ""}, "steps/one/workdir/setup.sh is not a file"),
            ({"steps/one/solution": "x"}, "steps/one/solution is not a folder"),
        ],
    )
    def test_files_of_a_step(self, tmp_path: Path, changes: dict[str, str], words: str) -> None:
        assert words in refusal(write_steps(tmp_path, "one", "two", **changes))

    def test_a_step_without_a_folder(self, tmp_path: Path) -> None:
        write_steps(tmp_path, "01_plan", toml="[[steps]]\nname = '01-plan'\n")
        assert "steps/01-plan is missing (there is '01_plan'); add it with an" in refusal(tmp_path)

    def test_a_step_that_is_a_file(self, tmp_path: Path) -> None:
        write_files(write_task(tmp_path, "[[steps]]\nname = 'one'\n"), {"steps/one": "x"})
        assert "steps/one is not a folder" in refusal(tmp_path)

    def test_all_at_once(self, tmp_path: Path) -> None:
        message = refusal(write_files(tmp_path, {"task.toml": "[[steps]]\nname = 'a'\n", "x": ""}))
        assert "environment/Dockerfile" in message
        assert "steps/a is missing" in message
        write_files(tmp_path, {"steps/a/x": ""})
        assert len(refusal(tmp_path).splitlines()) == 1 + 3

    def test_a_wrong_value_names_the_file(self, tmp_path: Path) -> None:
        message = refusal(write_task(tmp_path, "[environment]\nos = 'mac'\n"))
        head, line = message.splitlines()
        assert head == f"task {tmp_path.name!r} cannot be run ({tmp_path}):"
        assert line.startswith("  task.toml: [environment] os: must be 'linux' or 'windows', is ")

    @pytest.mark.parametrize(
        "path",
        [
            "task.toml",
            "instruction.md",
            "environment",
            "environment/Dockerfile",
            "environment/docker-compose.yaml",
            "tests",
            "tests/test.sh",
            "tests/lib",
            "solution",
            "solution/solve.sh",
        ],
    )
    def test_a_link_out_of_the_task(self, tmp_path: Path, path: str) -> None:
        folder = write_task(tmp_path / "demo", **{"solution/solve.sh": "x"})
        moved = folder / path
        if moved.exists():
            moved.rename(tmp_path / "outside")
        else:
            (tmp_path / "outside").write_text("x")
        moved.symlink_to(tmp_path / "outside")
        assert f"{path} leads out of the task, to {tmp_path}/outside" in refusal(folder)

    @pytest.mark.parametrize(
        "path", ["instruction.md", "steps", "steps/one", "steps/one/workdir/x"]
    )
    def test_a_steps_link_out_of_the_task(self, tmp_path: Path, path: str) -> None:
        files = {"steps/one/workdir/x": "x", "instruction.md": "secret"}
        folder = write_steps(tmp_path / "demo", "one", **files)
        (folder / path).rename(tmp_path / "outside")
        (folder / path).symlink_to(tmp_path / "outside")
        if path == "instruction.md":
            load_task(folder)  # nobody reads it
        else:
            assert "leads out of the task" in refusal(folder)

    def test_a_circle(self, tmp_path: Path) -> None:
        folder = write_task(tmp_path)
        (folder / "tests/loop").symlink_to("../tests")
        assert "tests/loop is a symlink to a folder above it" in refusal(folder)

    def test_an_unreadable_file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        read = Path.read_bytes

        def refuse(path: Path) -> bytes:
            if path.name == "instruction.md":
                raise PermissionError(13, "Permission denied", str(path))
            return read(path)

        monkeypatch.setattr(Path, "read_bytes", refuse)  # tests may run as root
        assert "instruction.md cannot be read: Permission denied" in refusal(write_task(tmp_path))

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
    @pytest.mark.parametrize("path", ["tests", ".", "task.toml", "environment", "instruction.md"])
    def test_what_the_system_does_not_let_us_read(self, tmp_path: Path, path: str) -> None:
        folder = write_task(tmp_path / "demo")
        mode = (folder / path).stat().st_mode
        (folder / path).chmod(0)
        try:
            assert "cannot be read: Permission denied" in refusal(folder)
        finally:
            (folder / path).chmod(mode)


class TestWarnings:
    @pytest.mark.parametrize("name", ["docker-compose.yml", "compose.yaml", "compose.yml"])
    @pytest.mark.parametrize("beside", [True, False])
    def test_a_compose_file_under_another_name(
        self, tmp_path: Path, name: str, beside: bool
    ) -> None:
        folder = write_task(tmp_path, **{f"environment/{name}": "x"})
        if beside:
            write_files(folder, {"environment/docker-compose.yaml": "x"})
        assert f"environment/{name} is not read, only docker-compose.yaml is" in warnings(folder)

    @pytest.mark.parametrize("script", ["tests/test.sh", "solution/solve.sh"])
    def test_windows_line_ends(self, tmp_path: Path, script: str) -> None:
        folder = write_task(tmp_path, **{script: "#!/bin/bash\r\nexit 0\r\n"})
        assert f"{script} has Windows line ends (CRLF)" in warnings(folder)

    def test_a_byte_order_mark(self, tmp_path: Path) -> None:
        folder = write_task(tmp_path, **{"tests/test.sh": b"\xef\xbb\xbf#!/bin/bash\n"})
        assert "tests/test.sh starts with a byte order mark" in warnings(folder)

    def test_windows_line_ends_of_a_setup(self, tmp_path: Path) -> None:
        folder = write_steps(tmp_path, "a", **{"steps/a/workdir/setup.sh": "x\r\n"})
        assert "steps/a/workdir/setup.sh has Windows line ends" in warnings(folder)

    def test_a_shared_script_is_mentioned_once(self, tmp_path: Path) -> None:
        files = {f"steps/{name}/tests/test.sh": None for name in "abc"}
        folder = write_steps(tmp_path, "a", "b", "c", **files, **{"tests/test.sh": "x\r\n"})
        assert len(load_task(folder).warnings) == 1

    def test_a_service_that_nobody_defines(self, tmp_path: Path) -> None:
        toml = (
            "artifacts = [{source = '/a', service = 'ledger'}]\n"
            "[[steps]]\nname = 'a'\n"
            "[[steps.verifier.collect]]\ncommand = 'x'\nservice = 'db'\n"
        )
        folder = write_steps(tmp_path, "a", toml=toml)
        assert "the service 'db', but" in warnings(folder)
        assert "the service 'ledger', but" in warnings(folder)
        write_files(folder, {"environment/docker-compose.yaml": "x"})
        assert warnings(folder) == ""

    def test_a_step_that_is_never_run(self, tmp_path: Path) -> None:
        folder = write_steps(tmp_path, "a", **{"steps/b/instruction.md": "x", "steps/lib/x": ""})
        assert warnings(folder).startswith("steps/b/ is never run; declare it in task.toml")
        assert "lib" not in warnings(folder)

    def test_steps_of_a_task_that_declares_none(self, tmp_path: Path) -> None:
        folder = write_task(tmp_path, **{"steps/b/instruction.md": "x"})
        assert "steps/b/ is never run" in warnings(folder)

    def test_a_link_out_of_the_build_context(self, tmp_path: Path) -> None:
        """The image builder keeps it as a link, so published tasks with one must run."""
        folder = write_task(tmp_path)
        (folder / "environment/zone").symlink_to("/etc/localtime")
        (folder / "environment/here").symlink_to("Dockerfile")
        [warning] = load_task(folder).warnings
        assert warning.startswith("environment/zone ")

    def test_unknown_keys_come_along(self, tmp_path: Path) -> None:
        assert "[agent] timeout_secs" in warnings(write_task(tmp_path, "[agent]\ntimeout_secs=1\n"))


class TestWindowsAndSeparate:
    def test_a_windows_task_loads_with_its_own_script(self, tmp_path: Path) -> None:
        toml = "[environment]\nos = 'Windows'\n"
        files = {"tests/test.sh": None, "tests/test.bat": "exit /b 0\r\n"}
        task = load_task(write_task(tmp_path, toml, **files))
        assert task.steps[0].test_script == "test.bat"
        assert task.warnings == ()

    def test_a_windows_task_does_not_take_a_shell_script(self, tmp_path: Path) -> None:
        message = refusal(write_task(tmp_path, "[environment]\nos = 'windows'\n"))
        assert "tests/test.bat is missing (there is 'test.sh')" in message

    @pytest.mark.parametrize(
        ("toml", "changes"),
        [
            ("[verifier]\nenvironment_mode = 'separate'\n", {"tests/Dockerfile": "FROM x"}),
            ("[verifier]\nenvironment_mode = 'separate'\n", {"tests/docker-compose.yaml": "x"}),
            ("[verifier.environment]\ndocker_image = 'grader'\n", {}),
        ],
    )
    def test_a_verifier_image_may_bring_its_tests(
        self, tmp_path: Path, toml: str, changes: dict[str, str | None]
    ) -> None:
        task = load_task(write_task(tmp_path, toml, **{"tests/test.sh": None}, **changes))
        assert task.steps[0].separate_verifier

    @pytest.mark.parametrize(
        ("toml", "changes"),
        [
            ("", {"tests/Dockerfile": "FROM x"}),
            ("[verifier]\nenvironment_mode = 'separate'\n", {}),
            ("[verifier.environment]\ncpus = 1\n", {}),
        ],
    )
    def test_otherwise_the_script_must_be_there(
        self, tmp_path: Path, toml: str, changes: dict[str, str | None]
    ) -> None:
        folder = write_task(tmp_path, toml, **{"tests/test.sh": None}, **changes)
        assert "tests/test.sh is missing" in refusal(folder)
