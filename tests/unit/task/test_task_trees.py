"""What is uploaded of a tree."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from task_folders import write_files

from pytest_harbor.errors import TaskError
from pytest_harbor.task.trees import upload_tree


@pytest.fixture
def tests(tmp_path: Path) -> Path:
    (tmp_path / "task.toml").touch()
    (tmp_path / "tests").mkdir()
    return tmp_path / "tests"


def listed(root: Path, **options: bool) -> list[str]:
    return [file.path.as_posix() for file in upload_tree(root, **options)]  # type: ignore[arg-type]


def test_files_sorted_with_source_and_mode(tests: Path) -> None:
    write_files(tests, {"b.sh": "b", "a/c": "c", "a/a/d": "d"})
    (tests / "b.sh").chmod(0o755)
    (tests / "a/c").chmod(0o640)
    files = upload_tree(tests)
    assert [file.path.as_posix() for file in files] == ["a/a/d", "a/c", "b.sh"]
    assert [oct(file.mode) for file in files][1:] == ["0o640", "0o755"]
    assert files[2].source == tests / "b.sh"


def test_hidden_files_and_caches_are_files_too(tests: Path) -> None:
    write_files(tests, {".env": "", "__pycache__/x.pyc": "", ".git/HEAD": ""})
    assert listed(tests) == [".env", ".git/HEAD", "__pycache__/x.pyc"]


def test_nothing_in_an_empty_tree(tests: Path) -> None:
    assert upload_tree(tests) == ()


def test_names_that_are_not_unicode(tests: Path) -> None:
    name = os.fsdecode(b"caf\xe9")
    (tests / name).write_text("x")
    assert listed(tests) == [name]


class TestLinks:
    def test_a_file_elsewhere_in_the_task(self, tests: Path) -> None:
        write_files(tests.parent, {"shared/lib.sh": "x"})
        (tests / "lib.sh").symlink_to("../shared/lib.sh")
        [file] = upload_tree(tests)
        assert file.path.as_posix() == "lib.sh"
        assert file.source == (tests.parent / "shared/lib.sh").resolve()
        assert not file.source.is_symlink()

    def test_a_folder_elsewhere_in_the_task(self, tests: Path) -> None:
        write_files(tests.parent, {"shared/lib.sh": "x"})
        (tests / "lib").symlink_to("../shared")
        (tests / "again").symlink_to("../shared")
        assert listed(tests) == ["again/lib.sh", "lib/lib.sh"]

    @pytest.mark.parametrize("target", ["..", ".", "../tests"])
    def test_a_circle(self, tests: Path, target: str) -> None:
        (tests / "deep").mkdir()
        (tests / "deep/loop").symlink_to(f"../{target}")
        with pytest.raises(TaskError, match=r"tests/deep/loop.* is a symlink to a folder above it"):
            upload_tree(tests)

    def test_out_of_the_task(self, tests: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
        (tests / "lib").symlink_to(tmp_path_factory.mktemp("other"))
        with pytest.raises(TaskError, match="tests/lib leads out of the task"):
            upload_tree(tests)

    def test_the_tree_itself(self, tests: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
        tests.rmdir()
        tests.symlink_to(tmp_path_factory.mktemp("other"))
        with pytest.raises(TaskError, match="tests leads out of the task"):
            upload_tree(tests)

    def test_a_lone_tree_is_its_own_boundary(self, tmp_path: Path) -> None:
        write_files(tmp_path, {"tree/a": "x", "beside": "y"})
        (tmp_path / "tree/b").symlink_to("../beside")
        with pytest.raises(TaskError, match="leads out of the task"):
            upload_tree(tmp_path / "tree")


def test_neither_file_nor_folder(tests: Path) -> None:
    os.mkfifo(tests / "pipe")
    with pytest.raises(TaskError, match="tests/pipe is neither a file nor a folder"):
        upload_tree(tests)


def test_a_folder_that_cannot_be_listed(tests: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "iterdir", refuse)
    with pytest.raises(TaskError, match="tests cannot be read: Permission denied"):
        upload_tree(tests)


class TestHarborignore:
    def test_patterns_as_in_git(self, tests: Path) -> None:
        write_files(
            tests,
            {
                ".harborignore": "# comment\n*.log\n/build/\n!keep.log\ndoc/**/draft\n",
                "a.log": "",
                "deep/b.log": "",
                "deep/keep.log": "",
                "build/x": "",
                "deep/build/x": "",
                "doc/a/b/draft": "",
                "doc/final": "",
            },
        )
        assert listed(tests) == ["deep/build/x", "deep/keep.log", "doc/final"]

    def test_inherited_downwards_and_overruled_by_the_nearer(self, tests: Path) -> None:
        write_files(
            tests,
            {
                ".harborignore": "*.txt\n",
                "a.txt": "",
                "in/.harborignore": "!b.txt\n/c\n",
                "in/a.txt": "",
                "in/b.txt": "",
                "in/c": "",
                "in/deep/c": "",
                "in/deep/b.txt": "",
                "c": "",
            },
        )
        assert listed(tests) == ["c", "in/b.txt", "in/deep/b.txt", "in/deep/c"]

    def test_what_lies_in_an_excluded_folder_cannot_come_back(self, tests: Path) -> None:
        write_files(tests, {".harborignore": "out/\n!out/keep\n", "out/keep": "", "a": ""})
        assert listed(tests) == ["a"]

    def test_not_applied_where_the_format_knows_none(self, tests: Path) -> None:
        write_files(tests, {".harborignore": "a\n", "a": ""})
        assert listed(tests, harborignore=False) == [".harborignore", "a"]

    def test_an_excluded_link_is_not_followed(self, tests: Path) -> None:
        write_files(tests, {".harborignore": "loop/\nloop\n"})
        (tests / "loop").symlink_to(".")
        assert listed(tests) == []

    def test_a_byte_order_mark_is_no_pattern(self, tests: Path) -> None:
        write_files(tests, {".harborignore": b"\xef\xbb\xbfa\r\nb\r\n", "a": "", "b": ""})
        assert listed(tests) == []

    @pytest.mark.parametrize("data", [b"caf\xe9\n", "a\n".encode("utf-16")])
    def test_another_encoding(self, tests: Path, data: bytes) -> None:
        write_files(tests, {".harborignore": data})
        with pytest.raises(TaskError, match=r"^tests/\.harborignore.*save (the file|it) as UTF-8"):
            upload_tree(tests)

    def test_a_pattern_that_is_none(self, tests: Path) -> None:
        write_files(tests, {".harborignore": "ok\n!\n"})
        with pytest.raises(TaskError, match=r"^tests/\.harborignore: .*; correct the pattern"):
            upload_tree(tests)


FILES = ["a.log", "b.txt", "x/a.log", "x/y/a.log", "x/y/b.txt", "build/a", "x/build/b", "x/y/build"]
PATTERNS = [
    "*.log",
    "/a.log",
    "x/",
    "x/y",
    "**/y/**",
    "build",
    "/build",
    "!a.log",
    "!x/",
    "*",
    "!*/",
    "x/**",
    "x/y/**",
    "!x/y/b.txt",
    "/*",
    "x/*",
    "!y",
    "b.*",
    "[ab].*",
    "?.log",
    "!b*/",
]


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty repository, whose work tree is given by each call."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    folder = tmp_path_factory.mktemp("git")
    subprocess.run(["git", "init", "--quiet", "--bare", folder], check=True)
    return folder


@settings(max_examples=40)
@given(
    top=st.lists(st.sampled_from(PATTERNS), max_size=4),
    deep=st.lists(st.sampled_from(PATTERNS), max_size=3),
)
def test_the_same_as_git(
    top: list[str],
    deep: list[str],
    repository: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Git itself is asked what it would leave out."""
    root = tmp_path_factory.mktemp("tree")
    write_files(root, dict.fromkeys(FILES, ""))
    for folder, patterns in ((root, top), (root / "x", deep)):
        for name in (".harborignore", ".gitignore"):
            (folder / name).write_text("".join(f"{pattern}\n" for pattern in patterns))
    git = ["git", f"--git-dir={repository}", f"--work-tree={root}", "-c", "core.bare=false"]
    answer = subprocess.run(
        [*git, "-c", "core.excludesFile=", "ls-files", "--others", "--exclude-standard"],
        cwd=root,
        check=True,
        capture_output=True,
        text=True,
    )
    kept = {path for path in listed(root) if path in FILES}
    assert kept == set(answer.stdout.split()) & set(FILES)


def test_modes_are_permission_bits_alone(tests: Path) -> None:
    write_files(tests, {"a": ""})
    [file] = upload_tree(tests)
    assert stat.S_IFMT(file.mode) == 0
