"""The scheduler against workers that are simulated: every item once, the longest first."""

from __future__ import annotations

import heapq
import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_harbor import durations, scheduling
from pytest_harbor.longest_first import LongestFirst


class Cache:
    def __init__(self, durations: dict[str, float]) -> None:
        self.known: dict[str, Any] = {"harbor/durations": durations}

    def get(self, key: str, default: Any) -> Any:
        return self.known.get(key, default)

    def set(self, key: str, value: Any) -> None:
        self.known[key] = value


def a_config(durations: dict[str, float], workers: int = 1, root: Path = Path("/none")) -> Any:
    values = {"tx": ["popen"] * workers, "maxschedchunk": None, "rsyncdir": []}
    return SimpleNamespace(
        getoption=values.get,
        getvalue=values.get,
        rootpath=root,
        cache=Cache(durations),
        hook=SimpleNamespace(),
    )


class Worker:
    """Runs an item when it knows the next one, or that there is none: as xdist's workers do."""

    def __init__(self, name: str) -> None:
        self.gateway = SimpleNamespace(id=name)
        self.queue: list[int] = []
        self.running = False
        self.shutting_down = False

    def send_runtest_some(self, indices: list[int]) -> None:
        assert not self.shutting_down, "an item sent to a worker that was told to end"
        self.queue += indices

    def shutdown(self) -> None:
        self.shutting_down = True

    def next(self) -> int | None:
        ready = len(self.queue) > 1 or (self.queue and self.shutting_down)
        if self.running or not ready:
            return None
        self.running = True
        return self.queue[0]


class Run:
    """A run with simulated workers and clock."""

    def __init__(self, seconds: list[float], workers: int, *, measured: bool = True) -> None:
        self.seconds = seconds
        self.ids = [f"ds/t{number}/task.toml::t{number}" for number in range(len(seconds))]
        durations = dict(zip(self.ids, seconds, strict=True)) if measured else {}
        self.scheduler = LongestFirst(a_config(durations, workers))
        self.started: list[int] = []
        self.finished: list[int] = []
        self.crashed: list[str] = []
        self.clock = 0.0
        self._events: list[tuple[float, int, Worker]] = []
        self.workers = [Worker(f"gw{number}") for number in range(workers)]
        for worker in self.workers:
            self.scheduler.add_node(worker)
        for worker in self.workers:
            self.scheduler.add_node_collection(worker, self.ids)
        self.scheduler.schedule()

    def _start(self) -> None:
        for worker in self.workers:
            index = worker.next()
            if index is not None:
                self.started.append(index)
                heapq.heappush(self._events, (self.clock + self.seconds[index], index, worker))

    def go(self, crash_after: int | None = None) -> float:
        self._start()
        while self._events:
            self.clock, index, worker = heapq.heappop(self._events)
            if crash_after is not None and len(self.finished) == crash_after:
                crash_after = None
                self._crash(worker)
            else:
                worker.running = False
                worker.queue.remove(index)
                self.finished.append(index)
                self.scheduler.mark_test_complete(worker, index, self.seconds[index])
            self._start()
        return self.clock

    def _crash(self, worker: Worker) -> None:
        self.workers.remove(worker)
        self.crashed.append(self.scheduler.remove_node(worker))
        another = Worker("another")
        self.workers.append(another)
        self.scheduler.add_node(another)
        self.scheduler.add_node_collection(another, self.ids)
        self.scheduler.schedule()


LENGTHS = st.lists(st.integers(1, 100).map(float), min_size=1, max_size=30)


@given(LENGTHS, st.integers(1, 8))
def test_every_item_runs_once_and_every_worker_ends(seconds: list[float], workers: int) -> None:
    run = Run(seconds, workers)
    run.go()
    assert sorted(run.finished) == list(range(len(seconds)))
    assert all(worker.shutting_down for worker in run.workers)
    assert run.scheduler.tests_finished


@given(LENGTHS, st.integers(1, 8), st.integers(0, 30))
def test_after_a_crash_the_others_items_still_run_once(
    seconds: list[float], workers: int, after: int
) -> None:
    run = Run(seconds, workers)
    run.go(crash_after=after)
    lost = [run.ids.index(name) for name in run.crashed]
    assert sorted(run.finished + lost) == list(range(len(seconds)))
    assert len(lost) == (after < len(seconds))


@given(LENGTHS, st.integers(1, 8))
def test_the_longest_start_first(seconds: list[float], workers: int) -> None:
    run = Run(seconds, workers)
    run.go()
    first = sorted(seconds, reverse=True)[: min(workers, len(seconds))]
    assert sorted((run.seconds[index] for index in run.started[:workers]), reverse=True) == first


def test_a_long_tail_does_not_cost_a_third_more() -> None:
    """Forty short tasks and a few long ones, which xdist's chunks put behind each other."""
    draw = random.Random(4)
    seconds = [draw.uniform(1, 4) for _ in range(42)] + [40.0, 38.0, 35.0, 20.0, 20.0, 18.0]
    draw.shuffle(seconds)
    best = max(sum(seconds) / 6, max(seconds))
    assert Run(seconds, 6).go() < 1.1 * best


def test_behind_a_long_task_waits_a_short_one() -> None:
    """What waits behind a running task cannot be taken back: no second long one there."""
    assert Run([50.0, 30.0, 30.0, 5.0, 5.0, 5.0, 5.0, 5.0, 5.0], 2).go() == 70.0


def test_order_of_measured_unmeasured_and_ordinary_tests(tmp_path: Path) -> None:
    for name, seconds in (("short", "60"), ("long", "3600"), ("known", "9999")):
        (tmp_path / name).mkdir()
        toml = f"[agent]\ntimeout_sec = {seconds}\n[verifier]\ntimeout_sec = 1\n"
        (tmp_path / name / "task.toml").write_text(toml)
    (tmp_path / "unlimited").mkdir()
    (tmp_path / "unlimited" / "task.toml").write_text("")
    ids = [
        "test_own.py::test_it",
        "known/task.toml::known",
        "short/task.toml::short",
        "known/task.toml::known[attempt2]",
        "long/task.toml::long",
        "unlimited/task.toml::unlimited",
    ]
    past = {ids[1]: 5000.0, ids[3]: 7000.0, "gone": 1.0}
    order = durations.by_length(a_config(past, root=tmp_path), ids)
    assert [ids[position] for position in order[1:]] == [ids[4], ids[2], ids[3], ids[1], ids[0]]


def test_without_tasks_xdist_does_what_it_always_did() -> None:
    run = Run([1.0] * 40, 2)
    plain = LongestFirst(a_config({}, 2))
    workers = [Worker("a"), Worker("b")]
    names = [f"test_x.py::test_{number}" for number in range(40)]
    for worker in workers:
        plain.add_node(worker)
    for worker in workers:
        plain.add_node_collection(worker, names)
    plain.schedule()
    assert [len(worker.queue) for worker in workers] == [5, 5], "chunks"
    assert [len(worker.queue) for worker in run.workers] == [2, 2]


def test_what_broke_is_not_remembered() -> None:
    config = a_config({"old": 1.0, "graded": 1.0})
    keeper = durations.DurationKeeper(config)
    for nodeid, verdict in (("graded", "failed"), ("broke", "error"), ("setup", None)):
        for seconds in (1.0, 2.5):
            keeper.pytest_runtest_logreport(
                SimpleNamespace(
                    nodeid=nodeid, duration=seconds, harbor_episode={"verdict": verdict}
                )  # type: ignore[arg-type]
            )
    keeper.pytest_runtest_logreport(SimpleNamespace(nodeid="own", duration=9.0))  # type: ignore[arg-type]
    keeper.pytest_sessionfinish()
    assert config.cache.known == {"harbor/durations": {"old": 1.0, "graded": 3.5}}


@pytest.mark.parametrize("dist", ["no", "worksteal", "load"])
def test_a_mode_that_the_user_chose_is_left_alone(dist: str) -> None:
    config = a_config({})
    config.stash = pytest.Stash()
    config.known_args_namespace = SimpleNamespace(dist=dist)
    scheduling.note_dist_mode(config)
    assert (scheduling.make_scheduler(config, None) is not None) == (dist == "no")
