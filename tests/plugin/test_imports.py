"""Collection is cheap: under ``-n 16`` every import is paid seventeen times."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest
from fake_datasets import STEPS_TOML, run, write_task

import pytest_harbor

HEAVY = {
    *("docker", "mcp", "pydantic", "pydantic_core", "jinja2", "yaml", "requests", "urllib3"),
    *("httpx", "httpx2", "anyio", "starlette", "uvicorn", "filelock", "pathspec"),
}
PACKAGE = Path(pytest_harbor.__file__).parent


def test_the_plugin_needs_only_pytest() -> None:
    code = (
        "import sys, pytest, pluggy; before = {m.partition('.')[0] for m in sys.modules}\n"
        "import pytest_harbor.plugin\n"
        "after = {m.partition('.')[0] for m in sys.modules}\n"
        "print(*sorted(after - before - sys.stdlib_module_names))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["pytest_harbor"]


@pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["serial", "n2"])
def test_collecting_imports_nothing_heavy(
    workers: tuple[str, ...], pytester: pytest.Pytester
) -> None:
    pytester.makeini("[pytest]\n")
    pytester.makeconftest(
        "import json, os, sys\n"
        "def pytest_unconfigure():\n"
        "    name = os.environ.get('PYTEST_XDIST_WORKER', 'main')\n"
        "    with open(f'{name}.json', 'w') as file:\n"
        "        json.dump(sorted(sys.modules), file)\n"
    )
    write_task(pytester.path / "ds" / "one", STEPS_TOML)
    write_task(pytester.path / "ds" / "broken", "[agent")
    run(pytester, "-k", "nothing-of-the-kind", "-p", "no:terminal", *workers, inside=False)
    for name in ("gw0", "gw1") if workers else ("main",):
        loaded = json.loads((pytester.path / f"{name}.json").read_text())
        assert not HEAVY & {module.partition(".")[0] for module in loaded}
        assert "pytest_harbor.task.outline" in loaded


def test_nothing_private_of_pytest_is_imported() -> None:
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            assert not any(name.split(".")[0] == "_pytest" for name in names), path
