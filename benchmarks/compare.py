#!/usr/bin/env python3
"""Run the same tasks through Harbor and through pytest, in turns, and compare time and CPU.

    compare.py --rounds 3            both, in alternation
    compare.py --only pytest         one of them

Each runner gets one run first that does not count, so that images are built. Then every round
runs both. Wall time is the command's. CPU time is given twice: `machine` is all that the machine's
processors did meanwhile (from /proc/stat), which includes the Docker engine, its shims and the
containers, and is honest on an otherwise idle machine only; `own` is what the command and its
descendants used. Every run must give every task the reward 1.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import make_tasks

HERE = Path(__file__).resolve().parent
HARBOR = "harbor==0.26.0"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pytest-harbor"
BUSY_LIMIT = 0.10  # more than this and the machine is not idle
FIGURES = ("wall", "machine", "own")


def busy_seconds():
    """Return the seconds that all processors together have worked since boot."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    user, nice, system, _idle, _iowait, irq, softirq = map(int, fields[:7])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def idle_load(seconds=3.0):
    """Return which part of the machine is at work already."""
    before = busy_seconds()
    time.sleep(seconds)
    return (busy_seconds() - before) / seconds / (os.cpu_count() or 1)


def measure(command, environment, log):
    """Run a command; return wall, machine and own seconds, and its exit status."""
    busy, start = busy_seconds(), time.monotonic()
    with log.open("wb") as output:
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=output)
        _, status, usage = os.wait4(process.pid, 0)
    figures = {
        "wall": time.monotonic() - start,
        "machine": busy_seconds() - busy,
        "own": usage.ru_utime + usage.ru_stime,
    }
    process.returncode = os.waitstatus_to_exitcode(status)
    return figures, process.returncode


def rewards(jobs):
    """Return each task's reward, from the result files; both runners write the same keys."""
    found = {}
    for path in sorted(jobs.glob("*/*/result.json")):
        result = json.loads(path.read_text())
        given = (result.get("verifier_result") or {}).get("rewards") or {}
        found[path.parent.name.split("__")[0]] = given.get("reward")
    return found


def find_python():
    """Return a Python that Harbor runs on (3.12 or newer)."""
    candidates = [sys.executable, "python3.12", "python3.13"]
    candidates += sorted(str(p) for p in Path.home().glob(".pyenv/versions/3.1[23]*/bin/python"))
    for candidate in candidates:
        check = [candidate, "-c", "import sys; sys.exit(sys.version_info < (3, 12))"]
        try:
            if subprocess.run(check, check=False, capture_output=True).returncode == 0:
                return candidate
        except OSError:
            continue
    sys.exit("compare: Harbor needs Python 3.12 or newer; name one with --python")


def pytest_python():
    """Return the Python of the checkout's venv, or the one that runs this."""
    own = HERE.parent / ".venv/bin/python"
    return str(own) if own.exists() else sys.executable


def harbor_program(venv, python):
    """Return the harbor command of a venv, which is made if it is not there."""
    program = venv / "bin/harbor"
    if not program.exists():
        print(f"making {venv} with {HARBOR}", flush=True)
        subprocess.run([python or find_python(), "-m", "venv", venv], check=True)
        subprocess.run([venv / "bin/pip", "install", "--quiet", HARBOR], check=True)
    return program


def commands(args, tasks):
    """Return by runner's name a function from a jobs folder to its command."""
    width = str(args.n)
    found = {}
    if args.only != "pytest":
        program = harbor_program(args.harbor_venv, args.python)
        found["harbor"] = lambda jobs: [
            program, "run", "-p", tasks, "-a", "oracle", "-n", width, "-y", "-o", jobs,
        ]  # fmt: skip
    if args.only != "harbor":
        found["pytest"] = lambda jobs: [
            args.pytest_python, "-m", "pytest", tasks, "-n", width, "-q", "-p", "no:cacheprovider",
            "--harbor-agent", "oracle", "--harbor-jobs-dir", jobs,
        ]  # fmt: skip
    return found


def run_once(name, command, tasks, folder, label):
    """Run one runner once; return its figures, or end with its output if a reward is not 1."""
    jobs, log = folder / f"{name}-{label}", folder / f"{name}-{label}.log"
    environment = os.environ | {"HARBOR_TELEMETRY": "0"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # both would compile their modules each time
    figures, status = measure([str(word) for word in command(jobs)], environment, log)
    got = rewards(jobs)
    wanted = {path.name: 1.0 for path in tasks.iterdir()}
    if got != wanted:
        print(log.read_text(errors="replace")[-4000:])
        sys.exit(f"compare: {name} exited with {status}; rewards {got}, all should be 1")
    shown = "  ".join(f"{key} {figures[key]:6.1f}" for key in FIGURES)
    print(f"{label:>8}  {name:<7} {shown}", flush=True)
    return figures


def summary(runs):
    """Return the medians and, with both runners there, how many times Harbor's are ours."""
    medians = {
        name: {key: round(statistics.median(run[key] for run in done), 2) for key in FIGURES}
        for name, done in runs.items()
    }
    document = {"runs": runs, "medians": medians}
    if len(medians) == 2:
        pairs = {key: (medians["harbor"][key], medians["pytest"][key]) for key in FIGURES}
        document["ratio"] = {key: round(theirs / ours, 1) for key, (theirs, ours) in pairs.items()}
    return document


def parse():
    """Read the command line."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--only", choices=("harbor", "pytest"))
    options.add_argument("-n", type=int, default=2, help="episodes at a time (2)")
    options.add_argument("--count", type=int, default=make_tasks.COUNT, help="tasks (8)")
    options.add_argument("--harbor-venv", type=Path, default=CACHE / "harbor-venv")
    options.add_argument("--python", help="the Python to make Harbor's venv with")
    options.add_argument("--pytest-python", default=pytest_python(), help="one with the plugin")
    options.add_argument("--json", type=Path, help="write all figures to this file")
    options.add_argument("--keep", type=Path, help="keep logs and results in this folder")
    return options.parse_args()


def main():
    """Compare."""
    args = parse()
    tasks = make_tasks.make(HERE / "tasks", args.count)
    runners = commands(args, tasks)
    load = idle_load()
    if load > BUSY_LIMIT:
        print(f"note: {load:.0%} of the machine is at work already; its figures count that in")
    with tempfile.TemporaryDirectory(prefix="compare-") as scratch:
        folder = args.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        runs = {name: [] for name in runners}
        for name, command in runners.items():
            run_once(name, command, tasks, folder, "warm-up")
        for number in range(1, args.rounds + 1):
            for name, command in runners.items():
                runs[name].append(run_once(name, command, tasks, folder, f"round{number}"))
    document = summary(runs) | {"load_before": round(load, 3)}
    for title in ("medians", "ratio"):
        print(f"{title}: {json.dumps(document.get(title))}")
    if args.json:
        args.json.write_text(json.dumps(document, indent=2) + "\n")


if __name__ == "__main__":
    main()
