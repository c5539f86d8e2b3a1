"""What asks for Harbor says what to install, and nothing else asks for it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pytest_harbor.agents.find import find_agent
from pytest_harbor.bridge import door
from pytest_harbor.errors import RecipeError
from pytest_harbor.recipe import Layer, make_recipe
from pytest_harbor.settings import Recipe

PACKAGE = Path(door.__file__).parents[1]


def asking(name: str = "harbor:oracle") -> Recipe:
    return make_recipe([Layer({"agent.name": name}, {"agent.name": "--harbor-agent"})])


def test_an_older_python_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 11, 7, "final", 0))
    with pytest.raises(RecipeError, match=r"^--harbor-agent: .* need Python 3\.12 .* 3\.11:"):
        find_agent(asking())


def test_a_missing_extra_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 12, 0, "final", 0))
    monkeypatch.setitem(sys.modules, "harbor", None)
    with pytest.raises(RecipeError, match=r"pip install 'pytest-harbor\[harbor\]'"):
        find_agent(asking())


def test_other_agents_do_without_harbor() -> None:
    code = (
        "import sys; sys.modules['harbor'] = None\n"
        "from pytest_harbor.agents.find import find_agent\n"
        "from pytest_harbor.recipe import Layer, make_recipe\n"
        "find_agent(make_recipe([Layer({'agent.name': 'nop'}, {})]))\n"
        "print('pytest_harbor.bridge' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_only_the_bridge_names_harbor() -> None:
    naming = {
        path.parent.name
        for path in PACKAGE.rglob("*.py")
        for line in path.read_text().splitlines()
        if line.strip().startswith(("from harbor.", "from harbor ", "import harbor"))
    }
    assert naming == {"bridge"}
