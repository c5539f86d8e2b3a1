"""B104: names that are legal on disk give node ids that can be pasted back, or an error."""

from __future__ import annotations

import pytest
from fake_datasets import EPISODES, collect, run, write_task

PASTED = ("Plan", "plan", "a b", "caf\u00e9", "cafe\u0301", "100%", "-rf", "a:b", "'quoted' \"so\"")
REFUSED = ("a::b", "a[1]", "x]", "back\\slash", "tab\tbed")


def test_b104_every_item_has_an_id_of_its_own(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\n")
    pytester.makeconftest(EPISODES)
    for name in (*PASTED, *REFUSED):
        write_task(pytester.path / "ds" / name)
    ids = collect(pytester, "ds")
    assert len(set(ids)) == len(PASTED) + len(REFUSED)
    expected = sorted(f"ds/{name}/task.toml::{name}" for name in PASTED)
    assert sorted(collect(pytester, *expected)) == expected
    result = run(pytester, "ds", "-n2")
    result.assert_outcomes(passed=len(PASTED), errors=len(REFUSED))
    result.stdout.fnmatch_lines(["*Rename the folder*"])


def test_b104_steps_may_be_called_what_a_folder_may(pytester: pytest.Pytester) -> None:
    """Names of steps are no part of node ids; as subtests they are shown as they are."""
    pytester.makeini("[pytest]\n")
    pytester.makeconftest(EPISODES)
    names = ["a b", "a[1]", "\u00e9t\u00e9", "100%"]
    toml = "".join(f"[[steps]]\nname = '{name}'\n" for name in names)
    steps = [{"name": name, "verdict": "passed"} for name in names]
    write_task(pytester.path / "ds" / "task", toml, steps=steps)
    result = run(pytester, "-v", "-n1")
    for name in names:
        assert f"SUBPASSED[{name}]" in result.stdout.str()
    nodeid = "ds/task/task.toml::task"
    assert collect(pytester, f"{nodeid}::a b") == [nodeid]
