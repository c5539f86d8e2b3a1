"""B13: workers that start at the same moment share one janitor; it leaves when they are gone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from groups import PACKAGE

from pytest_harbor.sandbox import janitor
from pytest_harbor.sandbox.engine import Engine
from pytest_harbor.sandbox.labels import Owner
from pytest_harbor.sandbox.registry import Registry
from pytest_harbor.sandbox.state import State

WORKER = """
import sys, os
from pathlib import Path
from pytest_harbor.sandbox.labels import Owner
from pytest_harbor.sandbox.registry import Registry
from pytest_harbor.sandbox.state import State
while not Path(sys.argv[2]).exists(): pass
registry = Registry(State(Path(sys.argv[1])), Owner.of_this_process("run"), os.environ)
for number in range(20):
    registry.register(f"project-{os.getpid()}-{number}")
print("registered", flush=True)
sys.stdin.read()
for number in range(20):
    registry.forget(f"project-{os.getpid()}-{number}")
"""


def watches(state: Path) -> list[str]:
    found = subprocess.run(
        ["pgrep", "-f", f"watch.py {state} "], capture_output=True, text=True, check=False
    )
    return found.stdout.split()


def test_four_workers_one_janitor_and_none_afterwards(tmp_path: Path) -> None:
    state, start = tmp_path / "state", tmp_path / "start"
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, str(state), str(start)],
            env={**os.environ, "PYTHONPATH": str(PACKAGE)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    start.touch()
    for worker in workers:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "registered\n"
    assert len(watches(state)) == 1
    assert len(list((state / "runs/run/owners").iterdir())) == 4
    janitor = Path(f"/proc/{watches(state)[0]}")
    # a session of its own, out of reach for whatever ends the workers; and asleep
    assert os.getsid(int(janitor.name)) not in {os.getsid(0), *(w.pid for w in workers)}
    before = (janitor / "stat").read_text().split()[13:15]
    time.sleep(0.5)
    assert (janitor / "stat").read_text().split()[13:15] == before
    for worker in workers:
        worker.communicate(timeout=30)
    ends = time.monotonic() + 10
    while watches(state) and time.monotonic() < ends:
        time.sleep(0.05)
    assert watches(state) == []
    assert list((state / "runs").iterdir()) == []


def test_the_watch_knows_no_more_than_the_standard_library() -> None:
    code = (
        "import sys, runpy; before = set(sys.modules); import pytest_harbor.sandbox.watch; "
        "print([m for m in set(sys.modules) - before if m.split('.')[0] in "
        "('docker', 'requests', 'pydantic', 'pytest', 'filelock')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(PACKAGE)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.docker
def test_a_sweep_beside_a_beginning_run_does_not_lose_it(tmp_path: Path) -> None:
    """A run that registers its first group while another one sweeps up dead runs."""
    state = State(tmp_path / "state")
    engine = Engine({**os.environ, "PYTEST_HARBOR_STATE_DIR": str(state.root)})
    over = threading.Event()

    def sweep() -> None:
        while not over.is_set():
            janitor._forget_dead_runs(engine)

    sweeper = threading.Thread(target=sweep)
    sweeper.start()
    try:
        for number in range(10):
            registry = Registry(state, Owner.of_this_process(f"run-{number}"), os.environ)
            registry.register("project")
            assert (state.root / "runs" / f"run-{number}" / "projects" / "project").exists()
            time.sleep(0.02)
            assert (state.root / "runs" / f"run-{number}" / "projects" / "project").exists()
            registry.forget("project")
    finally:
        over.set()
        sweeper.join()
        engine.close()
        for pid in watches(state.root):
            os.kill(int(pid), signal.SIGTERM)
