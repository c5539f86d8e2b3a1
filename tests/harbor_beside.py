"""Harbor itself, in its own environment beside ours, to ask what it makes of our files."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

PYTHON = Path.home() / ".cache/pytest-harbor/harbor-venv/bin/python"

needs_harbor = pytest.mark.skipif(
    not PYTHON.exists(), reason=f"Harbor is not installed beside us ({PYTHON} is missing)"
)


def ask_harbor(code: str, given: object) -> Any:
    """Run some lines in Harbor's Python; ``given`` is there, ``answer`` comes back."""
    program = f"import json, sys\ngiven = json.load(sys.stdin)\n{code}\nprint(json.dumps(answer))"
    done = subprocess.run(
        [PYTHON, "-c", program],
        input=json.dumps(given),
        text=True,
        capture_output=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])
