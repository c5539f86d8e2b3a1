#!/usr/bin/env python3
"""Copy what all tasks share into each of them.

    sync.py            write the copies
    sync.py --check    write nothing; name each copy that differs and exit 1 if there is one

Every task folder must be complete, because a runner takes it alone; what is the same in all of them
has its one source here, under _shared/. Files with a rule of their own:

    environment/user-server/persona.md          persona_head.md, then the task's instruction.md
    tests/test.sh                               also becomes step 5's canonical_test.sh, plus
                                                diff_metrics.part
    solution/ask_user.py                        goes into the steps that talk to the user
    solution/patches/ (the task's own)          is repeated in steps/02_implement/solution/
    rubric/                                     only for tasks with tests/rubrics.json, which is
                                                repeated in step 5's tests
"""

import argparse
import sys
from pathlib import Path

SHARED = Path(__file__).resolve().parent
DATASET = SHARED.parent
STEP5_TESTS = "steps/05_test_handoff/tests"

# Sources that are not copied as they stand.
PARTS = {
    "environment/user-server/persona_head.md",
    f"{STEP5_TESTS}/diff_metrics.part",
    "solution/ask_user.py",
}
ASKING_STEPS = ("01_plan", "02_implement")
ROOTS = ("environment", "solution", "steps", "tests")
RUBRIC = "tests/rubrics.json"


def tasks():
    """Return the dataset's task folders."""
    return sorted(path.parent for path in DATASET.glob("*/task.toml"))


def shared_files():
    """Return the shared files by their place in a task: (content, mode)."""
    files = {}
    for root in ROOTS:
        for source in sorted((SHARED / root).rglob("*")):
            name = source.relative_to(SHARED).as_posix()
            if source.is_file() and "__pycache__" not in source.parts and name not in PARTS:
                files[name] = (source.read_bytes(), mode(source))
    canonical, executable = files["tests/test.sh"]
    metrics = (SHARED / STEP5_TESTS / "diff_metrics.part").read_bytes()
    files[f"{STEP5_TESTS}/canonical_test.sh"] = (canonical + metrics, executable)
    client = SHARED / "solution/ask_user.py"
    for step in ASKING_STEPS:
        files[f"steps/{step}/solution/ask_user.py"] = (client.read_bytes(), mode(client))
    return files


def mode(path):
    """Return 0o755 for an executable file, else 0o644: what git can keep."""
    return 0o755 if path.stat().st_mode & 0o100 else 0o644


def expected(task):
    """Return every shared or derived file of a task: (content, mode) by name."""
    files = shared_files()
    head = (SHARED / "environment/user-server/persona_head.md").read_bytes()
    statement = (task / "instruction.md").read_bytes()
    files["environment/user-server/persona.md"] = (head + statement, 0o644)
    for patch in sorted((task / "solution/patches").glob("*.patch")):
        files[f"steps/02_implement/solution/patches/{patch.name}"] = (patch.read_bytes(), 0o644)
    if (task / RUBRIC).is_file():
        for source in sorted((SHARED / "rubric/tests").glob("*.py")):
            files[f"tests/{source.name}"] = (source.read_bytes(), mode(source))
        files[f"{STEP5_TESTS}/rubrics.json"] = ((task / RUBRIC).read_bytes(), 0o644)
    return files


def differences(task):
    """Yield the names of copies that are missing, different or left over."""
    files = expected(task)
    for name, (content, bits) in files.items():
        path = task / name
        if not path.is_file() or path.read_bytes() != content or mode(path) != bits:
            yield name
    for path in (task / "steps/02_implement/solution/patches").glob("*"):
        name = path.relative_to(task).as_posix()
        if name not in files:
            yield name


def write(task):
    """Write the copies that differ; return their names."""
    files = expected(task)
    names = list(differences(task))
    for name in names:
        path = task / name
        if name not in files:
            path.unlink()
            continue
        content, bits = files[name]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(bits)
    return names


def main():
    """Write or check."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--check", action="store_true", help="only say what differs")
    check = options.parse_args().check
    found = False
    for task in tasks():
        for name in differences(task) if check else write(task):
            found = True
            print(f"{'differs' if check else 'wrote'}: {task.name}/{name}")
    return 1 if check and found else 0


if __name__ == "__main__":
    sys.exit(main())
