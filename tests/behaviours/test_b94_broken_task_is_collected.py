"""B94: a task whose task.toml cannot be read is an item like any other, in its own name."""

from __future__ import annotations

import pytest
from fake_datasets import TASK_TOML, collect, run, write_task

BROKEN = {
    "syntax": b"[agent",
    "latin": b'name = "\xe9"\n',
    "utf-16": TASK_TOML.encode("utf-16"),
    "empty": b"",
    "nonsense": b"steps = 5\nmetadata = 3\n",
}


def test_b94_it_is_visible_and_the_others_run(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\n")
    dataset = pytester.path / "ds"
    for name, data in {**BROKEN, "with-bom": TASK_TOML.encode("utf-8-sig")}.items():
        (write_task(dataset / name) / "task.toml").write_bytes(data)
    (write_task(dataset / "gone") / "task.toml").unlink()
    (dataset / "gone" / "task.toml").symlink_to("nowhere")
    write_task(dataset / "good")
    names = sorted([*BROKEN, "with-bom", "gone", "good"])
    expected = [f"ds/{name}/task.toml::{name}" for name in names]
    for workers in ((), ("-n2",)):
        assert collect(pytester, *workers) == expected
    easy = [f"ds/{name}/task.toml::{name}" for name in ("good", "with-bom")]
    assert collect(pytester, "-m", "harbor(difficulty='easy')") == easy

    pytester.makeconftest(
        "import pytest\n"
        "@pytest.fixture\n"
        "def harbor_episode(request):\n"
        "    error = request.node.task.outline.error\n"
        "    if error:\n        pytest.fail(error, pytrace=False)\n"
        "    pytest.skip('fine')\n"
    )
    result = run(pytester)
    result.assert_outcomes(errors=4, skipped=4)
    result.stdout.fnmatch_lines(["*syntax/task.toml, line 1, column 7*"])
