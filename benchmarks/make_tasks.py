#!/usr/bin/env python3
"""Write the tasks that compare.py runs: tasks/bench-1 to tasks/bench-8.

Each has five steps that cost next to nothing, and a service beside main whose healthcheck comes
with the interval that people write (5 s). What is left to measure is the runner. The same call
always writes the same files; folders of an earlier call are replaced.
"""

import argparse
import shutil
from pathlib import Path

COUNT = 8
STEPS = ("one", "two", "three", "four", "five")

TASK = """\
schema_version = "1.4"
multi_step_reward_strategy = "mean"

[metadata]
difficulty = "easy"
category = "benchmark"
tags = ["benchmark"]

[agent]
timeout_sec = 120.0

[environment]
build_timeout_sec = 300.0
"""

STEP = """
[[steps]]
name = "{step}"
[steps.verifier]
timeout_sec = 60.0
"""

DOCKERFILE = """\
FROM debian:bookworm-slim
WORKDIR /app
RUN echo {task} > name.txt
"""

COMPOSE = """\
services:
  main:
    depends_on:
      side:
        condition: service_healthy
  side:
    image: debian:bookworm-slim
    command: ["sh", "-c", "touch /tmp/ready && exec sleep infinity"]
    healthcheck:
      test: ["CMD", "test", "-f", "/tmp/ready"]
      interval: 5s
      timeout: 5s
      retries: 12
"""

INSTRUCTION = """\
Write the name that stands in `/app/name.txt`, a blank and the word `{step}` to `/app/{step}.txt`.
"""

SOLVE = """\
#!/bin/sh
echo "$(cat /app/name.txt) {step}" > /app/{step}.txt
"""

TEST = """\
#!/bin/sh
if [ "$(cat /app/{step}.txt)" = "{task} {step}" ]; then
    echo 1 > /logs/verifier/reward.txt
else
    echo 0 > /logs/verifier/reward.txt
fi
"""


def files(task):
    """Return a task's files: text by name."""
    found = {
        "task.toml": TASK + "".join(STEP.format(step=step) for step in STEPS),
        "environment/Dockerfile": DOCKERFILE.format(task=task),
        "environment/docker-compose.yaml": COMPOSE,
    }
    for step in STEPS:
        folder = f"steps/{step}"
        found[f"{folder}/instruction.md"] = INSTRUCTION.format(step=step)
        found[f"{folder}/solution/solve.sh"] = SOLVE.format(step=step)
        found[f"{folder}/tests/test.sh"] = TEST.format(task=task, step=step)
    return found


def make(target, count=COUNT):
    """Write the tasks into a folder; return it."""
    for old in target.glob("bench-*"):
        shutil.rmtree(old)
    for number in range(1, count + 1):
        task = f"bench-{number}"
        for name, text in files(task).items():
            path = target / task / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            path.chmod(0o755 if path.suffix == ".sh" else 0o644)
    return target


def main():
    """Write the tasks."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--target", type=Path, default=Path(__file__).parent / "tasks")
    options.add_argument("--count", type=int, default=COUNT)
    args = options.parse_args()
    print(make(args.target, args.count))


if __name__ == "__main__":
    main()
