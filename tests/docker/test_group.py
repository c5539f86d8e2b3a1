"""Groups on the real engine: what they are made from, what they say, that they end."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from fake_compose import wrapped_compose
from groups import IMAGE, a_group, a_spec, an_engine, an_owner, environment, inside, soon

from pytest_harbor.errors import ImageError, SandboxError, TaskError
from pytest_harbor.sandbox.engine import Engine
from pytest_harbor.sandbox.group import Group
from pytest_harbor.task.timeouts import Deadline

pytestmark = pytest.mark.docker

SIDECAR = """
services:
  main:
    depends_on: {side: {condition: service_healthy}}
  side:
    image: debian:bookworm-slim
    init: true
    command: sh -c "echo hello from side; sleep 0.3; touch /ready; sleep infinity"
    healthcheck: {test: [CMD, test, -e, /ready], interval: 1s, retries: 20}
"""


def test_a_group_with_a_sidecar(tmp_path: Path) -> None:
    place = environment(tmp_path, SIDECAR, Dockerfile=f"FROM {IMAGE}\nWORKDIR /app\n")
    with a_group(a_spec(place, cpus=1.5, memory_mb=300)) as group:
        assert set(group.services) == {"main", "side"}
        assert all(image.startswith("sha256:") for image in group.images.values())
        assert group.state("side").health == "healthy"
        assert group.state("main").running
        assert b"hello from side" in group.logs("side")
        assert inside(group, "getent hosts side").split()[0] == group.address("side")
        main = group.container("main")
        assert main.workdir == "/app"
        host = main.facts["HostConfig"]
        assert (host["NanoCpus"], host["Memory"]) == (1_500_000_000, 300 * 1024 * 1024)
        assert inside(group, "cat /proc/1/comm") == "docker-init"


def test_an_image_alone_is_enough() -> None:
    with a_group(a_spec(docker_image=IMAGE, workdir="/not/there/yet")) as group:
        assert group.services == ("main",)
        assert inside(group, "pwd") == "/not/there/yet"
        with pytest.raises(SandboxError, match=r"no container of a service 'side'.*it has: main"):
            group.container("side")


def test_the_tasks_own_command_is_kept_and_waits_for_what_it_needs(tmp_path: Path) -> None:
    compose = SIDECAR.replace(
        "  main:\n",
        f"  main:\n    image: {IMAGE}\n"
        '    command: sh -c "getent hosts side >/began; sleep infinity"\n',
    )
    with a_group(a_spec(environment(tmp_path, compose), workdir="/work")) as group:
        assert inside(group, "cat /began") != ""
        started = {name: group.state(name).started_at for name in ("main", "side")}
        assert started["side"] < started["main"]


@pytest.mark.parametrize("dockerfile", [True, False])
def test_main_with_an_image_of_its_own(tmp_path: Path, dockerfile: bool) -> None:
    """Sharp edge 54: Harbor tags its build with that name, or cannot build at all."""
    files = {"Dockerfile": f"FROM {IMAGE}\nRUN touch /built\n"} if dockerfile else {}
    place = environment(tmp_path, f"services: {{main: {{image: '{IMAGE}'}}}}", **files)
    engine = an_engine()
    before = engine.api.inspect_image(IMAGE)["Id"]
    with a_group(a_spec(place), engine) as group:
        assert inside(group, "ls /built || true") == ("/built" if dockerfile else "")
        assert any("only a name" in warning for warning in group.warnings) is dockerfile
    assert engine.api.inspect_image(IMAGE)["Id"] == before
    engine.close()


def test_the_older_form_with_our_image_name(tmp_path: Path) -> None:
    compose = """
services:
  main:
    image: ${MAIN_IMAGE_NAME}
    build: {context: "${CONTEXT_DIR}"}
    deploy: {resources: {limits: {cpus: "${CPUS}", memory: "${MEMORY}"}}}
  twin:
    image: ${MAIN_IMAGE_NAME}
    command: sleep infinity
    init: true
"""
    place = environment(tmp_path, compose, Dockerfile=f"FROM {IMAGE}\nRUN touch /built\n")
    with a_group(a_spec(place, cpus=1, memory_mb=256)) as group:
        assert group.images["main"] == group.images["twin"]
        assert inside(group, "ls /built", "twin") == "/built"
        assert group.container("main").facts["HostConfig"]["Memory"] == 256 * 1024 * 1024


def test_nothing_about_mains_image_is_the_tasks_fault(tmp_path: Path) -> None:
    engine = an_engine()
    with pytest.raises(TaskError, match="expected a Dockerfile"):
        Group(engine, a_spec(environment(tmp_path, "services: {main: {}}")), an_owner()).start(
            soon()
        )
    engine.close()


def test_a_ready_made_image_wins_over_the_dockerfile_unless_builds_are_forced(
    tmp_path: Path,
) -> None:
    place = environment(tmp_path, Dockerfile=f"FROM {IMAGE}\nRUN touch /built\n")
    for force, expected in ((False, ""), (True, "/built")):
        spec = a_spec(place, docker_image=IMAGE, force_build=force)
        with a_group(spec) as group:
            assert inside(group, "ls /built || true") == expected


def test_overlays_come_last(tmp_path: Path) -> None:
    place = environment(
        tmp_path, f"services: {{main: {{image: '{IMAGE}', environment: {{A: task}}}}}}"
    )
    overlay = tmp_path / "overlay.yaml"
    overlay.write_text("services: {main: {environment: {A: '${WHO}', B: overlay}}}")
    spec = a_spec(place, overlays=(overlay,), variables={"WHO": "operator"})
    with a_group(spec) as group:
        assert inside(group, "echo $A $B") == "operator overlay"


def test_healthchecks_of_images_are_waited_for(tmp_path: Path) -> None:
    dockerfile = (
        f"FROM {IMAGE}\nHEALTHCHECK --interval=20s CMD test -e /ready\n"
        'ENTRYPOINT ["sh", "-c", "sleep 0.5; touch /ready; sleep infinity"]\n'
    )
    place = environment(tmp_path, Dockerfile=dockerfile)
    began = time.monotonic()
    with a_group(a_spec(place)) as group:
        assert group.state("main").health == "healthy"
        assert time.monotonic() - began < 15  # well before the image's own first probe


def test_a_deadline_ends_the_start(tmp_path: Path) -> None:
    engine = an_engine()
    group = Group(engine, a_spec(environment(tmp_path, SIDECAR), docker_image=IMAGE), an_owner())
    with pytest.raises(SandboxError, match="the budget"):
        group.start(Deadline.after(0.05, "the budget"))
    assert group.close(soon()) == ()
    engine.close()


def test_a_dead_main_is_seen(tmp_path: Path) -> None:
    with a_group(a_spec(docker_image=IMAGE)) as group:
        group._engine.api.kill(group.container_id("main"))
        state = group.state("main")
        assert (state.running, state.exit_code) == (False, 137)
        group._engine.api.remove_container(group.container_id("main"), force=True)
        with pytest.raises(SandboxError) as caught:
            group.state("main")
        assert caught.value.outcome == "sandbox_died"


def test_a_renewed_group_is_a_fresh_one(tmp_path: Path) -> None:
    engine, owner = an_engine(), an_owner()
    place = environment(
        tmp_path,
        f"services: {{main: {{image: '{IMAGE}', volumes: ['data:/data']}}}}\n"
        "volumes: {data: {name: shared-by-name}}",
    )
    spec = a_spec(place)
    for _ in range(2):
        with a_group(spec, engine, owner) as group:
            assert inside(group, "ls /data; touch /data/seen") == ""
            assert any("private to the episode" in warning for warning in group.warnings)
    engine.close()


def test_images_that_cannot_be_had(tmp_path: Path) -> None:
    engine = an_engine()
    spec = a_spec(docker_image="localhost:1/no/such:image")
    with pytest.raises(ImageError, match=r"localhost:1/no/such:image.*docker pull") as caught:
        Group(engine, spec, an_owner()).start(soon(20))
    assert caught.value.outcome == "image_failed"
    engine.close()


def test_what_compose_resolves_is_what_it_starts(tmp_path: Path) -> None:
    """The canonical output goes back in as the only file: nothing may get lost on the way."""
    compose = f"""
x-common: &common {{image: "{IMAGE}", command: sleep infinity, init: true}}
include: [more.yaml]
services:
  main:
    image: {IMAGE}
    env_file: [main.env]
    environment: {{DOLLAR: "a$$b"}}
    extends: {{file: base.yaml, service: base}}
    tmpfs: ["/fast:size=1m"]
    cap_add: [NET_ADMIN]
    sysctls: {{net.ipv4.ip_forward: "0"}}
    ulimits: {{nofile: {{soft: 1000, hard: 2000}}}}
    extra_hosts: ["elsewhere:10.9.8.7"]
    configs: [{{source: note, target: /note}}]
    secrets: [token]
    volumes: ["./data:/data:ro", "named:/named"]
    networks:
      front: {{aliases: [also-main]}}
  many:
    <<: *common
    deploy: {{replicas: 2}}
    networks: [front, fixed]
    healthcheck: {{test: "test \\"$$HOME\\" = /root", interval: 1s}}
  never:
    <<: *common
    profiles: [debug]
networks:
  front: {{}}
  fixed: {{ipam: {{config: [{{subnet: 10.214.99.0/28}}]}}}}
volumes: {{named: {{}}}}
configs: {{note: {{content: "costs 5$$"}}}}
secrets: {{token: {{file: ./token}}}}
"""
    place = environment(
        tmp_path, compose,
        **{
            "main.env": "FROM_FILE='x$y'\n",
            "base.yaml": "services: {base: {hostname: extended}}",
            "more.yaml": f"services: {{included: {{image: '{IMAGE}', command: sleep infinity, "
            "init: true}}",
            "data/f": "bound",
            "token": "t0k",
        },
    )  # fmt: skip
    with a_group(a_spec(place)) as group:
        assert set(group.services) == {"main", "many", "included"}
        said = inside(
            group,
            "echo $FROM_FILE $DOLLAR; hostname; cat /note /run/secrets/token /data/f; echo; "
            "ulimit -n; df -k /fast | tail -1; getent hosts elsewhere also-main many",
        )
        assert said.startswith("x$y a$b\nextended\ncosts 5$t0kbound\n1000\ntmpfs")
        for words in ("1024", "10.9.8.7", "also-main"):
            assert words in said
        assert len(group._list()) == 4
        assert (group.address("many") or "").startswith("10.21")


class Door:
    """Stands at the addresses that it is told, and hands out where it would be."""

    mark = ".door.invalid"

    def __init__(self) -> None:
        self.told: list[str] = []

    def listen(self, address: str) -> dict[str, str]:
        self.told.append(address)
        return {"http://a.door.invalid": f"http://{address}:1/a"}

    def unlisten(self) -> None:
        self.told.append("nowhere")


DOOR = """
services:
  main: {image: "debian:bookworm-slim", environment: {URL: "${URL}/v1"}}
  side:
    image: debian:bookworm-slim
    command: sleep infinity
    init: true
    networks: [inner]
    environment: {URL: "${URL}"}
  quiet: {image: "debian:bookworm-slim", command: sleep infinity, init: true, networks: [third]}
networks: {inner: {internal: true}, third: {}}
"""


def test_a_door_is_where_each_service_that_names_it_sees_this_host(tmp_path: Path) -> None:
    door = Door()
    spec = a_spec(
        environment(tmp_path, DOOR), variables={"URL": "http://a.door.invalid"}, door=door
    )
    with a_group(spec) as group:
        main, side = (group.container(name) for name in ("main", "side"))
        networks = {
            name: next(iter(container.facts["NetworkSettings"]["Networks"].values()))
            for name, container in (("main", main), ("side", side))
        }
        address = networks["main"]["Gateway"]
        assert group.host_address == address
        assert main.image_env["URL"] == f"http://{address}:1/a/v1"
        inner = side.image_env["URL"].removeprefix("http://").removesuffix(":1/a")
        assert inner.rpartition(".")[0] == networks["side"]["IPAddress"].rpartition(".")[0]
        assert door.told == [address, inner]


def test_a_door_moves_when_the_engine_refuses_the_subnet(tmp_path: Path) -> None:
    refuse = (
        f"if [ $word = up ] && [ ! -e {tmp_path}/once ]; then touch {tmp_path}/once; "
        "echo 'Pool overlaps with other one on this address space' >&2; exit 1; fi"
    )
    door, engine = Door(), Engine(wrapped_compose(tmp_path, refuse))
    spec = a_spec(docker_image=IMAGE, door=door)
    group = Group(engine, spec, an_owner())
    try:
        group.start(soon())
        first, nowhere, second = door.told
        assert nowhere == "nowhere"
        assert first != second == group.host_address
    finally:
        group.close(soon())
        engine.close()


def test_a_service_without_a_way_to_this_host_is_named(tmp_path: Path) -> None:
    lonely = DOOR.replace("networks: [inner]", "network_mode: none")
    place = environment(tmp_path, lonely)
    spec = a_spec(place, variables={"URL": "http://a.door.invalid"}, door=Door())
    with pytest.raises(TaskError, match="side: no way to the model gateway"), a_group(spec):
        pass
