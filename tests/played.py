"""Real pytest runs that play results as the plugin does: a subtest per step, then the verdict.

The reports' tests use them to get junit files as pytest itself writes them, without a task having
to run.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from sample_job import write

from pytest_harbor.episode.result import EpisodeResult
from pytest_harbor.report.junit import rewrite

_TESTS = """
import json, os, pathlib, pytest

RESULTS = json.loads(pathlib.Path(__file__).with_name("results.json").read_text())

@pytest.mark.parametrize("name", sorted(RESULTS))
def test_task(name, subtests, request):
    result = RESULTS[name]
    print("printed by", name)
    for step in result["steps"]:
        if not step["implicit"]:
            with subtests.test(msg=step["name"]):
                play(step["verdict"], step["verdict_reason"])
    if result["outcome"] == "interrupted":
        os._exit(3)
    play(result["verdict"], result["verdict_reason"])

def play(verdict, reason):
    if verdict in ("failed", "error"):
        pytest.fail(reason, pytrace=False)
    if verdict == "xfailed":
        pytest.xfail(reason)
    if verdict == "skipped":
        pytest.skip(reason)

def test_of_someone_else(record_property):
    pass
"""


def key_of(name: str) -> str:
    """The node id under which a result is played."""
    return f"test_tasks.py::test_task[{name}]"


def play(
    pytester: pytest.Pytester,
    results: Sequence[EpisodeResult],
    *args: str,
    raw: bool = False,
    files: Mapping[str, str] | None = None,
    **options: object,
) -> Path:
    """Run pytest with ``--junitxml``, then rewrite the file; returns its path."""
    job = pytester.path / "jobs" / "now"
    for result in results:
        write(job, result, files)
    names = {each.key.partition("[")[2][:-1]: each.plain() for each in results}
    (pytester.path / "results.json").write_text(json.dumps(names))
    (pytester.path / "test_tasks.py").write_text(_TESTS)
    xml = pytester.path / "out.xml"
    pytester.runpytest_subprocess("-p", "no:harbor", f"--junitxml={xml}", *args)
    if not raw:
        episodes = {each.key: each.episode for each in results}
        assert rewrite(xml, job, episodes, root=pytester.path, **options) is None  # type: ignore[arg-type]
    return xml
