"""Compose files as data: the base that stands under a task's file, and what is ours on top.

Compose itself merges and resolves (:mod:`~pytest_harbor.sandbox.compose`); the functions here
only fill in its canonical output, in which every ``$`` is escaped, every path absolute and every
list in its long form. What the task's file says stays, unless two episodes would clash by it.
"""

from __future__ import annotations

import contextlib
import ipaddress
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

Document = dict[str, Any]

KEEP_ALIVE: Final = ["sh", "-c", "sleep infinity"]
"""What ``main`` runs unless image or task decide otherwise (harbor-format 6.1)."""

PROBE_WHILE_STARTING: Final = "100ms"
PROBE_WHEN_HEALTHY: Final = 10.0
"""The shortest interval, in seconds, once a service has been healthy."""

DEFAULT_INTERVAL: Final = 30.0
DEFAULT_RETRIES: Final = 3
"""The engine's values for a healthcheck that names none."""

_INIT_SYSTEMS: Final = frozenset(
    {"init", "systemd", "s6-svscan", "s6-overlay-init", "runit-init", "tini", "dumb-init"}
)
"""Programs that must be, or already are, process 1."""

_SHARING: Final = ("network_mode", "ipc", "pid", "uts")


def base(image: str | None, context: Path | None) -> Document:
    """The document under the task's own: how ``main`` gets its image, and that it stays up."""
    main: Document = {"command": KEEP_ALIVE}
    if image is not None:
        main["image"] = escape(image)
    if context is not None:
        main["build"] = {"context": escape(str(context))}
    return {"services": {"main": main}}


def alone(project: str, image: str | None, context: Path | None) -> Document:
    """What Compose would make of :func:`base` without any other file."""
    document = base(image, context)
    main = document["services"]["main"]
    if context is not None:
        main["build"]["dockerfile"] = "Dockerfile"
    main |= {"entrypoint": None, "networks": {"default": None}}
    return {"name": project, "networks": {"default": {"name": f"{project}_default"}}} | document


def settle_main(
    document: Document,
    *,
    environment: Mapping[str, str],
    workdir: str | None,
    cpus: float | None,
    memory_mb: int | None,
    entrypoint: Iterable[str] | None,
) -> None:
    """Give ``main`` its environment, literally, and what else its file leaves open.

    ``entrypoint`` is the image's own. ``main`` gets an init process, unless it brings one that
    must be process 1 (an s6 image would die); it dies quickly when asked.
    """
    main = document["services"]["main"]
    main["environment"] = _without_unset(main.get("environment")) | {
        name: escape(value) for name, value in environment.items()
    }
    limits = ((main.get("deploy") or {}).get("resources") or {}).get("limits") or {}
    if cpus is not None and "cpus" not in main and "cpus" not in limits:
        main["cpus"] = cpus
    if memory_mb is not None and "mem_limit" not in main and "memory" not in limits:
        main["mem_limit"] = str(memory_mb * 1024 * 1024)
    starts_with = [*(main.get("entrypoint") or entrypoint or ()), *(main.get("command") or ())]
    if "init" not in main and not (starts_with and Path(starts_with[0]).name in _INIT_SYSTEMS):
        main["init"] = True
    main["stop_grace_period"] = "1s"
    if keeps_alive(document, entrypoint):
        if workdir is not None:
            main.setdefault("working_dir", escape(workdir))
        _start_at_once(main)


def keeps_alive(document: Document, entrypoint: Iterable[str] | None) -> bool:
    """Whether ``main`` does nothing but stay up: our command, and no entrypoint around it."""
    main = document["services"]["main"]
    return main.get("command") == KEEP_ALIVE and not (main.get("entrypoint") or entrypoint)


def must_complete(document: Document) -> frozenset[str]:
    """The services that have to have ended well before ``main`` may be used."""
    depends_on: Document = document["services"]["main"].get("depends_on") or {}
    return frozenset(
        name
        for name, dependency in depends_on.items()
        if dependency.get("condition") == "service_completed_successfully"
    )


def _start_at_once(main: Document) -> None:
    """Do not let Compose wait for what main depends on; the group waits for the same by itself.

    Compose looks twice a second. Where a container is needed to create main (a shared network
    namespace, say), only the order is kept.
    """
    shares = any(
        str(main.get(kind, "")).startswith(("service:", "container:")) for kind in _SHARING
    )
    if shares or main.get("volumes_from") or main.get("links"):
        for condition in (main.get("depends_on") or {}).values():
            condition["condition"] = "service_started"
    else:
        main.pop("depends_on", None)


def close_environment(document: Document, visible: Iterable[str]) -> tuple[str, ...]:
    """Drop pass-through variables, so that ``up`` cannot read them from its own environment.

    Returns the names that secrets and configs take from the environment and that are not among
    ``visible``: nothing can be put in their place.
    """
    for service in document["services"].values():
        service["environment"] = _without_unset(service.get("environment"))
        if (build := service.get("build")) and build.get("args"):
            build["args"] = _without_unset(build["args"])
    sources = (*_section(document, "secrets"), *_section(document, "configs"))
    asked = [str(source["environment"]) for source in sources if source.get("environment")]
    return tuple(name for name in dict.fromkeys(asked) if name not in set(visible))


def isolate(document: Document) -> tuple[str, ...]:
    """Make the group unable to clash with another one: no fixed container, volume or port names.

    A container's fixed name stays reachable as a network alias, a fixed host port becomes a free
    one. Returns what was changed, for the operator.
    """
    changed = []
    for name, service in document["services"].items():
        service.pop("profiles", None)
        if fixed := service.pop("container_name", None):
            for network, attached in (service.get("networks") or {}).items():
                attached = attached or {}
                attached["aliases"] = [*attached.get("aliases", []), fixed]
                service["networks"][network] = attached
            changed.append(f"{name}: container_name {fixed} is a network alias only")
        for port in service.get("ports") or ():
            if (published := port.pop("published", None)) not in (None, "", "0"):
                where = f"{port['host_ip']}:" if port.get("host_ip") else ""
                changed.append(
                    f"{name}: the fixed host port {where}{published} is a free one, "
                    "so that two episodes can run at once"
                )
    project = document["name"]
    for kind in ("networks", "volumes"):
        for key, entry in (document.get(kind) or {}).items():
            own = f"{project}_{key}"
            if entry and not entry.get("external") and entry.get("name", own) != own:
                changed.append(f"{kind[:-1]} {key}: {entry['name']} is private to the episode")
                entry["name"] = own
    return tuple(changed)


def label(document: Document, labels: Mapping[str, str]) -> None:
    """Put labels on everything that ``up`` creates."""
    ours = {name: escape(value) for name, value in labels.items()}
    for service in document["services"].values():
        service["labels"] = (service.get("labels") or {}) | ours
    for kind in ("networks", "volumes"):
        for key, entry in (document.get(kind) or {}).items():
            if not (entry or {}).get("external"):
                document[kind][key] = (entry or {}) | {
                    "labels": ((entry or {}).get("labels") or {}) | ours
                }


def hasten_healthchecks(
    document: Document, of_images: Mapping[str, Mapping[str, Any]]
) -> dict[str, float]:
    """Let the engine probe often until a service is healthy for the first time, and seldom then.

    ``start_interval`` does nothing without a ``start_period``; that gets all the time in which
    probes may fail, so that ``interval`` counts only afterwards. Then nobody waits for a verdict
    any more, and a probe in Python costs 0.15 CPU seconds. Where Compose itself waits, the engine
    must give its verdict in the task's own time. ``of_images`` holds, by service, the healthcheck
    of its image. Returns, by service, the seconds in which probes may fail.
    """
    allowed: dict[str, float] = {}
    awaited = _awaited(document)
    for name, service in document["services"].items():
        check = service.get("healthcheck") or {}
        image = of_images.get(name) or {}
        if (
            check.get("disable")
            or (check.get("test") or image.get("Test") or ["NONE"])[0] == "NONE"
        ):
            continue
        allowed[name] = patience(check, image)
        if "start_interval" not in check and not image.get("StartInterval"):
            check["start_interval"] = PROBE_WHILE_STARTING
        if name not in awaited:
            check["start_period"] = f"{allowed[name]:g}s"
            check["interval"] = f"{max(interval(check, image), PROBE_WHEN_HEALTHY):g}s"
        elif "start_period" not in check and not image.get("StartPeriod"):
            check["start_period"] = f"{allowed[name]:g}s"
        service["healthcheck"] = check
    return allowed


def _awaited(document: Document) -> frozenset[str]:
    """Services for whose health Compose waits before it starts another one."""
    return frozenset(
        name
        for service in document["services"].values()
        for name, dependency in (service.get("depends_on") or {}).items()
        if dependency.get("condition") == "service_healthy"
    )


def interval(check: Mapping[str, Any], image: Mapping[str, Any]) -> float:
    """Seconds between probes, as the task or the image says."""
    return seconds(check.get("interval")) or image.get("Interval", 0) / 1e9 or DEFAULT_INTERVAL


def patience(check: Mapping[str, Any], image: Mapping[str, Any]) -> float:
    """Seconds of failing probes, one per interval, after which a service counts as unhealthy."""
    retries = check.get("retries") or image.get("Retries") or DEFAULT_RETRIES
    before = seconds(check.get("start_period")) or image.get("StartPeriod", 0) / 1e9
    return float(before + interval(check, image) * retries)


def networks_in_need(document: Document) -> dict[str, int]:
    """Networks that would take a subnet from the engine's own small pools, and their members.

    Not those that are external, declare addresses themselves, or use another driver than bridge.
    """
    members: dict[str, int] = {}
    for service in document["services"].values():
        copies = ((service.get("deploy") or {}).get("replicas")) or service.get("scale") or 1
        for network in service.get("networks") or ():
            members[network] = members.get(network, 0) + copies
    return {
        key: members[key]
        for key, entry in (document.get("networks") or {}).items()
        if key in members
        and not (entry or {}).get("external")
        and (entry or {}).get("driver") in (None, "", "bridge")
        and not ((entry or {}).get("ipam") or {}).get("config")
    }


def number_networks(document: Document, subnets: Mapping[str, str]) -> None:
    """Give networks explicit subnets."""
    for key, subnet in subnets.items():
        document["networks"][key] = (document["networks"][key] or {}) | {
            "ipam": {"config": [{"subnet": subnet}]}
        }


def host_addresses(document: Document) -> dict[str, str]:
    """By service, the address at which it reaches this host: that of one of its own bridges.

    Networks have their subnets by now. Services without such a bridge are left out.
    """
    found = ((name, _host_address(document, name)) for name in document["services"])
    return {name: address for name, address in found if address is not None}


def _host_address(document: Document, service: str) -> str | None:
    definition = document["services"].get(service) or {}
    mode = str(definition.get("network_mode") or "")
    if mode == "host":
        return "127.0.0.1"
    if mode.startswith("service:"):
        return _host_address(document, mode.removeprefix("service:"))
    networks = document.get("networks") or {}
    bridges = (networks.get(key) or {} for key in definition.get("networks") or ())
    return next((address for bridge in bridges if (address := _gateway(bridge))), None)


def _gateway(network: Document) -> str | None:
    """The address that the engine gives to the host's end of a bridge."""
    if network.get("external") or network.get("driver") not in (None, "", "bridge"):
        return None
    for config in (network.get("ipam") or {}).get("config") or ():
        with contextlib.suppress(ValueError):
            if config.get("gateway"):
                return str(ipaddress.IPv4Address(config["gateway"]))
            return str(ipaddress.IPv4Network(config.get("subnet", ""), strict=False)[1])
    return None


def with_strings(data: Any, found: Mapping[str, str]) -> Any:
    """Document data in which each text has the new in place of the old."""
    if isinstance(data, str):
        for old, new in found.items():
            data = data.replace(old, new)
        return data
    if isinstance(data, dict):
        return {key: with_strings(value, found) for key, value in data.items()}
    return [with_strings(each, found) for each in data] if isinstance(data, list) else data


def pin_images(document: Document, images: Mapping[str, str]) -> None:
    """Let every service run exactly the image that was found, and let ``up`` build nothing."""
    for name, service in document["services"].items():
        service["image"] = images[name]
        service.pop("build", None)
        service.pop("pull_policy", None)


def mount_tools(document: Document, tools: Mapping[str, str]) -> None:
    """Let ``main`` see volumes that the engine has already, by where it shall find them."""
    for place, volume in tools.items():
        mount = {"type": "volume", "source": volume, "target": place, "read_only": True}
        main = document["services"]["main"]
        main["volumes"] = [*(main.get("volumes") or ()), mount | {"volume": {"nocopy": True}}]
        document["volumes"] = (document.get("volumes") or {}) | {
            volume: {"external": True, "name": volume}
        }


def host_paths(document: Document, inside: Path | None) -> tuple[str, ...]:
    """Folders of the host outside the task that services mount, ``service: path`` each."""
    return tuple(
        f"{name}: {source}"
        for name, service in document["services"].items()
        for volume in service.get("volumes") or ()
        if volume.get("type") == "bind"
        and (source := unescape(volume.get("source", "")))
        and not (inside is not None and Path(source).is_relative_to(inside))
    )


def escape(text: str) -> str:
    """Protect a value from interpolation (B66; sharp edge 23)."""
    return text.replace("$", "$$")


def unescape(text: str) -> str:
    """Undo :func:`escape`."""
    return text.replace("$$", "$")


_UNITS: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}


def seconds(duration: str | None) -> float:
    """Seconds of a duration in Compose's canonical form, ``1m30s``; 0 for none."""
    parts = re.findall(r"([\d.]+)(h|ms|µs|us|ns|m|s)", duration or "")
    return sum(float(number) * _UNITS[unit] for number, unit in parts)


def _without_unset(environment: Mapping[str, Any] | None) -> Document:
    return {name: value for name, value in (environment or {}).items() if value is not None}


def _section(document: Document, name: str) -> Iterator[Document]:
    return (entry for entry in (document.get(name) or {}).values() if entry)
