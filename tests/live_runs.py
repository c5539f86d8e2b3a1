"""Runs of pytest on the real engine that a test interrupts: laid out, started, watched, ended.

Each run has a tag that is in the names of its tasks, and thus in the name of everything that it
makes: what is left of it is found without a label of ours.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import uuid
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from episodes import GIVES_1, script
from groups import IMAGE
from task_folders import write_files

from pytest_harbor.sandbox.labels import Owner, birth_of

PATIENCE = 60.0
"""Seconds for what must happen soon, on a machine that is busy with other tests."""

CLEAN_WITHIN = 30.0
"""Seconds after which nothing may be left of a run that is over."""

SLEEPS = "sleep 300"

SIDECAR = """
services:
  main: {}
  side:
    image: debian:bookworm-slim
    command: sleep infinity
    volumes: ["kept:/kept", "/nameless"]
volumes: {kept: {}}
"""


@dataclass
class Dataset:
    """Tasks of one tag, and what pytest is to know beside them."""

    folder: Path
    tag: str = field(default_factory=lambda: uuid.uuid4().hex[:8])

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "pytest.ini").write_text("[pytest]\n")

    def task(
        self, name: str, *solves: str, minutes: float = 1, compose: str = "", **files: str
    ) -> str:
        """Write a task of as many steps as there are scripts; returns its whole name.

        Those that may take more ``minutes`` are started first.
        """
        names = ("one", "two", "three", "four")[: len(solves)] if len(solves) > 1 else ()
        limit = f"timeout_sec = {minutes * 60}\n"
        written: dict[str, str | bytes | None] = {}
        if compose:
            written["environment/docker-compose.yaml"] = compose
        # images are named after their task: those of unique names would pile up
        image = "" if "environment/Dockerfile" in files else f"docker_image = {IMAGE!r}\n"
        toml = f"[environment]\n{image}" + (f"[agent]\n{limit}" if not names else "")
        for step in names:
            toml += f'[[steps]]\nname = "{step}"\n[steps.agent]\n{limit}'
        for place, solve in zip(
            [f"steps/{step}/" for step in names] or [""], solves or ["true"], strict=True
        ):
            written[f"{place}instruction.md"] = "Do it.\n"
            written[f"{place}solution/solve.sh"] = script(solve)
            written[f"{place}tests/test.sh"] = script(GIVES_1)
        whole = f"{name}-{self.tag}"
        write_files(self.folder / whole, written | {"task.toml": toml} | files)
        return whole

    def conftest(self, text: str) -> None:
        """Write the dataset's conftest.py."""
        (self.folder / "conftest.py").write_text(text)

    def left(self) -> list[str]:
        """Containers, networks and volumes with the tag in their names."""
        return [name for name in everything() if self.tag in name]


def everything() -> list[str]:
    """Every container, network and volume of the engine."""
    found: list[str] = []
    for words in (
        ("ps", "-a", "--format", "container {{.Names}}"),
        ("network", "ls", "--format", "network {{.Name}}"),
        ("volume", "ls", "--format", "volume {{.Name}}"),
    ):
        found += docker(*words).splitlines()
    return found


def docker(*words: str) -> str:
    """What the docker client prints."""
    done = subprocess.run(
        ["docker", *words], capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout


def heed_ctrl_c() -> None:
    """Undo that SIGINT is ignored, as it is in whatever a shell starts in the background."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class LiveRun:
    """pytest on a dataset, in a session of its own."""

    def __init__(
        self,
        dataset: Dataset,
        *words: str,
        name: str = "job",
        program: Sequence[str] = ("-m", "pytest"),
        state: Path | None = None,
    ) -> None:
        self.dataset = dataset
        self.job = dataset.folder / "jobs" / name
        self.junit = dataset.folder / f"{name}.xml"
        self.state = state or dataset.folder.parent / f"state-{dataset.folder.name}"
        self.nameless: set[str] = set()
        """Volumes without a name of ours."""
        self._signalled: float | None = None
        self._printed = dataset.folder / f"{name}.out"
        with self._printed.open("wb") as out:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, *program, "-v", "-p", "no:cacheprovider"),
                    *("-p", "no:anyio", "-p", "no:hypothesispytest"),  # they only cost time
                    *("--harbor-job-name", name, "--junitxml", str(self.junit), *words),
                ],
                cwd=dataset.folder,
                env=self.environment(self.state),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=heed_ctrl_c,
            )

    @staticmethod
    def environment(state: Path) -> dict[str, str]:
        """That of a run with a state folder of its own, whatever run this test is part of."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
        return {**kept, "PYTEST_HARBOR_STATE_DIR": str(state)}

    # -- what is known ---------------------------------------------------------------------

    @property
    def printed(self) -> str:
        """All that it wrote to the terminal so far."""
        return self._printed.read_text("utf-8", "replace")

    def folder(self, task: str) -> Path:
        """The run folder of a task's only episode."""
        (found,) = self.job.glob(f"{task}__*")
        return found

    def document(self, task: str) -> dict[str, Any]:
        """The whole result.json of a task's episode."""
        read: dict[str, Any] = json.loads((self.folder(task) / "result.json").read_text())
        return read

    def result(self, task: str) -> dict[str, Any]:
        """Our own part of it."""
        ours: dict[str, Any] = self.document(task)["pytest_harbor"]
        return ours

    def outcome(self, task: str) -> str | None:
        """How a task's episode ended so far; None before it began."""
        with contextlib.suppress(ValueError, OSError):
            return str(self.result(task)["outcome"])
        return None

    def works(self, task: str, step: str | None = None) -> bool:
        """Whether the agent is at work on a task (and at this step)."""
        with contextlib.suppress(ValueError, OSError):
            lines = (self.folder(task) / "events.jsonl").read_text().splitlines()
            last = [json.loads(line) for line in lines][-1]
            return last["event"] == "agent-start" and step in (None, last.get("step"))
        return False

    def owner(self, task: str) -> int:
        """The process that a task's group belongs to."""
        chosen = ("--filter", f"name={task}", "--format", '{{.Label "pytest-harbor.owner-pid"}}')
        (pid,) = set(docker("ps", *chosen).split())
        return int(pid)

    def inside(self, task: str, command: str) -> str:
        """What a shell command prints in a task's main."""
        (main,) = docker("ps", "-q", "--filter", f"name={task}.*-main-").split()
        return docker("exec", main, "sh", "-c", command)

    def janitors(self) -> list[int]:
        """Watches over this run's state folder."""
        found = subprocess.run(
            ["pgrep", "-f", f"watch.py {self.state} "], capture_output=True, text=True, check=False
        )
        return [int(pid) for pid in found.stdout.split()]

    def helpers(self) -> list[str]:
        """Programs that work for groups of this run: Compose, the janitor proper."""
        found = subprocess.run(
            ["pgrep", "-a", "-f", rf"(project-name|-m pytest_harbor\.sandbox\.).*{self.tag}"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        return found.stdout.splitlines()

    @property
    def tag(self) -> str:
        """The dataset's tag."""
        return self.dataset.tag

    # -- what is done to it --------------------------------------------------------------------

    def until(self, condition: Callable[[], bool], seconds: float = PATIENCE) -> None:
        """Wait for something that happens while it runs."""
        ends = time.monotonic() + seconds
        while not condition():
            assert self.process.poll() is None, self.printed
            assert time.monotonic() < ends, self.printed
            time.sleep(0.05)

    def until_works(self, *tasks: str, step: str | None = None) -> None:
        """Wait until agents are at work on tasks, and note what their groups have."""
        self.until(lambda: all(self.works(task, step) for task in tasks))
        for task in tasks:
            ids = docker("ps", "-q", "--filter", f"name={task}").split()
            template = "{{range .Mounts}}{{.Name}} {{end}}"
            self.nameless.update(docker("inspect", "--format", template, *ids).split())

    def send(self, *numbers: signal.Signals, group: bool = True, pause: float = 0.3) -> None:
        """Send signals to all its processes, or to the first one only; nothing may be left then."""
        for place, number in enumerate(numbers):
            time.sleep(pause if place else 0)
            with contextlib.suppress(ProcessLookupError):
                (os.killpg if group else os.kill)(self.process.pid, number)
        self._signalled = time.monotonic()

    def end(self, seconds: float = PATIENCE) -> int:
        """Wait for its end; returns the exit code."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.send(signal.SIGABRT)  # pytest's faulthandler prints where every thread is
            time.sleep(1)
            raise AssertionError(f"it runs on:\n{self.printed}") from None

    def assert_nothing_left(self) -> None:
        """Nothing of it is left in time, neither in the engine nor among the processes."""
        ends = (self._signalled or time.monotonic()) + CLEAN_WITHIN
        while left := self._left():
            assert time.monotonic() < ends, f"{left}\n{self.printed}\n{self.janitors_log()}"
            time.sleep(0.2)
        assert not list(self.state.glob("tmp/*")), "documents with values are left"
        assert not list(self.state.glob("runs/*")), "registrations are left"

    def _left(self) -> list[str]:
        volumes = self.nameless & set(docker("volume", "ls", "-q").split())
        watches = [f"janitor {pid}" for pid in self.janitors()]
        return [*self.dataset.left(), *volumes, *watches, *self.helpers()]

    def janitors_log(self) -> str:
        """What the janitor wrote, as long as its folder is there."""
        return "\n".join(path.read_text() for path in self.state.glob("runs/*/janitor.log"))


@contextlib.contextmanager
def live(dataset: Dataset, *words: str, **how: Any) -> Iterator[LiveRun]:
    """A run of pytest, killed and swept up after when a test is done with it."""
    run = LiveRun(dataset, *words, **how)
    try:
        yield run
    finally:
        if run.process.poll() is None:
            run.send(signal.SIGKILL)
            run.process.wait(10)
        sweep_up(dataset)


def a_dead_process() -> Owner:
    """The owner that a process was which has ended."""
    with subprocess.Popen(["sleep", "60"]) as process:
        birth = birth_of(process.pid)
        process.kill()
    return replace(Owner.of_this_process("a-run", "episode"), pid=process.pid, birth=str(birth))


def leave(dataset: Dataset, name: str, owner: Owner, **further: str) -> str:
    """Make a container, a network and a volume of an owner; returns their project."""
    project = f"{name}-{dataset.tag}"
    labels = {**owner.labels(), "com.docker.compose.project": project, **further}
    words = [word for key, value in labels.items() for word in ("--label", f"{key}={value}")]
    docker("container", "create", *words, "--name", f"{project}-main-1", IMAGE, "true")
    docker("network", "create", *words, f"{project}_default")
    docker("volume", "create", *words, f"{project}_kept")
    return project


def sweep_up(dataset: Dataset) -> None:
    """Remove what a failed test left."""
    for kind, *words in (("container", "-v"), ("network",), ("volume",)):
        for thing in dataset.left():
            what, _, name = thing.partition(" ")
            if what == kind:
                with contextlib.suppress(subprocess.CalledProcessError):
                    docker(kind, "rm", "-f", *words, name)


# -- a run in the middle of its work -----------------------------------------------------------

HOW_MANY = {"serial": (), "two workers": ("-n", "2")}


@dataclass
class AtWork:
    """A run in which one task is finished, and agents are at work on all others that it runs."""

    run: LiveRun
    finished: str
    stopped: list[str]
    """With a sidecar and volumes; with two workers also one of two steps, at the second."""

    def assert_results(self) -> None:
        """What was finished is on disk and whole; what was not says so."""
        done = self.run.document(self.finished)
        assert done["pytest_harbor"]["outcome"] == "passed"
        assert done["verifier_result"]["rewards"] == {"reward": 1.0}
        assert (self.run.folder(self.finished) / "verifier" / "reward.txt").read_text() == "1\n"
        for task in self.stopped:
            result = self.run.result(task)
            assert (result["outcome"], result["verdict"]) == ("interrupted", "error"), result
            assert result["reward"] is None
            fault = self.run.document(task)["exception_info"]
            assert fault["exception_type"] == "CancelledError"
            graded = [step["reward"] for step in result["steps"]]
            assert graded == ([1.0, None] if len(graded) == 2 else [None])

    def assert_reports(self) -> None:
        """The reports have every task that ran, each once."""
        expected: dict[str | None, str | None] = {self.finished: None}
        for task in self.stopped:
            expected[task] = "error"
            if self.run.result(task)["steps_total"] == 2:
                expected |= {f"{task}[one]": None, f"{task}[two]": "skipped"}
        assert endings(self.run.junit) == expected
        page = (self.run.job / "report.html").read_text()
        assert all(task in page for task in (self.finished, *self.stopped))
        told = json.loads((self.run.job / "result.json").read_text())["stats"]
        assert told["n_completed_trials"] == 1 + len(self.stopped)
        assert told["n_cancelled_trials"] == len(self.stopped)
        assert "WARNING" not in self.run.printed


@contextlib.contextmanager
def at_work(folder: Path, *words: str, conftest: str = "") -> Iterator[AtWork]:
    """A run that is ready to be interrupted."""
    tasks = Dataset(folder / "dataset")
    tasks.conftest(conftest)
    finished = tasks.task("done", minutes=60)
    stopped = [tasks.task("side", SLEEPS, compose=SIDECAR, minutes=50)]
    if "-n" in words:
        stopped.append(tasks.task("two", "true", SLEEPS))
    with live(tasks, *words) as run:
        run.until(lambda: run.outcome(finished) == "passed")
        run.until_works(stopped[0])
        if len(stopped) == 2:
            run.until_works(stopped[1], step="two")
        assert len(run.janitors()) == 1
        assert len(run.nameless) == 2
        yield AtWork(run, finished, stopped)


def endings(junit: Path) -> dict[str | None, str | None]:
    """The ending of each testcase of a junit file, which has each once and counts right."""
    found: dict[str | None, str | None] = {}
    root = ET.parse(junit).getroot()
    for case in root.iter("testcase"):
        assert case.get("name") not in found
        tags = [child.tag for child in case if child.tag in ("error", "failure", "skipped")]
        assert len(tags) <= 1
        found[case.get("name")] = tags[0] if tags else None
    (suite,) = root.iter("testsuite")
    for count, tag in (("errors", "error"), ("failures", "failure"), ("skipped", "skipped")):
        assert int(suite.get(count, "-1")) == list(found.values()).count(tag)
    assert int(suite.get("tests", "-1")) == len(found)
    return found
