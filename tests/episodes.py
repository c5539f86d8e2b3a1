"""Episodes for tests: small tasks written and played in one line, on the real engine, no pytest.

played = play(one_step(tmp_path, test=GIVES_1, solve="touch /app/done"))
assert played.result.reward == 1
"""

from __future__ import annotations

import json
import tempfile
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from groups import an_engine
from task_folders import write_files

from pytest_harbor.agents.base import Agent
from pytest_harbor.agents.find import as_agent
from pytest_harbor.episode.doors import Doors
from pytest_harbor.episode.folder import EpisodeFolder, episode_name
from pytest_harbor.episode.lease import Lease
from pytest_harbor.episode.plan import Plan, make_plan
from pytest_harbor.episode.record import EpisodeRecord
from pytest_harbor.episode.result import EpisodeResult, StepResult
from pytest_harbor.episode.run import run_episode
from pytest_harbor.errors import HarborError
from pytest_harbor.gateway import Gateway
from pytest_harbor.recipe import Layer, make_recipe
from pytest_harbor.sandbox.group import Group
from pytest_harbor.sandbox.labels import Owner
from pytest_harbor.task.load import load_task

DOCKERFILE = "FROM debian:bookworm-slim\nWORKDIR /app\n"
"""One image for all tasks that need no other; it is built once on a machine."""

GIVES_1 = "echo 1 > /logs/verifier/reward.txt"
GIVES_0 = "echo 0 > /logs/verifier/reward.txt"
GIVES_WHAT_STANDS_IN_APP = "cat /app/reward > /logs/verifier/reward.txt"

USER = """
[[environment.mcp_servers]]
name = "user-server"
transport = "streamable-http"
url = "http://user-server:8000/mcp"
"""
"""What a task.toml says of the simulated user of :data:`USER_FILES`."""

USER_FILES = {
    "environment/docker-compose.yaml": """
services:
  main: {}
  user-server:
    build: ./user
    init: true
    environment:
      LATE: ${LATE:-0}
      TOOLS: ${TOOLS:-ask_user}
      LISTENS: ${LISTENS:-yes}
""",
    "environment/user/Dockerfile": "FROM python:3.12-slim\nCOPY server.py /\n"
    'CMD ["python3", "/server.py"]\n',
    "environment/user/server.py": (Path(__file__).parent / "small_user.py").read_text(),
}
"""A user that counts how often it was asked, listens late or never, and dies when it is told to."""

ASK = """
ask() {
    url=${USER_SERVER_URL#http://}; place=${url%%/*}; path=/${url#*/}
    body='{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask_user","arguments":{}}}'
    exec 3<> /dev/tcp/${place%:*}/${place#*:}
    printf 'POST %s HTTP/1.0\\r\\nContent-Length: %d\\r\\n\\r\\n%s' "$path" ${#body} "$body" >&3
    cat <&3 | tail -n 1
}
"""
"""A shell function that asks the user of :data:`USER_FILES` and prints what it says."""

Files = dict[str, str | bytes | None]


def script(text: str) -> str:
    """Shell lines as a script; one that has a first line of its own is left alone."""
    return text if text.startswith("#!") else f"#!/bin/bash\n{text}\n"


def one_step(
    folder: Path, toml: str = "", *, solve: str = "true", test: str = GIVES_1, **files: Any
) -> Path:
    """Write a task of one step; further files by path (``**{"tests/lib.sh": "..."}``)."""
    base: Files = {
        "task.toml": toml,
        "instruction.md": "Do it.\n",
        "environment/Dockerfile": DOCKERFILE,
        "solution/solve.sh": script(solve),
        "tests/test.sh": script(test),
    }
    return _written(folder, base | files)


@dataclass(frozen=True)
class Part:
    """A step to be written: its scripts, what its table says, and further files in its folder."""

    solve: str | None = "true"
    test: str | None = GIVES_1
    toml: str = ""
    files: Mapping[str, str | bytes] = field(default_factory=dict)


def many_steps(folder: Path, toml: str = "", *parts: Part, **files: Any) -> Path:
    """Write a task of steps named one, two, three, ...; ``toml`` is what comes before them."""
    names = ("one", "two", "three", "four", "five")
    base: Files = {"environment/Dockerfile": DOCKERFILE, "task.toml": toml}
    for name, part in zip(names, parts, strict=False):
        base["task.toml"] = f'{base["task.toml"]}\n[[steps]]\nname = "{name}"\n{part.toml}\n'
        place = f"steps/{name}"
        base[f"{place}/instruction.md"] = f"Do {name}.\n"
        if part.solve is not None:
            base[f"{place}/solution/solve.sh"] = script(part.solve)
        if part.test is not None:
            base[f"{place}/tests/test.sh"] = script(part.test)
        base |= {f"{place}/{path}": text for path, text in part.files.items()}
    return _written(folder, base | files)


def _written(folder: Path, files: Files) -> Path:
    """Write a task; always under one name, for images are named after their task."""
    place = folder / uuid.uuid4().hex[:6] / "a-task"
    write_files(place, files)
    for path in place.rglob("*.sh"):
        path.chmod(0o755)
    return place


@dataclass(frozen=True)
class Played:
    """A finished episode and where its files are."""

    result: EpisodeResult
    folder: Path
    seen: Any = None
    """What the test's own look into the running group returned."""

    def __getitem__(self, step: str | int) -> StepResult:
        """A step by its name or number."""
        steps = self.result.steps
        return steps[step] if isinstance(step, int) else {s.name: s for s in steps}[step]

    def read(self, path: str) -> str:
        """A text file of the run folder."""
        return (self.folder / path).read_text(encoding="utf-8")

    def json(self, path: str) -> Any:
        """A JSON file of the run folder."""
        return json.loads(self.read(path))

    def events(self) -> list[dict[str, Any]]:
        """What happened, as the live view saw it."""
        return [json.loads(line) for line in self.read("events.jsonl").splitlines()]

    @property
    def everything(self) -> str:
        """All files of the run folder in one text, to be searched for what must not be there."""
        files = (path for path in sorted(self.folder.rglob("*")) if path.is_file())
        return "\n".join(path.read_bytes().decode("utf-8", "replace") for path in files)


def play(
    task: Path,
    agent: Agent | str = "oracle",
    *,
    recipe: Mapping[str, Any] | None = None,
    host: Mapping[str, str] | None = None,
    gateway: Gateway | None = None,
    look: Callable[[Group], Any] | None = None,
) -> Played:
    """Play a task as the fixtures do it; nothing of its group is left afterwards.

    ``recipe`` holds dotted keys, ``host`` is the operator's environment, ``gateway`` what its
    model servers are reached through, ``look`` is called with the group before it is removed.
    """
    values = dict(recipe or {})
    settled = make_recipe([Layer(values, {key: f"a test: {key}" for key in values})])
    settled, who = as_agent(agent, settled)
    job = Path(tempfile.mkdtemp(prefix="job-", dir=task.parent))
    folder = EpisodeFolder(job, episode_name(task.name, str(task)))
    record = EpisodeRecord(folder, key=str(task), task=task.name, task_path=str(task))
    try:
        plan = make_plan(load_task(task), settled, who, host or {})
        doors = _doors(plan, record, host or {}, gateway)
    except HarborError as error:
        record.fault(error, "plan")
        return Played(record.finish(), folder.path)
    return _play(plan, record, doors, look)


def _doors(
    plan: Plan, record: EpisodeRecord, host: Mapping[str, str], gateway: Gateway | None
) -> Doors | None:
    if gateway is None:
        return None
    return Doors(plan, gateway, record.folder.name, record.folder.path, host)


def _play(
    plan: Plan,
    record: EpisodeRecord,
    doors: Doors | None,
    look: Callable[[Group], Any] | None,
) -> Played:
    engine, seen = an_engine(), None
    owner = Owner.of_this_process(f"test-{uuid.uuid4().hex[:8]}", record.folder.name)
    lease = Lease(plan, engine, owner, str(plan.task.folder), doors)
    try:
        run_episode(lease, record)
        if look is not None:
            seen = look(lease.group)
    finally:
        record.warn(lease.close())
        left = [] if plan.recipe.keep else _left(engine, record.folder.name)
        engine.close()
    assert left == []
    assert record.result is not None
    return Played(record.result, record.folder.path, seen)


def _left(engine: Any, episode: str) -> list[str]:
    """Containers and networks that still carry the episode's label."""
    chosen = {"label": f"pytest-harbor.episode={episode}"}
    containers = engine.api.containers(all=True, filters=chosen)
    networks = engine.api.networks(filters=chosen)
    return [str(each.get("Names") or each.get("Name")) for each in (*containers, *networks)]
