"""Digests: what changes them, and what must not."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest
from task_folders import write_files

from pytest_harbor.errors import TaskError
from pytest_harbor.task.digest import environment_digest, part_digests, task_digest

FILES: dict[str, str | bytes | None] = {"a": "one", "b/c": "two", "b/d.sh": "three"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_files(tmp_path / "x", FILES)


@pytest.mark.parametrize("digest", [environment_digest, task_digest])
class TestBoth:
    def test_the_place_does_not_count(self, digest, folder: Path, tmp_path: Path) -> None:
        other = write_files(tmp_path / "elsewhere", dict(reversed(FILES.items())))
        os.utime(other / "a", (0, 0))
        assert digest(other) == digest(folder)

    def test_content_counts(self, digest, folder: Path) -> None:
        before = digest(folder)
        (folder / "a").write_text("two")
        assert digest(folder) != before

    def test_names_count(self, digest, folder: Path) -> None:
        before = digest(folder)
        (folder / "a").rename(folder / "A")
        assert digest(folder) != before

    def test_the_executable_bit_counts(self, digest, folder: Path) -> None:
        (folder / "b/d.sh").chmod(0o644)
        before = digest(folder)
        (folder / "b/d.sh").chmod(0o755)
        assert digest(folder) != before

    def test_where_a_link_points_counts(self, digest, folder: Path) -> None:
        (folder / "link").symlink_to("a")
        before = digest(folder)
        (folder / "link").unlink()
        (folder / "link").symlink_to("b")
        assert digest(folder) != before

    def test_a_link_is_not_its_target(self, digest, folder: Path) -> None:
        (folder / "link").symlink_to("a")
        before = digest(folder)
        (folder / "link").unlink()
        (folder / "link").write_text("a")
        assert digest(folder) != before

    def test_links_in_circles_end(self, digest, folder: Path) -> None:
        (folder / "loop").symlink_to(".")
        (folder / "gone").symlink_to("nowhere")
        assert len(digest(folder)) == 64

    def test_bytes_cannot_wander_from_name_to_content(self, digest, tmp_path: Path) -> None:
        one = write_files(tmp_path / "1", {"ab": "c"})
        two = write_files(tmp_path / "2", {"a": "bc"})
        assert digest(one) != digest(two)

    def test_caches_do_not_count(self, digest, folder: Path) -> None:
        before = digest(folder)
        write_files(
            folder,
            {
                "__pycache__/a.pyc": "x",
                "b/__pycache__/c.cpython-311.pyc": "x",
                ".pytest_cache/v/x": "x",
                "b/.DS_Store": "x",
                ".ruff_cache/x": "x",
            },
        )
        assert digest(folder) == before

    def test_compiled_python_that_is_content_counts(self, digest, folder: Path) -> None:
        before = digest(folder)
        write_files(folder, {"challenge.pyc": "x"})
        assert digest(folder) != before

    def test_a_pipe_is_not_read(self, digest, folder: Path) -> None:
        os.mkfifo(folder / "pipe")
        assert len(digest(folder)) == 64

    def test_what_cannot_be_read(self, digest, tmp_path: Path) -> None:
        with pytest.raises(TaskError, match="gone cannot be read: No such file"):
            digest(tmp_path / "gone")


def test_a_repository_at_the_top_of_a_task_does_not_count(folder: Path) -> None:
    before = task_digest(folder)
    write_files(folder, {".git/HEAD": "ref"})
    assert task_digest(folder) == before


def test_the_parts_tell_which_has_changed(tmp_path: Path) -> None:
    places = ["task.toml", "tests/test.sh", "steps/a/x", "environment/Dockerfile"]
    places += ["environment/user-server/persona.md", "environment/user-server/a/b"]
    write_files(tmp_path, dict.fromkeys(places, "x"))
    before = part_digests(tmp_path)
    assert list(before) == ["environment", "environment/user-server", "steps", "task.toml", "tests"]
    write_files(tmp_path, {"environment/user-server/persona.md": "y"})
    after = part_digests(tmp_path)
    assert {part for part in before if before[part] != after[part]} == {"environment/user-server"}


def test_a_repository_in_a_build_context_does(folder: Path) -> None:
    """A Dockerfile copies it, so an image made from another history is another image."""
    before = environment_digest(folder)
    write_files(folder, {".git/HEAD": "ref"})
    assert environment_digest(folder) != before


def test_other_bits_and_empty_folders_are_what_an_image_holds_and_git_does_not(
    folder: Path,
) -> None:
    """An author who corrects a mode must not get the old image."""
    (folder / "a").chmod(0o600)
    task, environment = task_digest(folder), environment_digest(folder)
    (folder / "a").chmod(0o644)
    assert task_digest(folder) == task
    assert environment_digest(folder) != environment

    environment = environment_digest(folder)
    (folder / "empty").mkdir()
    assert task_digest(folder) == task
    assert environment_digest(folder) != environment

    environment = environment_digest(folder)
    (folder / "b").chmod(0o700)
    assert task_digest(folder) == task
    assert environment_digest(folder) != environment


def test_it_is_sha_256_of_a_settled_form(tmp_path: Path) -> None:
    """Tags of images on users' machines depend on it."""
    write_files(tmp_path, {"Dockerfile": "FROM scratch\n"})
    (tmp_path / "Dockerfile").chmod(0o644)
    content = hashlib.sha256(b"FROM scratch\n").digest()
    settled = b"file 644 10 32\0Dockerfile" + content
    assert environment_digest(tmp_path) == hashlib.sha256(settled).hexdigest()
    settled = b"file 0 10 32\0Dockerfile" + content
    assert task_digest(tmp_path) == hashlib.sha256(settled).hexdigest()
