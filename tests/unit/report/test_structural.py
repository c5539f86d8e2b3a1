"""Why a handed-in thing of the wrong shape was scored zero."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from sample_job import episode, interval, step, write

from pytest_harbor.episode.outcome import Outcome
from pytest_harbor.episode.result import EpisodeResult, GradeRecord
from pytest_harbor.report.episodes import without_verifier_output
from pytest_harbor.report.structural import StructuralZero, find_structural

AT = "steps/05_test_handoff/verifier"
DIRTY = {"reward": 0.0, "code": "dirty_tree", "error": "tracked files have uncommitted changes"}


def graded(reward: float | None = 0.0, outcome: Outcome = Outcome.FAILED, **changes: Any):
    grade = GradeRecord(ran=interval(0.1), log=f"{AT}/test-stdout.txt")
    steps = [step("01_plan", 0), step("05_test_handoff", 1, reward, grade=grade)]
    return episode(steps=steps, outcome=outcome, reward=reward, **changes)


def found(tmp_path: Path, result: EpisodeResult, **files: Any) -> StructuralZero | None:
    texts = {
        f"{AT}/{name}.json": text if isinstance(text, str) else json.dumps(text)
        for name, text in files.items()
    }
    return find_structural(result, write(tmp_path, result, texts))


def test_the_code_and_the_words_are_read(tmp_path: Path) -> None:
    zero = found(tmp_path, graded(), structural=DIRTY)
    assert zero == StructuralZero("dirty_tree", "tracked files have uncommitted changes")


def test_an_error_beside_the_reward_is_one_too(tmp_path: Path) -> None:
    zero = found(tmp_path, graded(), reward={"reward": 0.0, "error": "HEAD has no parent"})
    assert zero == StructuralZero("HEAD has no parent", "HEAD has no parent")


def test_a_plain_zero_is_none(tmp_path: Path) -> None:
    assert found(tmp_path, graded(), reward={"reward": 0.0, "tests": 0}) is None


def test_what_passed_is_none(tmp_path: Path) -> None:
    """Also under a pass rule that forgives the last step."""
    assert found(tmp_path, graded(1.0, Outcome.PASSED), structural=DIRTY) is None
    assert found(tmp_path, graded(0.0, Outcome.PASSED), structural=DIRTY) is None


def test_a_reward_above_zero_is_none(tmp_path: Path) -> None:
    assert found(tmp_path, graded(0.5), structural=DIRTY) is None
    assert found(tmp_path, graded(), structural={**DIRTY, "reward": 0.5}) is None


def test_what_was_not_graded_is_none(tmp_path: Path) -> None:
    assert found(tmp_path, graded(0.0, Outcome.USER_DEGRADED), structural=DIRTY) is None


def test_an_earlier_step_does_not_speak_for_the_last(tmp_path: Path) -> None:
    grade = GradeRecord(ran=interval(0.1), log=f"{AT}/test-stdout.txt")
    last = GradeRecord(ran=interval(0.1), log="steps/last/verifier/test-stdout.txt")
    steps = [step("05_test_handoff", 0, 0.0, grade=grade), step("last", 1, 0.0, grade=last)]
    result = episode(steps=steps, outcome=Outcome.FAILED, reward=0.0)
    assert found(tmp_path, result, structural=DIRTY) is None


def test_a_private_verifier_stays_private(tmp_path: Path) -> None:
    result = without_verifier_output(graded())
    assert found(tmp_path, result, structural=DIRTY) is None


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[]", "3", "null", "{}", '{"code": "x"}', '{"error": 3}'),
        "[" * 60_000,
        json.dumps(DIRTY) + " " * 70_000,
    ],
)
def test_what_cannot_be_read_is_none(tmp_path: Path, text: str) -> None:
    assert found(tmp_path, graded(), structural=text) is None


def test_a_long_or_hostile_reason_is_cut_and_made_visible(tmp_path: Path) -> None:
    zero = found(tmp_path, graded(), structural={"error": "\x1b[31m" + "a\x00b" * 400 + "\nmore"})
    assert zero is not None
    assert (len(zero.code), len(zero.text)) == (60, 300)
    assert "\x1b" not in zero.text
    assert "\x00" not in zero.text


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    secret = tmp_path / "elsewhere.json"
    secret.write_text(json.dumps(DIRTY))
    result = graded()
    folder = write(tmp_path, result, {f"{AT}/test-stdout.txt": ""})
    (folder / AT / "structural.json").symlink_to(secret)
    assert find_structural(result, folder) is None
