"""Whole episodes on the real engine: order, files, users, limits, artifacts, scores, records."""

from __future__ import annotations

import shutil
import stat
from pathlib import Path

import pytest
from episodes import (
    GIVES_1,
    GIVES_WHAT_STANDS_IN_APP,
    Part,
    many_steps,
    one_step,
    play,
)
from groups import an_engine, an_owner, soon

from pytest_harbor.agents.command import CommandAgent
from pytest_harbor.agents.find import find_agent
from pytest_harbor.episode.folder import EpisodeFolder
from pytest_harbor.episode.lease import Lease
from pytest_harbor.episode.plan import make_plan
from pytest_harbor.episode.record import EpisodeRecord
from pytest_harbor.episode.run import run_episode
from pytest_harbor.errors import SandboxError
from pytest_harbor.recipe import make_recipe
from pytest_harbor.sandbox import janitor
from pytest_harbor.sandbox.group import Group
from pytest_harbor.task.load import load_task

# -- order -----------------------------------------------------------------------------------

ORDER = """
artifacts = ["/var/log/order"]
[environment.healthcheck]
command = "echo environment healthcheck >> /var/log/order"
[[verifier.collect]]
command = "echo collect >> /var/log/order"
[[verifier.collect]]
command = "echo collect in sidecar >> /var/log/order; cat /app/none"
service = "side"
"""
STEP_ORDER = """
[steps.healthcheck]
command = "echo step healthcheck >> /var/log/order; ls /app/setup.sh"
retries = 1
[[steps.verifier.collect]]
command = "echo collect of the step >> /var/log/order"
"""
SIDE = """
services:
  main: {}
  side: {image: "debian:bookworm-slim", command: sleep infinity, init: true}
"""


def test_order_of_operations(tmp_path: Path) -> None:
    setup = "echo setup with $(ls /app | tr '\\n' ' ') >> /var/log/order"
    checked = STEP_ORDER.replace("ls /app/setup.sh", "! ls /app/setup.sh")
    test = "echo test.sh >> /var/log/order; " + GIVES_1
    part = Part(
        "echo agent >> /var/log/order",
        test,
        checked,
        {"workdir/setup.sh": setup, "workdir/data/one.txt": "1", "workdir/.hidden": ""},
    )
    files = {"environment/docker-compose.yaml": SIDE}
    played = play(many_steps(tmp_path, ORDER, part, part, **files), look=order_in_main)
    assert played.result.reward == 1
    step = [
        "setup with data setup.sh",
        "step healthcheck",
        "agent",
        "collect",
        "collect of the step",
        "test.sh",
    ]
    assert played.seen == ["environment healthcheck", *step, *step]
    # artifacts are taken after the hooks and before grading
    assert played.read("steps/one/artifacts/var/log/order").splitlines() == [
        "environment healthcheck",
        *step[:-1],
    ]
    # a hook that fails is a warning
    (warning,) = played["one"].warnings
    assert "in side: exited with 1" in warning
    phases = ["episode", "group", "start", "agent-setup", "grants"]
    turns = ["step", "agent", "verify"]
    starts = [e["event"].removesuffix("-start") for e in played.events() if "-start" in e["event"]]
    assert starts == [*phases, *turns, *turns]


def order_in_main(group: Group) -> list[str]:
    return (group.container().read("/var/log/order") or b"").decode().splitlines()


# -- files and users -------------------------------------------------------------------------


def test_users_own_what_is_theirs(tmp_path: Path) -> None:
    toml = '[agent]\nuser = 1000\n[verifier]\nuser = "nobody"\n'
    edit = "id -u; echo more >> data.txt; echo mine > new.txt; rm old.txt; "
    edit += "stat -c %u data.txt sub/deep"
    first = Part(
        edit,
        "id -un; cat /app/data.txt; " + GIVES_1,
        files={
            "workdir/data.txt": "a\n",
            "workdir/old.txt": "x",
            "workdir/sub/deep": "",
            "workdir/setup.sh": "id -u > /tmp/setup-user\n",
        },
    )
    second = Part(
        "id -u; ls -a; cat /tmp/setup-user",
        "id -u; " + GIVES_1,
        "[steps.agent]\nuser = 0\n[steps.verifier]\nuser = 0",
    )
    dockerfile = "FROM debian:bookworm-slim\nWORKDIR /app\nRUN chmod 755 /app\n"
    writable = "FROM debian:bookworm-slim\nWORKDIR /app\nRUN chown 1000 /app\n"
    played = play(many_steps(tmp_path, toml, first, second, **{"environment/Dockerfile": writable}))
    assert played.result.reward == 1
    assert played["one"].turn is not None
    assert played["one"].turn.ended == "exited"
    assert played.read("steps/one/agent/oracle.txt").split() == ["1000", "1000", "1000"]
    assert played.read("steps/one/verifier/test-stdout.txt").split() == ["nobody", "a", "more"]
    said = played.read("steps/two/agent/oracle.txt").split()
    assert said == ["0", ".", "..", "data.txt", "new.txt", "sub", "1000"]

    # in a folder where the agent's user may not remove anything, setup.sh is gone all the same
    files = {"environment/Dockerfile": dockerfile}
    played = play(many_steps(tmp_path, toml, first, **files))
    assert "setup.sh" not in played.read("steps/one/agent/oracle.txt")
    assert played["one"].fault is None


def test_what_setup_starts_lives_on_and_what_the_agent_starts_does_not(tmp_path: Path) -> None:
    serve = "(setsid bash -c 'while :; do sleep 1; done' of-the-task > /dev/null 2>&1 &)\n"
    start = "(setsid bash -c 'while :; do sleep 1; done' of-the-agent > /dev/null 2>&1 &)\n"
    count = "cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -oE 'of.the.[a-z]+' | sort | uniq -c; "
    first = Part(start + count, count + GIVES_1, files={"workdir/setup.sh": serve})
    played = play(many_steps(tmp_path, "", first, Part(count, count + GIVES_1)))
    ours = "1 of-the-task"
    assert played.read("steps/one/verifier/test-stdout.txt").strip() == ours
    assert played.read("steps/two/agent/oracle.txt").strip() == ours
    assert played.read("steps/two/verifier/test-stdout.txt").strip() == ours
    (killed,) = [c for c in played["one"].hygiene.killed_before_grading if "of-the" in c]
    assert "of-the-agent" in killed


def test_a_server_of_the_agent_is_spared_where_the_recipe_says_so(tmp_path: Path) -> None:
    lives = "cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -q 'sleep [1]234' && r=1 || r=0\n"
    test = lives + "sleep 4321 &\necho $r > /logs/verifier/reward.txt"
    first = Part(solve="setsid sleep 1234 >/dev/null 2>&1 &", test=test)
    task = many_steps(tmp_path, "", first, Part(solve="true", test=test))
    played = play(task, recipe={"verifier.spare_processes": True})
    one, two = played.result.steps
    assert (one.reward, two.reward) == (1.0, 1.0)
    assert "sleep 1234" in one.warnings[0]
    assert one.hygiene.killed_after_grading == ("sleep 4321",)
    assert play(task).result.steps[0].reward == 0.0


def test_ready_made_images_and_workdirs_that_are_missing(tmp_path: Path) -> None:
    toml = '[environment]\ndocker_image = "debian:bookworm-slim"\nworkdir = "/srv/app"\n'
    files = {
        "environment/Dockerfile": None,
        "environment/seed/one.txt": "seed\n",
        "environment/run.sh": "echo ran\n",
    }
    test = "pwd; cat seed/one.txt; sh run.sh; " + GIVES_1
    played = play(one_step(tmp_path, toml, test=test, **files))
    assert played.result.reward == 1
    assert played.read("verifier/test-stdout.txt") == "/srv/app\nseed\nran\n"
    (image,) = played.result.images.values()
    assert image.startswith("sha256:")


def test_a_workdir_that_compose_does_not_make(tmp_path: Path) -> None:
    toml = '[environment]\nworkdir = "/srv/elsewhere"\n'
    compose = "services: {main: {working_dir: /tmp}}\n"
    files = {"environment/docker-compose.yaml": compose}
    played = play(one_step(tmp_path, toml, test="pwd; " + GIVES_1, **files))
    assert played.result.reward == 1
    assert played.read("verifier/test-stdout.txt") == "/srv/elsewhere\n"


def test_root_tests_lie_under_the_step_s_own(tmp_path: Path) -> None:
    show = (
        "cd /tests; for f in $(find . -type f | sort); do echo $f $(cat $f | tail -n 1); done; "
        + GIVES_1
    )
    root = {
        "tests/test.sh": f"#!/bin/bash\n{show}\n# root",
        "tests/lib.sh": "# root lib",
        "tests/sub/both": "# root both",
        "tests/.harborignore": "ignored*\n",
        "tests/ignored.txt": "x",
    }
    first = Part(
        test=show + "\n# own", files={"tests/sub/both": "# own both", "tests/own": "# own"}
    )
    played = play(many_steps(tmp_path, "", first, Part(test=None), **root))
    assert played.result.reward == 1
    assert played.read("steps/one/verifier/test-stdout.txt").splitlines() == [
        "./lib.sh # root lib",
        "./own # own",
        "./sub/both # own both",
        "./test.sh # own",
    ]
    assert played.read("steps/two/verifier/test-stdout.txt").splitlines() == [
        "./lib.sh # root lib",
        "./sub/both # root both",
        "./test.sh # root",
    ]


# -- limits ----------------------------------------------------------------------------------


def test_resources_and_budgets_of_steps(tmp_path: Path) -> None:
    toml = """
    [environment]
    cpus = 0.5
    memory_mb = 256
    [agent]
    timeout_sec = 500
    [verifier]
    timeout_sec = 50
    """
    own = "[steps.agent]\ntimeout_sec = 1\n[steps.verifier]\ntimeout_sec = 5"
    task = many_steps(tmp_path, toml, Part("sleep 30", toml=own), Part("exit 0"))
    recipe = {"timeouts.verifier.multiplier": 2.0, "timeouts.agent.cap": 60.0}
    played = play(task, recipe=recipe, look=limits)
    assert played.seen == (500_000_000, 256 * 1024**2)
    one, two = played["one"], played["two"]
    assert one.turn is not None
    assert two.turn is not None
    assert one.grade is not None
    assert two.grade is not None
    assert (one.turn.ended, two.turn.ended) == ("timeout", "exited")
    assert one.turn.budget == "1 s ([[steps]] one [agent] timeout_sec)"
    assert (
        two.turn.budget
        == "500 s ([agent] timeout_sec), capped at 60 s (a test: timeouts.agent.cap)"
    )
    times = " × 2 (a test: timeouts.verifier.multiplier) = "  # noqa: RUF001
    assert one.grade.budget == f"5 s ([[steps]] one [verifier] timeout_sec){times}10 s"
    assert two.grade.budget == f"50 s ([verifier] timeout_sec){times}100 s"


def limits(group: Group) -> tuple[int, int]:
    facts = group.container().facts["HostConfig"]
    return facts["NanoCpus"], facts["Memory"]


def test_setup_and_its_limit(tmp_path: Path) -> None:
    part = Part(files={"workdir/setup.sh": "echo waiting; sleep 60\n"})
    result = play(many_steps(tmp_path, "", part), recipe={"timeouts.setup.seconds": 1.0}).result
    assert (result.outcome, result.reward) == ("setup_failed", None)
    assert result.fault is not None
    assert (
        "setup.sh of step one timed out (setup.sh: 1 s (a test: timeouts.setup.seconds)"
        in result.fault.message
    )
    assert result.fault.message.endswith(": waiting")


def test_a_step_s_healthcheck(tmp_path: Path) -> None:
    def toml(command: str) -> str:
        return f'[steps.healthcheck]\ncommand = "{command}"\nretries = 2\ninterval_sec = 0.1\n'

    patient = "test -e /tmp/tried || { touch /tmp/tried; exit 1; }"
    parts = (Part(toml=toml(patient)), Part(toml=toml("echo not yet; exit 4")))
    result = play(many_steps(tmp_path, "", *parts)).result
    assert result.outcome == "setup_failed"
    assert result.fault is not None
    assert "healthcheck of step two" in result.fault.message
    assert "failed 2 times; the last exited with 4: not yet" in result.fault.message
    assert [step.reward for step in result.steps] == [1, None]


# -- artifacts -------------------------------------------------------------------------------

ARTIFACTS = """
artifacts = [
    "/app/out",
    { source = "/export/state", service = "side", destination = "side/state.txt" },
    { source = "/app/out/a.txt", destination = "renamed.txt" },
    { source = "/app/tree", destination = "tree", exclude = ["*.pyc", "cache"] },
    { source = "/app/out/b.txt", destination = "renamed.txt" },
    { source = "/app/out/sub/b.txt" },
    { source = "/app/missing" },
    { source = "/app/empty" },
    { source = "relative.txt", destination = "relative.txt" },
    { source = "/app/link-to-passwd" },
]
[[verifier.collect]]
service = "side"
command = "mkdir -p /export; echo state > /export/state"
[[verifier.collect]]
command = "echo by-a-hook > /app/out/hooked"
"""
MAKE = """
mkdir -p out/sub tree/cache empty; echo a > out/a.txt; echo b > out/b.txt; echo b > out/sub/b.txt
touch tree/keep.py tree/drop.pyc tree/cache/x; echo r > relative.txt
echo published > /logs/artifacts/notes; chmod 600 /logs/artifacts/notes
ln -s /etc/passwd link-to-passwd; ln -s a.txt out/inner; ln -s /etc/shadow out/outer
"""


def test_artifacts_and_their_manifest(tmp_path: Path) -> None:
    files = {"environment/docker-compose.yaml": SIDE}
    spoils = "rm -rf /app/out; " + GIVES_1
    played = play(one_step(tmp_path, ARTIFACTS, solve=MAKE, test=spoils, **files))
    assert played.result.reward == 1
    found = {
        p.relative_to(played.folder / "artifacts").as_posix()
        for p in (played.folder / "artifacts").rglob("*")
        if not p.is_dir()
    }
    assert found == {
        "manifest.json",
        "logs/artifacts/notes",
        "app/out/a.txt",
        "app/out/b.txt",
        "app/out/sub/b.txt",
        "app/out/hooked",
        "app/out/inner",
        "side/state.txt",
        "renamed.txt",
        "tree/keep.py",
        "relative.txt",
    }
    manifest = played.json("artifacts/manifest.json")
    # byte for byte in Harbor's form, which knows main as no service and no artifact without type
    assert manifest[0] == {
        "source": "/logs/artifacts",
        "destination": "artifacts/logs/artifacts",
        "type": "directory",
        "status": "ok",
        "service": None,
        "exclude": [],
    }
    assert manifest[-1] == {
        "source": "/export/state",
        "destination": "artifacts/side/state.txt",
        "type": "file",
        "status": "ok",
        "service": "side",
        "exclude": [],
    }
    assert manifest[3]["exclude"] == ["*.pyc", "cache"]
    assert [(line["source"], line["type"], line["status"]) for line in manifest] == [
        ("/logs/artifacts", "directory", "ok"),
        ("/app/out", "directory", "ok"),
        ("/app/out/a.txt", "file", "ok"),
        ("/app/tree", "directory", "ok"),
        ("/app/out/b.txt", "file", "skipped"),  # its place is taken
        ("/app/out/sub/b.txt", "file", "skipped"),  # lies in /app/out
        ("/app/missing", "file", "failed"),
        ("/app/empty", "directory", "empty"),
        ("relative.txt", "file", "ok"),
        ("/app/link-to-passwd", "file", "failed"),  # no link is followed
        ("/export/state", "file", "ok"),
    ]
    notes = {record.source: record.note for record in played[0].artifacts}
    assert notes["/app/missing"] == "/app/missing does not exist"
    assert "outer" in notes["/app/out"]
    assert (played.folder / "artifacts/logs/artifacts/notes").stat().st_mode & stat.S_IRUSR


# -- agents ----------------------------------------------------------------------------------


def test_an_oracle_whose_solution_fails(tmp_path: Path) -> None:
    solve = "echo trying; echo 0.5 > /app/reward; exit 3"
    task = many_steps(tmp_path, "", Part(solve, GIVES_WHAT_STANDS_IN_APP), Part(None), Part("true"))
    played = play(task)
    assert (played.result.outcome, played.result.verdict) == ("agent_error", "failed")
    one, two = played["one"].turn, played["two"].turn
    assert one is not None
    assert two is not None
    assert (one.ended, one.exit_code, one.message) == ("error", 3, "solve.sh exited with 3: trying")
    assert played.read(one.log or "") == "trying\n"
    assert played["one"].outcome == "agent_error"
    # without a solution the oracle has failed, and is graded: the step asks for nothing
    assert (two.ended, two.message) == ("error", "the task has no solve.sh for step two")
    assert played["two"].outcome == "passed"
    assert played.result.reward_as_harbor == played.result.reward == pytest.approx(2.5 / 3)
    exceptions = [s["exception_info"] for s in played.json("result.json")["step_results"]]
    assert exceptions[0]["exception_type"] == "NonZeroAgentExitCodeError"


def test_the_task_s_solution_serves_steps_without_one(tmp_path: Path) -> None:
    root = {
        "solution/solve.sh": "#!/bin/bash\necho root $(cat /solution/helper)\n",
        "solution/helper": "h",
    }
    task = many_steps(tmp_path, "", Part("echo own"), Part(None), **root)
    played = play(task)
    assert played.read("steps/one/agent/oracle.txt") == "own\n"
    assert played.read("steps/two/agent/oracle.txt") == "root h\n"


def test_a_command_as_agent(tmp_path: Path) -> None:
    command = (
        "read -r line; echo \"$line\" > said; env | grep -E '^(HARBOR|MINE)' | sort; pwd; exit 0"
    )
    toml = '[environment]\nworkdir = "/app"\n'
    recipe = {
        "agent.command": command,
        "agent.model": "acme/m-1",
        "agent.effort": "high",
        "agent.env.MINE": "yes-it-is-mine",
    }
    test = "grep -x 'Do it.' /app/said && " + GIVES_1
    played = play(one_step(tmp_path, toml, test=test), "command", recipe=recipe)
    assert (played.result.outcome, played.result.reward) == ("passed", 1)
    assert played.read("agent/command.txt").splitlines() == [
        "HARBOR_EFFORT=high",
        "HARBOR_INSTRUCTION_FILE=/logs/agent/instruction.md",
        "HARBOR_MCP_FILE=/logs/agent/mcp.json",
        "HARBOR_MODEL=acme/m-1",
        "MINE=yes-it-is-mine",
        "/app",
    ]
    assert played.json("agent/mcp.json") == {"mcpServers": {}}
    agent = played.result.agent
    assert agent is not None
    assert (agent.name, agent.model) == ("command", "acme/m-1")
    harbor = played.json("result.json")
    assert harbor["agent_info"]["model_info"] == {"name": "m-1", "provider": "acme"}
    failing = play(one_step(tmp_path), CommandAgent("exit 5"))
    assert failing[0].turn is not None
    assert failing[0].turn.message == "the command exited with 5: no output"


# -- recipe ----------------------------------------------------------------------------------


def test_a_provoked_outcome_counts_as_zero_and_the_gate_sees_it(tmp_path: Path) -> None:
    parts = (Part(test="exit 1", toml="min_reward = 0.5"), Part())
    recipe = {"count_as_zero": ["no_reward"]}
    result = play(many_steps(tmp_path, "", *parts), recipe=recipe).result
    assert (result.outcome, result.reward, result.steps_run) == ("gate_stopped", 0, 1)
    assert result.reward_as_harbor is None


def test_until_a_step(tmp_path: Path) -> None:
    task = many_steps(tmp_path, "", Part(), Part(), Part())
    result = play(task, recipe={"until_step": "two"}).result
    assert (result.outcome, result.verdict, result.reward) == ("interrupted", "error", None)
    assert [step.reward for step in result.steps] == [1, 1, None]
    assert "stopped after step two as asked" in result.verdict_reason
    result = play(task, recipe={"until_step": "nine"}).result
    assert result.fault is not None
    assert result.fault.message == (
        "a test: until_step: a-task has no step 'nine'; its steps are one, two, three"
    )


def test_a_group_that_is_kept(tmp_path: Path) -> None:
    test = "touch /tmp/secret; " + GIVES_1
    played = play(one_step(tmp_path, test=test), recipe={"keep": True}, look=lambda g: g)
    group: Group = played.seen
    try:
        (warning,) = played.result.warnings
        assert group.project in warning
        assert "is kept as asked; remove it with: " in warning
        assert "docker" in warning
    finally:
        remove(group.project)


def remove(project: str) -> None:
    engine = an_engine()
    assert janitor.remove_project(engine, project, soon()).warnings == ()
    engine.close()


# -- records ---------------------------------------------------------------------------------


TALKATIVE = """
services:
  main: {}
  side:
    image: debian:bookworm-slim
    command: sh -c "echo $${T}; sleep infinity"
    init: true
    environment: {T: "${GIVEN}"}
"""


def test_what_a_run_folder_says(tmp_path: Path) -> None:
    secret = "canary-9f8e7d6c5b4a3921"
    toml = '[verifier.env]\nAPI_KEY = "${API_KEY}"\n[environment.env]\nMODEL_TOKEN = "${API_KEY}"\n'
    says = "echo $MODEL_TOKEN $(echo -n $MODEL_TOKEN | base64)"
    says += "; echo $MODEL_TOKEN > /logs/artifacts/token"
    test = 'echo $API_KEY; echo "no number: $API_KEY" > /logs/verifier/reward.txt; exit 1'
    files = {"environment/docker-compose.yaml": TALKATIVE}
    task = one_step(tmp_path, toml, solve=says + "; exit 1", test=test, **files)
    given = "canary-operator-value"
    recipe = {"compose_variables.GIVEN": given, "agent.env.MY_PASSWORD": "canary-pass"}
    played = play(task, host={"API_KEY": secret, "UNRELATED": "x"}, recipe=recipe)
    assert played.result.outcome == "reward_unreadable"
    assert "canary-" not in played.everything
    assert played.read("services/side.log") == "[redacted]\n"
    assert "[redacted]" in played.read("agent/oracle.txt")
    assert "[redacted]" in (played.result.fault.message if played.result.fault else "")
    assert played.result.host_names_asked == ("API_KEY",)
    assert set(played.result.images) == {"main", "side"}
    assert all(image.startswith("sha256:") for image in played.result.images.values())
    assert played.result.task_digest
    assert set(played.result.phases) == {"group", "start", "agent-setup", "grants"}
    document = played.json("result.json")
    assert document["pytest_harbor"] == played.result.plain()
    assert document["trial_name"] == played.folder.name
    assert {row.key: row.value for row in played.result.recipe}["agent.env.MY_PASSWORD"] == "***"


LEDGER = Path(__file__).parents[1] / "tasks" / "ledger-two-step"


def test_the_worked_example_of_the_format(tmp_path: Path) -> None:
    """Section 16 of the format's description, with the rewards that Harbor 0.26 gave it."""
    task = Path(shutil.copytree(LEDGER, tmp_path / LEDGER.name))
    played = play(task)
    assert played.result.rewards == {"reward": 1.0, "entries": 0.5}
    assert (played.result.reward, played.result.reward_as_harbor) == (1.0, 1.0)
    assert played["record"].grade is not None
    assert played["record"].grade.rewards == {"reward": 1, "entries": 1}
    for step in ("record", "report"):
        assert played.json(f"steps/{step}/artifacts/ledger.json") == [40, 2]
        assert (played.folder / f"steps/{step}/artifacts/manifest.json").exists()
    document = played.json("result.json")
    assert document["verifier_result"] == {"rewards": {"reward": 1.0, "entries": 0.5}}
    nothing = play(task, "nop").result
    assert (nothing.outcome, nothing.reward, nothing.steps_run) == ("gate_stopped", 0, 1)


# -- the lease -------------------------------------------------------------------------------


def test_a_lease_is_renewed_for_another_try(tmp_path: Path) -> None:
    """Outside of pytest: the caller owns lease and record, and the episode opens the record."""
    task = one_step(tmp_path, solve="ls /app; touch /app/mine")
    recipe = make_recipe([])
    plan = make_plan(load_task(task), recipe, find_agent(recipe), {})
    engine = an_engine()

    def played(lease: Lease, name: str) -> tuple[EpisodeRecord, str]:
        record = EpisodeRecord(
            EpisodeFolder(tmp_path / "job", name), key=name, task="t", task_path="t"
        )
        assert run_episode(lease, record).outcome == "passed"
        return record, lease.group.container_id("main")

    with Lease(plan, engine, an_owner(), "key") as lease:
        assert not lease.is_started
        _, first = played(lease, "first")
        lease.renew()
        assert lease.is_started
        record, second = played(lease, "second")
        assert first != second
        assert (record.folder.path / "agent/oracle.txt").read_text() == ""
    assert not lease.is_started
    assert lease.close() == ()
    with pytest.raises(SandboxError, match="start the lease first"):
        _ = lease.group
    engine.close()


def test_a_lease_that_did_not_start_is_not_started(tmp_path: Path) -> None:
    task = one_step(
        tmp_path, **{"environment/Dockerfile": "FROM debian:bookworm-slim\nRUN exit 9\n"}
    )
    played = play(task)
    assert (played.result.outcome, played.result.reward) == ("image_failed", None)
    assert played.result.fault is not None
    assert played.result.fault.phase == "group"
    assert "exit 9" in played.result.fault.message
    assert played.result.warnings == ()


# -- what an agent may break -----------------------------------------------------------------


def test_an_agent_that_removes_the_ground_under_the_test(tmp_path: Path) -> None:
    ends = "cd /; rm -rf /app"
    test = "pwd; [ -e keep ] || cd .. && echo 0 > /logs/verifier/score; "
    test += "ln -s score /logs/verifier/reward.txt"
    played = play(
        many_steps(tmp_path, "", Part(ends, test), Part("pwd", test + "; rm -rf /app"), Part())
    )
    assert [step.reward for step in played.result.steps] == [0, 0, 1]
    made = "the working directory /app was not there; it was made, empty"
    assert [made in step.warnings for step in played.result.steps] == [True, False, True]
    assert played.read("steps/two/agent/oracle.txt") == "/app\n"


def test_an_agent_that_takes_the_shell_away(tmp_path: Path) -> None:
    """It earns what it would have earned with a test.sh that wrote nothing."""
    solve = "rm -f /bin/sh /bin/dash"
    played = play(one_step(tmp_path, solve=solve))
    assert (played.result.outcome, played.result.verdict) == ("no_reward", "error")
    assert played.result.fault is not None
    assert "test.sh could not be started" in played.result.fault.message
    zero = play(one_step(tmp_path, solve=solve), recipe={"count_as_zero": ["no_reward"]})
    assert (zero.result.outcome, zero.result.reward) == ("failed", 0)
