"""How long pytest needs to collect a big dataset: makes one of five-step tasks and measures.

``python benchmarks/collect.py [TASKS]`` prints wall and CPU seconds and memory of
``pytest --collect-only -qq``. A figure for the notes, not a test: machines differ.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

STEPS = ("01_plan", "02_build", "03_review", "04_polish", "05_handoff")
HEAD = """\
schema_version = "1.3"
multi_step_reward_strategy = "final"

[task]
name = "bench/task-{number:05}"

[metadata]
difficulty = "{difficulty}"
category = "programming"
tags = ["python", "big-dataset"]
estimated-minutes = {minutes}

[environment]
build_timeout_sec = 600.0
cpus = 1
memory_mb = 2048
"""
STEP = """
[[steps]]
name = "{name}"
[steps.agent]
timeout_sec = 900.0
[steps.verifier]
timeout_sec = 300.0
"""


def write_dataset(folder: Path, tasks: int) -> None:
    """Fill a folder with tasks that have all the files that a real one has."""
    (folder / "pytest.ini").write_text("[pytest]\n")
    for number in range(tasks):
        difficulty = ("easy", "medium", "hard")[number % 3]
        head = HEAD.format(number=number, difficulty=difficulty, minutes=number % 90)
        task = folder / "dataset" / f"task-{number:05}"
        for place in ("environment", "tests", *(f"steps/{name}/tests" for name in STEPS)):
            (task / place).mkdir(parents=True)
        (task / "task.toml").write_text(head + "".join(STEP.format(name=name) for name in STEPS))
        (task / "instruction.md").write_text("Do it.\n")
        (task / "tests" / "test_outputs.py").write_text("raise SystemExit('never run this')\n")


def measure(folder: Path, *arguments: str) -> str:
    """Run pytest once and say what it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.monotonic()
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = (sys.executable, "-P", "-m", "pytest", "--collect-only", "-qq", *arguments)
    done = subprocess.run(
        command, cwd=folder, env=env, stdout=subprocess.PIPE, text=True, check=True
    )
    wall = time.monotonic() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    files, items = len(done.stdout.split()) // 2, sum(map(int, done.stdout.split()[1::2]))
    memory = after.ru_maxrss / 1024
    return f"{items} items in {files} files: {wall:.2f} s wall, {cpu:.2f} s CPU, {memory:.0f} MB"


def main() -> None:
    """Make the dataset, collect all of it, then one of its tasks."""
    tasks = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_dataset(folder, tasks)
        os.sync()
        last = f"dataset/task-{tasks - 1:05}"
        print("everything:        ", measure(folder, "dataset"))
        print("again:             ", measure(folder, "dataset"))
        print("by a mark:         ", measure(folder, "-m", "harbor(difficulty='hard')"))
        print("one task by path:  ", measure(folder, last))


if __name__ == "__main__":
    main()
