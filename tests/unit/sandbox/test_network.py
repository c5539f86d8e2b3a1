from __future__ import annotations

import time
from ipaddress import IPv4Network
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_harbor.errors import SandboxError
from pytest_harbor.sandbox import network
from pytest_harbor.sandbox.engine import Engine
from pytest_harbor.sandbox.network import Subnets, first_free, host_routes, is_clash, prefix_for
from pytest_harbor.sandbox.state import State, read_json
from pytest_harbor.task.timeouts import Deadline

POOL = IPv4Network("10.213.0.0/24")


def nets(*texts: str) -> list[IPv4Network]:
    return [IPv4Network(text) for text in texts]


@pytest.mark.parametrize(
    ("taken", "prefix", "expected"),
    [
        ([], 28, "10.213.0.0/28"),
        (["10.213.0.0/28"], 28, "10.213.0.16/28"),
        (["10.213.0.0/28", "10.213.0.32/28"], 28, "10.213.0.16/28"),
        (["10.213.0.0/28"], 26, "10.213.0.64/26"),
        (["10.213.0.4/30"], 28, "10.213.0.16/28"),
        (["10.213.0.0/25", "10.213.0.32/28"], 28, "10.213.0.128/28"),
        (["192.168.0.0/16"], 28, "10.213.0.0/28"),
        (["10.0.0.0/8"], 28, None),
        (["10.213.0.0/25", "10.213.0.128/25"], 28, None),
        (["10.213.0.240/28"], 25, "10.213.0.0/25"),
    ],
)
def test_the_first_gap_that_fits(taken: list[str], prefix: int, expected: str | None) -> None:
    found = first_free(POOL, prefix, nets(*taken))
    assert found == (IPv4Network(expected) if expected else None)


@given(st.lists(st.integers(24, 30), max_size=40))
def test_what_is_handed_out_never_overlaps(prefixes: list[int]) -> None:
    taken: list[IPv4Network] = []
    for prefix in prefixes:
        if (found := first_free(POOL, prefix, taken)) is not None:
            assert not any(found.overlaps(other) for other in taken)
            assert found.subnet_of(POOL)
            taken.append(found)


@pytest.mark.parametrize(("members", "prefix"), [(1, 28), (12, 28), (13, 27), (28, 27), (29, 26)])
def test_room_for_all_members(members: int, prefix: int) -> None:
    assert prefix_for(members) == prefix


@pytest.mark.parametrize(
    "message",
    [
        "failed to create network x: Error response from daemon: Pool overlaps with other one on "
        "this address space",
        "could not find an available, non-overlapping IPv4 address pool among the defaults to "
        "assign to the network",
        "Error response from daemon: all predefined address pools have been fully subnetted",
    ],
)
def test_the_engines_words_for_a_clash(message: str) -> None:
    assert is_clash(message)


def test_other_trouble_is_no_clash() -> None:
    assert not is_clash("Error response from daemon: driver failed programming external port")


def test_routes_of_this_host_have_no_default_route() -> None:
    assert all(net.prefixlen > 0 for net in host_routes())


class NoNetworks(Subnets):
    def _taken_by_engine(self) -> list[IPv4Network]:  # type: ignore[override]
        return []


@pytest.fixture
def subnets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Subnets:
    monkeypatch.setattr(network, "host_routes", list)
    return NoNetworks(Engine({}), State(tmp_path), [IPv4Network("10.213.0.0/27")])


def soon() -> Deadline:
    return Deadline.after(5, "test")


def test_two_reservations_differ_and_end_with_their_blocks(
    subnets: Subnets, tmp_path: Path
) -> None:
    with subnets.reserve({"a": 2}, soon()) as first, subnets.reserve({"b": 2}, soon()) as second:
        assert {first["a"], second["b"]} == {"10.213.0.0/28", "10.213.0.16/28"}
        with pytest.raises(SandboxError, match=r"No free subnet.*--harbor-clean"):
            subnets.reserve({"c": 1}, soon()).__enter__()
    assert read_json(tmp_path / "subnets.json") == {}


def test_a_refused_subnet_is_not_offered_again(subnets: Subnets) -> None:
    with subnets.reserve({"a": 2}, soon()) as first:
        subnets.refuse(first.values(), soon())
    with subnets.reserve({"a": 2}, soon()) as second:
        assert second != first


def test_a_reservation_whose_process_died_ends_by_itself(
    subnets: Subnets, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subnets.reserve({"a": 2, "b": 2}, soon()).__enter__()
    later = time.time() + 301
    monkeypatch.setattr(time, "time", lambda: later)
    with subnets.reserve({"a": 2}, soon()) as chosen:
        assert chosen == {"a": "10.213.0.0/28"}


def test_a_damaged_ledger_is_an_empty_one(subnets: Subnets, tmp_path: Path) -> None:
    (tmp_path / "subnets.json").write_text("{ torn")
    with subnets.reserve({"a": 2}, soon()) as chosen:
        assert chosen == {"a": "10.213.0.0/28"}


def test_no_network_in_need_costs_nothing(subnets: Subnets, tmp_path: Path) -> None:
    with subnets.reserve({}, soon()) as chosen:
        assert chosen == {}
    assert list(tmp_path.iterdir()) == []
