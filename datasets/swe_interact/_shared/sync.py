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

Each task has a single-turn form, datasets/swe_interact_single/<task>, which is made here as well: the
whole statement as instruction.md, the same tests/, solution/ and image, no steps and no user.
"""

import argparse
import re
import shutil
import sys
from pathlib import Path

SHARED = Path(__file__).resolve().parent
DATASET = SHARED.parent
SINGLE = DATASET.with_name("swe_interact_single")
SINGLE_HEAD = """\
Change the repository at `/app` so that everything below holds. It was written for the user who wants the
change: "you" is that user. Leave the change in the work tree, committed or not.

"""
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


def single_toml(text):
    """Return a task.toml without steps and user. The agent gets the time of step 2."""
    tables = re.split(r"(?m)^(?=\[)", text.partition("[[steps]]")[0])
    without = ("[environment.healthcheck]", "[[environment.mcp_servers]]", "[agent]")
    kept = [table for table in tables[1:] if not table.startswith(without)]
    found = re.search(r'"02_implement"\n\[steps.agent\]\n(timeout_sec = .*\n)', text)
    kept.insert(1, f"[agent]\n{found.group(1)}\n")
    tags = "".join(kept).replace(', "simulated-user"', ', "single-turn"')
    return f'schema_version = "1.4"\nartifacts = []\n\n{tags.rstrip()}\n'


def expected_single(task):
    """Return every file of a task's single-turn form: (content, mode) by name."""
    files = {
        "instruction.md": (SINGLE_HEAD.encode() + (task / "instruction.md").read_bytes(), 0o644),
        "task.toml": (single_toml((task / "task.toml").read_text()).encode(), 0o644),
    }
    # The same image, so that it is built once. Nobody uses repo_exec_server.py in it.
    names = ("environment/Dockerfile", "environment/repo_exec_server.py", "environment/repo")
    for name in (*names, "solution", "tests"):
        source = task / name
        for path in sorted(source.rglob("*")) if source.is_dir() else [source]:
            if path.is_file() and "__pycache__" not in path.parts:
                files[path.relative_to(task).as_posix()] = (path.read_bytes(), mode(path))
    return files


def single_differences(task):
    """Yield the names of files of the single-turn form that are missing, different or left over."""
    files = expected_single(task)
    folder = SINGLE / task.name
    for name, (content, bits) in files.items():
        path = folder / name
        if not path.is_file() or path.read_bytes() != content or mode(path) != bits:
            yield name
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and "__pycache__" not in path.parts and name not in files:
            yield name


def write_single(task):
    """Write the single-turn form anew if it differs; return what differed."""
    names = list(single_differences(task))
    if names:
        shutil.rmtree(SINGLE / task.name, ignore_errors=True)
        for name, (content, bits) in expected_single(task).items():
            path = SINGLE / task.name / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            path.chmod(bits)
    return names


def strangers():
    """Return the single-turn tasks that have no task here."""
    names = {task.name for task in tasks()}
    return sorted(path for path in SINGLE.glob("*/") if path.is_dir() and path.name not in names)


def main():
    """Write or check."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--check", action="store_true", help="only say what differs")
    check = options.parse_args().check
    found = False
    for task in tasks():
        steps = differences(task) if check else write(task)
        for name in [f"{task.name}/{name}" for name in steps]:
            found = True
            print(f"{'differs' if check else 'wrote'}: {name}")
        single = list(single_differences(task)) if check else write_single(task)
        if single:
            found = True
            print(f"{'differs' if check else 'wrote'}: {SINGLE.name}/{task.name}:", *single)
    for folder in strangers():
        found = True
        print(f"{'left over' if check else 'removed'}: {SINGLE.name}/{folder.name}")
        if not check:
            shutil.rmtree(folder)
    return 1 if check and found else 0


if __name__ == "__main__":
    sys.exit(main())
