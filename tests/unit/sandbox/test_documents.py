"""Compose documents as data: nothing here runs Compose."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from pytest_harbor.sandbox import documents as docs


def document(main: dict[str, Any] | None = None, **others: Any) -> docs.Document:
    """A resolved document, as Compose prints it."""
    return {
        "name": "p",
        "networks": {"default": {"name": "p_default"}},
        "services": {
            "main": {"command": docs.KEEP_ALIVE, "networks": {"default": None}, **(main or {})},
            **others,
        },
    }


def settled(main: dict[str, Any] | None = None, **given: Any) -> dict[str, Any]:
    made = document(main)
    values: dict[str, Any] = {
        "environment": {}, "workdir": None, "cpus": None, "memory_mb": None, "entrypoint": None,
    }  # fmt: skip
    docs.settle_main(made, **(values | given))
    result: dict[str, Any] = made["services"]["main"]
    return result


NETWORKS = {
    "default": {"ipam": {"config": [{"subnet": "10.213.0.16/28"}]}},
    "inner": {"internal": True, "ipam": {"config": [{"subnet": "10.213.0.32/28"}]}},
    "fixed": {"ipam": {"config": [{"subnet": "10.9.0.0/24", "gateway": "10.9.0.254"}]}},
    "six": {"ipam": {"config": [{"subnet": "fd00::/64"}, {"subnet": "10.8.0.0/24"}]}},
    "elsewhere": {"external": True, "name": "elsewhere"},
    "overlay": {"driver": "overlay", "ipam": {"config": [{"subnet": "10.7.0.0/24"}]}},
    "open": None,
}


@pytest.mark.parametrize(
    ("service", "address"),
    [
        ({"networks": {"default": None}}, "10.213.0.17"),
        ({"networks": {"inner": None}}, "10.213.0.33"),
        ({"networks": {"fixed": None}}, "10.9.0.254"),
        ({"networks": {"six": None}}, "10.8.0.1"),
        ({"networks": {"elsewhere": None, "inner": None}}, "10.213.0.33"),
        ({"networks": {"overlay": None, "open": None}}, None),
        ({"network_mode": "host"}, "127.0.0.1"),
        ({"network_mode": "none"}, None),
        ({"network_mode": "service:main"}, "10.213.0.17"),
    ],
)
def test_where_a_service_reaches_this_host(service: dict[str, Any], address: str | None) -> None:
    made = document(side=service) | {"networks": NETWORKS}
    assert docs.host_addresses(made).get("side") == address


def test_texts_are_changed_wherever_they_stand_and_nothing_else() -> None:
    made = {"a": ["x old", 3, None, {"old": "old/old"}], "b": True}
    changed = docs.with_strings(made, {"old": "new"})
    assert changed == {"a": ["x new", 3, None, {"old": "new/new"}], "b": True}
    assert made["a"][0] == "x old"  # type: ignore[index]


def test_base_names_what_there_is() -> None:
    main = docs.base("im$age", None)["services"]["main"]
    assert main == {"command": docs.KEEP_ALIVE, "image": "im$$age"}
    main = docs.base(None, Path("/a$b"))["services"]["main"]
    assert main["build"] == {"context": "/a$$b"}


def test_values_are_escaped_and_win() -> None:
    main = settled({"environment": {"A": "theirs", "B": "b$$c"}}, environment={"A": "o$urs"})
    assert main["environment"] == {"A": "o$$urs", "B": "b$$c"}


@pytest.mark.parametrize(
    ("theirs", "expected"),
    [
        ({}, {"cpus": 2.0, "mem_limit": "536870912"}),
        ({"cpus": 4}, {"cpus": 4, "mem_limit": "536870912"}),
        ({"mem_limit": "1"}, {"cpus": 2.0, "mem_limit": "1"}),
        ({"deploy": {"resources": {"limits": {"cpus": 3, "memory": "9"}}}}, {}),
    ],
    ids=["none", "cpus", "memory", "deploy"],
)
def test_the_tasks_own_limits_win(theirs: dict[str, Any], expected: dict[str, Any]) -> None:
    main = settled(theirs, cpus=2.0, memory_mb=512)
    assert {key: main[key] for key in ("cpus", "mem_limit") if key in main} == expected


@pytest.mark.parametrize(
    ("main", "entrypoint", "has_init"),
    [
        ({}, None, True),
        ({"command": ["python", "server.py"]}, None, True),
        ({}, ["/docker-entrypoint.sh"], True),
        ({}, ["/init"], False),
        ({}, ["/usr/bin/tini", "--"], False),
        ({"command": ["/lib/systemd/systemd"]}, None, False),
        ({"entrypoint": ["/run.sh"]}, ["/init"], True),
        ({"init": False}, None, False),
    ],
)
def test_init_unless_there_is_one(
    main: dict[str, Any], entrypoint: list[str] | None, has_init: bool
) -> None:
    assert bool(settled(main, entrypoint=entrypoint).get("init")) is has_init


WAITS = {"depends_on": {"db": {"condition": "service_healthy", "required": True}}}


def test_main_that_only_stays_up_does_not_wait() -> None:
    assert "depends_on" not in settled(copy.deepcopy(WAITS))
    assert settled({}, workdir="/work")["working_dir"] == "/work"
    assert settled({"working_dir": "/theirs"}, workdir="/work")["working_dir"] == "/theirs"


@pytest.mark.parametrize(
    ("main", "entrypoint"),
    [({"command": ["server"]}, None), ({"entrypoint": ["x"]}, None), ({}, ["/entrypoint.sh"])],
)
def test_main_that_does_something_waits_and_works_where_its_image_says(
    main: dict[str, Any], entrypoint: list[str] | None
) -> None:
    made = settled({**main, **copy.deepcopy(WAITS)}, entrypoint=entrypoint, workdir="/work")
    assert made["depends_on"] == WAITS["depends_on"]
    assert "working_dir" not in made


@pytest.mark.parametrize(
    "shared", [{"network_mode": "service:db"}, {"volumes_from": ["db"]}, {"pid": "service:db"}]
)
def test_an_order_that_creation_needs_is_kept(shared: dict[str, Any]) -> None:
    made = settled({**copy.deepcopy(WAITS), **shared})
    assert made["depends_on"]["db"]["condition"] == "service_started"


def test_who_must_complete() -> None:
    made = document(
        {
            "depends_on": {
                "init": {"condition": "service_completed_successfully"},
                "db": {"condition": "service_healthy"},
            }
        }
    )
    assert docs.must_complete(made) == {"init"}
    assert docs.must_complete(document()) == frozenset()


def test_nothing_that_two_groups_would_share() -> None:
    made = document(
        {
            "container_name": "boo",
            "profiles": [],
            "ports": [
                {"target": 80, "published": "38765", "host_ip": "127.0.0.1"},
                {"target": 81},
                {"target": 82, "published": "0"},
            ],
        }
    )
    made["volumes"] = {
        "own": {"name": "p_own"},
        "fixed": {"name": "shared"},
        "theirs": {"name": "x", "external": True},
    }
    changed = docs.isolate(made)
    main = made["services"]["main"]
    assert "container_name" not in main
    assert main["networks"]["default"]["aliases"] == ["boo"]
    assert [port.get("published") for port in main["ports"]] == [None, None, None]
    assert {key: entry["name"] for key, entry in made["volumes"].items()} == {
        "own": "p_own", "fixed": "p_fixed", "theirs": "x",
    }  # fmt: skip
    assert len(changed) == 3
    assert "127.0.0.1:38765" in changed[1]
    assert docs.isolate(document()) == ()


def test_labels_on_all_that_is_created() -> None:
    made = document({"labels": {"a": "b"}})
    made["volumes"] = {"v": None, "x": {"external": True}}
    docs.label(made, {"l": "5$"})
    assert made["services"]["main"]["labels"] == {"a": "b", "l": "5$$"}
    assert made["networks"]["default"] == {"name": "p_default", "labels": {"l": "5$$"}}
    assert made["volumes"] == {"v": {"labels": {"l": "5$$"}}, "x": {"external": True}}


PROBE = {"test": ["CMD", "true"]}


@pytest.mark.parametrize(
    ("check", "image", "start_interval", "interval", "allowed"),
    [
        ({**PROBE, "interval": "2s", "retries": 5}, {}, "100ms", "10s", 10),
        (PROBE, {}, "100ms", "30s", 90),
        ({**PROBE, "interval": "1m30s", "start_period": "5s"}, {}, "100ms", "90s", 275),
        ({**PROBE, "start_period": "5s", "start_interval": "1s"}, {}, "1s", "30s", 95),
        ({}, {"Test": ["CMD", "x"], "Interval": 2 * 10**9, "Retries": 4}, "100ms", "10s", 8),
        ({}, {"Test": ["CMD", "x"], "StartPeriod": 10**9}, "100ms", "30s", 91),
        ({}, {"Test": ["CMD", "x"], "StartInterval": 10**9}, None, "30s", 90),
    ],
)
def test_probes_are_frequent_until_healthy_and_seldom_then(
    check: dict[str, Any],
    image: dict[str, Any],
    start_interval: str | None,
    interval: str,
    allowed: float,
) -> None:
    made = document({"healthcheck": dict(check)} if check else {})
    assert docs.hasten_healthchecks(made, {"main": image}) == {"main": allowed}
    got = made["services"]["main"]["healthcheck"]
    assert got.get("start_interval") == start_interval
    assert (got["interval"], got["start_period"]) == (interval, f"{allowed:g}s")


def test_where_compose_waits_the_task_decides_when_to_give_up() -> None:
    check = {**PROBE, "interval": "1s", "retries": 5}
    waits = {"depends_on": {"db": {"condition": "service_healthy"}}}
    made = document({}, db={"healthcheck": dict(check)}, api=waits)
    assert docs.hasten_healthchecks(made, {}) == {"db": 5}
    expected = {**check, "start_interval": "100ms", "start_period": "5s"}
    assert made["services"]["db"]["healthcheck"] == expected


@pytest.mark.parametrize(
    ("check", "image"),
    [
        ({"disable": True}, {"Test": ["CMD", "x"]}),
        ({"test": ["NONE"]}, {"Test": ["CMD", "x"]}),
        ({}, {"Test": ["NONE"]}),
        ({}, {}),
    ],
)
def test_a_service_without_healthcheck_gets_none(
    check: dict[str, Any], image: dict[str, Any]
) -> None:
    made = document({"healthcheck": dict(check)} if check else {})
    assert docs.hasten_healthchecks(made, {"main": image}) == {}
    assert (made["services"]["main"].get("healthcheck") or {}) == check


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1s", 1), ("1m30s", 90), ("100ms", 0.1), ("1h0m0s", 3600), ("1.5s", 1.5), (None, 0), ("", 0)],
)
def test_durations(text: str | None, expected: float) -> None:
    assert docs.seconds(text) == pytest.approx(expected)


def test_which_networks_take_addresses() -> None:
    side = {"networks": {"default": None, "back": None}, "deploy": {"replicas": 3}}
    made = document({}, side=side, alone={"network_mode": "host"})
    made["networks"] |= {
        "back": {"name": "p_back", "driver": "bridge", "ipam": {}},
        "unused": {"name": "p_unused"},
    }
    assert docs.networks_in_need(made) == {"default": 4, "back": 3}
    for entry in (
        {"external": True},
        {"driver": "macvlan"},
        {"ipam": {"config": [{"subnet": "x"}]}},
    ):
        made["networks"]["back"] = entry
        assert docs.networks_in_need(made) == {"default": 4}
    docs.number_networks(made, {"default": "10.0.0.0/28"})
    assert made["networks"]["default"]["ipam"] == {"config": [{"subnet": "10.0.0.0/28"}]}


def test_images_are_pinned_and_not_built_again() -> None:
    made = document({"build": {"context": "/c"}, "image": "name", "pull_policy": "build"})
    docs.pin_images(made, {"main": "sha256:1"})
    main = made["services"]["main"]
    assert main["image"] == "sha256:1"
    assert not {"build", "pull_policy"} & set(main)


def test_what_up_could_read_from_its_own_environment() -> None:
    made = document({"environment": {"A": None, "B": "b"}, "build": {"args": {"C": None, "D": ""}}})
    made["secrets"] = {"s": {"environment": "TOKEN"}, "f": {"file": "/x"}}
    made["configs"] = {"c": {"environment": "GIVEN"}}
    assert docs.close_environment(made, ["GIVEN"]) == ("TOKEN",)
    main = made["services"]["main"]
    assert main["environment"] == {"B": "b"}
    assert main["build"]["args"] == {"D": ""}


def test_folders_of_the_host() -> None:
    made = document(
        {
            "volumes": [
                {"type": "bind", "source": "/task/environment/f"},
                {"type": "bind", "source": "/var/run/docker.sock"},
                {"type": "volume", "source": "data"},
                {"type": "bind", "source": "/task/environment-2/f$$x"},
            ]
        }
    )
    assert docs.host_paths(made, Path("/task/environment")) == (
        "main: /var/run/docker.sock",
        "main: /task/environment-2/f$x",
    )
