"""What a scripted model does to solve a SWE-Interact task, for whatever CLI asks it.

It does what the reference solution does, call by call: asks the user, applies patches, commits.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Rule = dict[str, Any]

GIT = "git config user.name >/dev/null || git config user.name Dev; " + (
    "git config user.email >/dev/null || git config user.email dev@example.com; "
)


def rules_for(task: Path) -> dict[str, Any]:
    """A script for the model server ``policy``, of all five steps."""
    steps = (_plan(task), _implement(task), _lines(task, 3), _tests(task), _lines(task, 5))
    rules = [
        {"when": {"user": f"Step {number} of 5", "turn": turn}, **rule}
        for number, step in enumerate(steps, 1)
        for turn, rule in enumerate([*step, {"think": "That was all.", "say": "Done."}], 1)
    ]
    return {"model": "scripted-1", "rules": rules}


def calls_of_the_user(task: Path) -> list[int]:
    """How often each step asks."""
    steps = (_plan(task), _implement(task), (), (), ())
    return [sum("call" in rule for rule in step) for step in steps]


def ask(question: str) -> Rule:
    return {
        "say": "I ask the user.",
        "call": {"tool": "ask_*user", "arguments": {"question": question}},
    }


def _plan(task: Path) -> list[Rule]:
    plan = (task / "steps/01_plan/solution/plan.md").read_text()
    return [
        {"think": "I do not know yet what is wanted.", **ask("Hi! What would you like changed?")},
        ask("What matters most to you about it?"),
        ask(f"Here is my plan, does it sound right?\n\n{plan}"),
        {"shell": f"{_decoded(plan)} >/tmp/plan.md"},
    ]


def _implement(task: Path) -> list[Rule]:
    patches = sorted((task / "steps/02_implement/solution/patches").glob("*.patch"))
    base = {"shell": f"cd /app && {GIT}git rev-parse HEAD >/tmp/base_commit.txt"}
    return [base, *(rule for patch in patches for rule in _pass(patch.read_text()))]


def _pass(patch: str) -> Iterator[Rule]:
    found = re.search(r"^Subject: (.*)$", patch, re.MULTILINE)
    assert found is not None
    subject = found[1]
    yield {"shell": f"{_applied(patch)}git commit -qm {_quoted(subject)}"}
    yield ask(f"{subject}. It is committed, can you review it?")


def _tests(task: Path) -> list[Rule]:
    folder = task / "steps/04_write_tests/solution"
    suite = "\n".join((folder / "run_suite.sh").read_text().splitlines()[1:])
    patch = _applied((folder / "tests.patch").read_text())
    return [
        {"shell": patch},
        {"shell": f"({suite}) && git commit -qm 'Test what was asked for'"},
    ]


def _lines(task: Path, step: int) -> list[Rule]:
    """The lines that an instruction gives."""
    (instruction,) = task.glob(f"steps/0{step}_*/instruction.md")
    found = re.search(r"```bash\n(.*?)```", instruction.read_text(), re.DOTALL)
    assert found is not None
    return [{"shell": found[1]}]


def _applied(patch: str) -> str:
    refresh = "set -e; cd /app; git update-index -q --refresh || true\n"
    return f"{refresh}{_decoded(patch)} | git apply --index -\n"


def _decoded(text: str) -> str:
    """A command that prints a text; gemini-cli refuses one with backticks in it."""
    return f"echo {b64encode(text.encode()).decode()} | base64 -d"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
