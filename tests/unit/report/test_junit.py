"""The rewritten junit file: what stands in it, and that it is never made worse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from junit_tools import Case, cases, suite, suite_properties
from sample_job import episode, fault, folder_of, interval, step, unreached, write

from pytest_harbor.episode.outcome import Outcome
from pytest_harbor.episode.result import EpisodeResult, GradeRecord, TurnRecord, Verdict
from pytest_harbor.redaction import Redactor
from pytest_harbor.report.junit import rewrite

T1 = "datasets/swe/t1/task.toml::t1"
T2 = "datasets/swe/t2/task.toml::t2[gpt]"
CLASS = "datasets.swe.t1.task.toml"


def as_pytest_writes(*rows: str, attributes: str = 'tests="9" failures="7"') -> str:
    """A junit file with the counts that pytest gets wrong."""
    return (
        '<?xml version="1.0" encoding="utf-8"?><testsuites name="pytest tests">'
        f'<testsuite name="pytest" errors="0" skipped="0" {attributes} time="1.5">'
        f"{''.join(rows)}</testsuite></testsuites>"
    )


def row(name: str = "t1", inside: str = "", classname: str = CLASS, extra: str = "") -> str:
    return (
        f'<testcase classname="{classname}" name="{name}" time="4.000"{extra}>{inside}</testcase>'
    )


OTHER = row("test_other", '<failure message="m">text</failure>', "tests.test_x")


class Place:
    """A project with a job folder and a junit file."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.job = root / "jobs" / "now"
        self.xml = root / "out.xml"

    def rewrite(
        self, text: str, *results: EpisodeResult, files: Mapping[str, str] | None = None, **options
    ) -> list[Case]:
        for result in results:
            write(self.job, result, files)
        self.xml.write_text(text, encoding="utf-8")
        warning = self.again(*results, **options)
        assert warning is None
        return cases(self.xml)

    def again(self, *results: EpisodeResult, **options) -> str | None:
        episodes = {each.key: each.episode for each in results}
        return rewrite(self.xml, self.job, episodes, root=self.root, **options)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def names(found: Sequence[Case]) -> list[str]:
    return [each.name for each in found]


FIVE = episode(
    T1,
    steps=[
        step("plan", 0, 1.0),
        step("build", 1, 0.5, verdict="xfailed", verdict_reason="reward 0.5 < 1; not deciding"),
        step("ship", 2, 0.0, verdict_reason="reward 0 < 1"),
        unreached("tests", 3, "a gate stopped the episode"),
    ],
    outcome=Outcome.FAILED,
    reward=0.375,
    reward_as_harbor=0.5,
    tokens=1200,
    cost_usd=0.25,
)


def test_a_row_per_task_and_one_per_step_right_after_it(place: Place) -> None:
    subtests = '<failure message="a">a</failure><failure message="b">contains 1 failed subtest'
    found = place.rewrite(as_pytest_writes(OTHER, row(inside=subtests + "</failure>")), FIVE)
    assert names(found) == ["test_other", "t1", "t1[plan]", "t1[build]", "t1[ship]", "t1[tests]"]
    assert {each.classname for each in found[1:]} == {CLASS}
    assert [each.ending for each in found[1:]] == ["failure", None, "skipped", "failure", "skipped"]
    assert [each.kind for each in found if each.ending == "skipped"] == [
        "pytest.xfail",
        "pytest.skip",
    ]
    assert found[3].message == "reward 0.5 < 1; not deciding"
    assert found[5].message == "a gate stopped the episode"


def test_counts_are_those_of_the_testcases(place: Place) -> None:
    place.rewrite(as_pytest_writes(OTHER, row()), FIVE, shown={T1: "failed"})
    assert suite(place.xml).get("tests") == "6"
    assert suite(place.xml).get("failures") == "3"
    assert suite(place.xml).get("skipped") == "2"


def test_totals_of_the_whole_file_are_corrected_only_where_there_are_some(place: Place) -> None:
    text = as_pytest_writes(row()).replace('name="pytest tests"', 'name="x" tests="9"')
    place.rewrite(text, FIVE)
    root = ET.parse(place.xml).getroot()
    assert root.attrib == {"name": "x", "tests": "5"}


def test_properties_of_the_task_are_flat_plain_decimals(place: Place) -> None:
    found = place.rewrite(as_pytest_writes(row()), FIVE)
    assert found[0].properties == {
        "harbor.reward": "0.375",
        "harbor.reward_as_harbor": "0.5",
        "harbor.outcome": "failed",
        "harbor.steps_run": "3",
        "harbor.steps_total": "4",
        "harbor.verifier_exit": "0",
        "harbor.agent": "oracle",
        "harbor.model": "acme/large-1",
        "harbor.cost_usd": "0.25",
        "harbor.tokens": "1200",
    }


@pytest.mark.parametrize(
    ("number", "shown"),
    [(1.0, "1.0"), (0.1 + 0.2, "0.3"), (1e-7, "0.0000001"), (1e20, "1" + "0" * 20), (-2.5, "-2.5")],
)
def test_numbers_have_no_exponent(place: Place, number: float, shown: str) -> None:
    found = place.rewrite(as_pytest_writes(row()), episode(T1, reward=number))
    assert found[0].properties["harbor.reward"] == shown


def test_properties_of_a_step_are_its_own(place: Place) -> None:
    turn = TurnRecord(
        ran=interval(1), ended="exited", input_tokens=100, output_tokens=20, cost_usd=0.5
    )
    result = episode(T1, steps=[step("plan", 0, 0.0, turn=turn), unreached("build", 1)])
    found = place.rewrite(as_pytest_writes(row()), result)
    assert found[1].properties == {
        "harbor.reward": "0.0",
        "harbor.outcome": "failed",
        "harbor.verifier_exit": "0",
        "harbor.cost_usd": "0.5",
        "harbor.tokens": "120",
    }
    assert found[2].properties == {}


def test_properties_of_users_stay_and_ours_are_never_doubled(place: Place) -> None:
    properties = (
        '<properties><property name="mine" value="1"/><property name="harbor.reward" value="7"/>'
        "</properties>"
    )
    found = place.rewrite(as_pytest_writes(row(inside=properties)), episode(T1))
    assert found[0].properties["mine"] == "1"
    assert found[0].properties["harbor.reward"] == "1.0"


def test_times_of_a_task_and_its_steps_add_up_to_the_episode(place: Place) -> None:
    found = place.rewrite(as_pytest_writes(row()), FIVE)
    assert [each.time for each in found] == [4.0, 2.0, 2.0, 2.0, 0.0]
    assert sum(each.time for each in found) == 10.0


def test_a_simple_task_has_one_row_with_all_of_its_time(place: Place) -> None:
    found = place.rewrite(as_pytest_writes(row()), episode(T1, steps=[step("task", implicit=True)]))
    assert names(found) == ["t1"]
    assert found[0].time == 10.0
    assert found[0].ending is None


def test_the_run_is_described_on_the_suite(place: Place) -> None:
    text = as_pytest_writes(
        '<properties><property name="theirs" value="x"/></properties>', row(), row("t2[gpt]")
    ).replace(f'{CLASS}" name="t2', 'datasets.swe.t2.task.toml" name="t2')
    broken = episode(T2, outcome=Outcome.START_FAILED, reward=None, cost_usd=1.5)
    place.rewrite(text, FIVE, broken)
    assert suite_properties(place.xml) == {
        "theirs": "x",
        "harbor.job": "now",
        "harbor.agent": "oracle",
        "harbor.model": "acme/large-1",
        "harbor.episodes": "2",
        "harbor.resolved": "0",
        "harbor.valid": "1",
        "harbor.excluded": "1",
        "harbor.mean_reward_valid": "0.375",
        "harbor.mean_reward_all": "0.1875",
        "harbor.cost_usd": "1.75",
        "harbor.tokens": "1200",
    }


# --- what pytest showed, and what the episode was


PASSED, FAILED = episode(T1), episode(T1, outcome=Outcome.FAILED, reward=0.0)
BROKEN = episode(T1, outcome=Outcome.SANDBOX_DIED, reward=None)
FAILURE = '<failure message="assert 1 == 2">user text</failure>'
ERROR = '<error message="failed on teardown">fixture text</error>'
XFAIL = '<skipped type="pytest.xfail" message="known">known</skipped>'


@pytest.mark.parametrize(
    ("result", "inside", "shown", "ending"),
    [
        (PASSED, "", None, None),
        (PASSED, FAILURE, None, "failure"),  # a user's own assertion
        (PASSED, FAILURE, "passed", None),  # a superseded attempt's subtest
        (PASSED, ERROR, None, "error"),
        (PASSED, XFAIL, None, "skipped"),
        (FAILED, FAILURE, None, "failure"),
        (FAILED, "", None, None),  # a user's test that asserts something else
        (FAILED, "", "failed", "failure"),
        (FAILED, XFAIL, None, "skipped"),
        (FAILED, FAILURE + ERROR, None, "error"),
        (FAILED, ERROR, "error", "error"),
        (FAILED, "", "xfailed", "skipped"),
        (BROKEN, FAILURE, None, "error"),  # it happened during the call
        (BROKEN, ERROR, None, "error"),
        (BROKEN, XFAIL, None, "skipped"),
        (BROKEN, "", "passed", None),
    ],
)
def test_one_ending_that_agrees_with_pytests(
    place: Place, result: EpisodeResult, inside: str, shown: Verdict | None, ending: str | None
) -> None:
    said = {} if shown is None else {T1: shown}
    found = place.rewrite(as_pytest_writes(row(inside=inside)), result, shown=said)
    assert [each.ending for each in found] == [ending]
    once = place.xml.read_bytes()
    assert place.again(result, shown=said) is None
    assert place.xml.read_bytes() == once, "a second time changes nothing"


def test_a_users_assertion_and_a_broken_fixture_keep_their_words(place: Place) -> None:
    [found] = place.rewrite(as_pytest_writes(row(inside=FAILURE)), PASSED)
    assert found.message == "assert 1 == 2"
    assert "user text" in found.text
    [found] = place.rewrite(as_pytest_writes(row(inside=ERROR)), FAILED)
    assert found.message == "failed on teardown"
    assert "fixture text" in found.text
    assert "failed: because of the sample" in found.text


def test_skipped_steps_are_not_taken_for_a_skipped_task(place: Place) -> None:
    skips = '<skipped type="pytest.xfail" message="low"/><skipped type="pytest.skip" message="n"/>'
    low = step("a", 0, 0.5, verdict="xfailed")
    result = episode(T1, steps=[low, unreached("b", 1)])
    found = place.rewrite(as_pytest_writes(row(inside=skips)), result)
    assert [each.ending for each in found] == [None, "skipped", "skipped"]


def test_a_failure_beside_an_error_of_teardown_is_one_testcase(place: Place) -> None:
    text = as_pytest_writes(row(inside=FAILURE), OTHER, row(inside=ERROR))
    found = place.rewrite(text, FAILED)
    assert [(each.name, each.ending) for each in found] == [
        ("t1", "error"),
        ("test_other", "failure"),
    ]


def test_an_unreadable_result_leaves_the_row_with_its_gravest_ending(place: Place) -> None:
    place.xml.write_text(as_pytest_writes(row(inside=FAILURE + ERROR)))
    assert rewrite(place.xml, place.job, {T1: "nothing-there"}, root=place.root) is None
    [found] = cases(place.xml)
    assert found.ending == "error"
    assert found.properties == {}


def test_steps_of_a_killed_run_speak_by_their_own_outcome(place: Place) -> None:
    """Their verdict was never ruled on: result.json is from before the end."""
    result = episode(
        T1,
        steps=[
            step("a", 0, 1.0, verdict="skipped"),
            step("b", 1, 0.0, verdict="skipped", verdict_reason=""),
            step("c", 2, None, verdict="skipped", outcome=None, verdict_reason=""),
            unreached("d", 3, ""),
        ],
        outcome=Outcome.INTERRUPTED,
        reward=None,
        verdict_reason="",
    )
    crash = '<error message="worker gw0 crashed">worker gw0 crashed while running t1</error>'
    found = place.rewrite(as_pytest_writes(row(inside=crash)), result)
    assert [each.ending for each in found] == ["error", None, "failure", "error", "skipped"]
    assert found[0].message.startswith("interrupted: ")
    assert "worker gw0 crashed while running" in found[0].text
    assert "harbor.reward" not in found[0].properties


# --- attachments


FILES = {
    "steps/plan/agent/trajectory.json": "{}",
    "steps/plan/verifier/test-stdout.txt": "ok",
}


def with_files(reward: float = 0.0) -> EpisodeResult:
    turn = TurnRecord(
        ran=interval(1),
        ended="exited",
        trajectory="steps/plan/agent/trajectory.json",
        log="steps/plan/agent/gone.txt",
    )
    grade = GradeRecord(ran=interval(1), log="steps/plan/verifier/test-stdout.txt")
    return episode(
        T1,
        steps=[step("plan", 0, reward, turn=turn, grade=grade)],
        outcome=Outcome.FAILED,
        reward=reward,
    )


def test_files_are_attached_by_their_path_from_the_root_if_they_are_there(place: Place) -> None:
    found = place.rewrite(as_pytest_writes(row()), with_files(), files=FILES)
    folder = f"jobs/now/{folder_of(T1)}"
    transcript = f"[[ATTACHMENT|{folder}/steps/plan/agent/trajectory.json]]"
    output = f"[[ATTACHMENT|{folder}/steps/plan/verifier/test-stdout.txt]]"
    assert found[1].out.splitlines() == [transcript, output]
    assert found[0].out.splitlines() == [
        transcript,
        output,
        f"[[ATTACHMENT|{folder}/result.json]]",
    ]
    assert found[1].properties["harbor.transcript"] == (
        f"{folder}/steps/plan/agent/trajectory.json"
    )


def test_a_job_outside_the_root_has_absolute_paths(place: Place, tmp_path: Path) -> None:
    place.root = tmp_path / "elsewhere"
    found = place.rewrite(as_pytest_writes(row()), episode(T1))
    assert found[0].out == f"[[ATTACHMENT|{tmp_path}/jobs/now/{folder_of(T1)}/result.json]]\n"


def test_captured_output_stays_before_the_attachments(place: Place) -> None:
    inside = "<system-out>printed\nmore</system-out><system-err>warned</system-err>"
    found = place.rewrite(as_pytest_writes(row(inside=inside)), episode(T1))
    assert found[0].out.splitlines()[:2] == ["printed", "more"]
    assert suite(place.xml).findtext("testcase/system-err") == "warned\n"


# --- the file


def test_a_second_time_changes_nothing(place: Place) -> None:
    place.rewrite(as_pytest_writes(OTHER, row(inside=FAILURE)), with_files(), files=FILES)
    once = place.xml.read_bytes()
    assert place.again(with_files()) is None
    assert place.xml.read_bytes() == once


def test_steps_that_have_a_testcase_already_get_no_second_one(place: Place) -> None:
    text = as_pytest_writes(row(), row("t1[plan]", '<failure message="theirs">x</failure>'))
    found = place.rewrite(text, FIVE)
    assert names(found).count("t1[plan]") == 1
    assert next(each for each in found if each.name == "t1[plan]").message == "theirs"


def test_without_episodes_the_file_is_not_touched(place: Place) -> None:
    place.xml.write_text("not even xml")
    assert place.again() is None
    assert place.xml.read_text() == "not even xml"


@pytest.mark.parametrize("text", ["", "<testsuites>", "{}"])
def test_a_file_that_cannot_be_read_stays_and_is_named(place: Place, text: str) -> None:
    place.xml.write_text(text)
    warning = place.again(FIVE)
    assert warning is not None
    assert "out.xml stays as pytest wrote it" in warning
    assert place.xml.read_text() == text
    assert list(place.root.iterdir()) == [place.xml]


def test_a_target_that_is_no_file_is_named(place: Place) -> None:
    place.xml = Path("/dev/null")
    assert "not a file" in (place.again(FIVE) or "")


def test_a_task_without_testcase_is_counted_in_the_warning(place: Place) -> None:
    place.xml.write_text(as_pytest_writes(row()))
    write(place.job, FIVE)
    assert "no testcase for 1 of 2 tasks" in (place.again(FIVE, episode(T2)) or "")
    assert len(cases(place.xml)) == 5


def test_a_link_stays_a_link_and_the_mode_is_as_for_any_file(place: Place) -> None:
    real = place.root / "real.xml"
    place.xml.symlink_to(real)
    place.rewrite(as_pytest_writes(row()), FIVE)
    assert place.xml.is_symlink()
    assert len(cases(real)) == 5
    (place.root / "plain").touch()
    assert real.stat().st_mode == (place.root / "plain").stat().st_mode


def test_rows_are_ordered_by_node_id_in_the_places_they_had(place: Place) -> None:
    second = row("t2[gpt]", classname="datasets.swe.t2.task.toml")
    found = place.rewrite(as_pytest_writes(second, OTHER, row()), FIVE, episode(T2))
    assert names(found) == [
        "t1",
        "t1[plan]",
        "t1[build]",
        "t1[ship]",
        "t1[tests]",
        "test_other",
        "t2[gpt]",
    ]


def test_xunit1_attributes_are_the_steps_too(place: Place) -> None:
    text = as_pytest_writes(row(extra=' file="datasets/swe/t1/task.toml" line="0"'))
    for found in place.rewrite(text, FIVE):
        assert found.attributes["file"] == "datasets/swe/t1/task.toml"
        assert found.attributes["line"] == "0"


def test_a_prefix_is_part_of_the_class(place: Place) -> None:
    text = as_pytest_writes(row(classname=f"nightly.{CLASS}"))
    found = place.rewrite(text, FIVE, prefix="nightly")
    assert len(found) == 5
    assert found[1].classname == f"nightly.{CLASS}"


# --- hostile text


def test_control_characters_are_legal_xml_everywhere(place: Place) -> None:
    bad = "\x00 \x1b[31mred\x1b[0m \ufffe \x85 \x9b end"
    result = episode(
        T1,
        steps=[step(f"a{bad}", 0, 0.0, verdict_reason=bad), step("b", 1, 0.0, verdict_reason=bad)],
        outcome=Outcome.FAILED,
        verdict_reason=bad,
        reward=0.0,
    )
    found = place.rewrite(as_pytest_writes(row()), result, shown={T1: "failed"})
    assert found[1].name == "t1[a#x00 red #xFFFE \x85 #x9B end]"
    assert found[2].message == "#x00 red #xFFFE \x85 #x9B end"


def test_names_that_look_alike_stay_apart(place: Place) -> None:
    result = episode(T1, steps=[step("a", 0), step("\x1b[31ma", 1)])
    found = place.rewrite(as_pytest_writes(row()), result)
    assert names(found) == ["t1", "t1[a]", "t1[1:#x1B[31ma]"]


def test_a_class_name_that_pytest_wrote_illegally_is_made_legal(place: Place) -> None:
    key = "data\x01sets/t/task.toml::t"
    text = as_pytest_writes(row("t", classname="data\x01sets.t.task.toml"))
    found = place.rewrite(text, episode(key))
    assert found[0].classname == "data#x01sets.t.task.toml"
    assert found[0].properties["harbor.reward"] == "1.0"


def test_a_long_reason_is_cut_in_the_attribute_and_whole_in_the_text(place: Place) -> None:
    reason = "x" * 3000 + "\nsecond line"
    result = episode(T1, outcome=Outcome.FAILED, verdict_reason=reason)
    [found] = place.rewrite(as_pytest_writes(row()), result, shown={T1: "failed"})
    assert len(found.message) == 500
    assert reason in found.text


def test_secrets_in_what_pytest_wrote_are_taken_out(place: Place) -> None:
    inside = (
        '<properties><property name="p" value="hunter22"/></properties>'
        '<failure message="hunter22">hunter22</failure><system-out>hunter22</system-out>'
    )
    place.rewrite(as_pytest_writes(row(inside=inside)), PASSED, redactor=Redactor(["hunter22"]))
    assert "hunter22" not in place.xml.read_text()
    assert place.xml.read_text().count("[redacted]") == 4


def test_what_the_verifier_wrote_can_be_kept_out(place: Place) -> None:
    it = fault(Outcome.NO_REWARD, message="no reward; output: CANARY")
    result = episode(
        T1,
        steps=[step("a", 0, None, fault=it, outcome=Outcome.NO_REWARD, verdict="error")],
        outcome=Outcome.NO_REWARD,
        fault=it,
        reward=None,
        verdict_reason="no_reward: CANARY",
    )
    place.rewrite(as_pytest_writes(row()), result)
    place.rewrite(as_pytest_writes(row(inside=ERROR)), result, private_verifier=True)
    assert "CANARY" not in place.xml.read_text()


def test_nothing_known_of_an_error_is_a_number(place: Place) -> None:
    [found] = place.rewrite(as_pytest_writes(row(inside=ERROR)), BROKEN)
    numbers = {"harbor.reward", "harbor.reward_as_harbor", "harbor.cost_usd", "harbor.tokens"}
    assert not numbers & found.properties.keys()
    assert found.properties["harbor.outcome"] == "sandbox_died"
