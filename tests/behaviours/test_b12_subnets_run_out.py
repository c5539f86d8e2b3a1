"""B12: more groups than the engine's own address pools hold; and its message when they are gone."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor
from ipaddress import IPv4Network
from pathlib import Path

import pytest
from docker.types import IPAMConfig, IPAMPool
from fake_compose import calls, wrapped_compose
from groups import a_group, a_spec, an_engine, an_owner, soon

from pytest_harbor.errors import SandboxError
from pytest_harbor.sandbox import network
from pytest_harbor.sandbox.engine import Engine
from pytest_harbor.sandbox.group import Group
from pytest_harbor.sandbox.network import Subnets
from pytest_harbor.sandbox.state import State

pytestmark = pytest.mark.docker

FULL = "Error response from daemon: all predefined address pools have been fully subnetted"


def test_the_engines_message_is_an_infrastructure_fault_with_advice(tmp_path: Path) -> None:
    engine = Engine(
        wrapped_compose(tmp_path, f'[ "$word" = up ] && {{ echo "{FULL}" >&2; exit 1; }}')
    )
    with pytest.raises(SandboxError, match=r"fully subnetted.*pytest --harbor-clean") as caught:
        Group(engine, a_spec(), an_owner()).start(soon())
    assert caught.value.outcome == "start_failed"
    assert calls(tmp_path).count("up") == 4
    engine.close()


def test_a_subnet_that_the_engine_refuses_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = an_engine(tmp_path / "state")
    pool = IPv4Network("10.214.77.0/27")
    monkeypatch.setattr(network, "POOLS", (pool,))
    monkeypatch.setattr(network, "host_routes", list)
    monkeypatch.setattr(Subnets, "_taken_by_engine", lambda _: [])
    hidden = engine.api.create_network(
        f"hidden-{uuid.uuid4().hex[:8]}",
        ipam=IPAMConfig(pool_configs=[IPAMPool(subnet="10.214.77.0/28")]),
    )
    try:
        with a_group(a_spec(), engine) as group:
            assert (group.address("main") or "").startswith("10.214.77.1")
            assert IPv4Network("10.214.77.16/28").supernet_of(
                IPv4Network(f"{group.address('main')}/32")
            )
    finally:
        engine.api.remove_network(hidden["Id"])
        engine.close()


@pytest.mark.slow
def test_sixty_networks_at_once(tmp_path: Path) -> None:
    engine = an_engine()
    subnets = Subnets(engine, State.of(engine.environment))
    name = f"sixty-{uuid.uuid4().hex[:8]}"

    def create(number: int) -> str:
        with subnets.reserve({"default": 2}, soon()) as chosen:
            ipam = IPAMConfig(pool_configs=[IPAMPool(subnet=chosen["default"])])
            made = engine.api.create_network(f"{name}-{number}", ipam=ipam, check_duplicate=None)
        return str(made["Id"])

    with ThreadPoolExecutor(6) as pool:
        try:
            made = list(pool.map(create, range(60)))
        finally:
            found = engine.api.networks(names=[name])
            list(pool.map(engine.api.remove_network, [entry["Id"] for entry in found]))
    assert len(set(made)) == 60
    engine.close()
