"""Subnets for Compose networks, so that sixty groups fit where the engine's own pools hold thirty.

A subnet is chosen under a host-wide lock among those that no network, host route or other
reservation has, and reserved until the engine knows the network. The engine stays the judge: when
``up`` reports an overlap all the same, the group asks again (:meth:`Subnets.refuse`).
"""

from __future__ import annotations

import contextlib
import ipaddress
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from pytest_harbor.errors import SandboxError
from pytest_harbor.sandbox.engine import Engine
from pytest_harbor.sandbox.state import State, read_json, write_json
from pytest_harbor.task.timeouts import Deadline

Network = ipaddress.IPv4Network

POOLS: Final = tuple(map(Network, ("10.213.0.0/16", "172.31.128.0/17", "192.168.224.0/19")))
"""The first holds 4096 subnets of 14 addresses, outside the engine's own pools; the others are for
hosts whose VPN has all of 10.0.0.0/8."""

_SMALLEST: Final = 28
_KEPT_ADDRESSES: Final = 4
"""Network, broadcast and gateway, and one in hand."""

_RESERVED_SECONDS: Final = 300.0
"""How long a reservation counts when its process never took it back."""

_CLASH: Final = re.compile(
    r"pool overlaps|overlaps with other one|fully subnetted|non-overlapping ipv4"
    r"|invalid address pool|conflicts with (existing )?(route|network)|no available network",
    re.IGNORECASE,
)


class Subnets:
    """The hand-out of subnets on this host, for one engine."""

    def __init__(self, engine: Engine, state: State, pools: Sequence[Network] = ()) -> None:
        self._engine = engine
        self._state = state
        self._pools = pools or POOLS

    @contextlib.contextmanager
    def reserve(self, members: Mapping[str, int], deadline: Deadline) -> Iterator[dict[str, str]]:
        """Choose a subnet for each network, with room for its members, until the block ends.

        By then the networks exist or the subnets are free again.

        Raises:
            SandboxError: the pool is used up.
        """
        if not members:
            yield {}
            return
        with self._ledger(deadline) as ledger:
            taken = [*self._taken_by_engine(), *host_routes(), *map(Network, ledger)]
            chosen: dict[str, str] = {}
            for key, count in members.items():
                free = (first_free(pool, prefix_for(count), taken) for pool in self._pools)
                subnet = next(filter(None, free), None)
                if subnet is None:
                    raise SandboxError(
                        f"No free subnet is left in {', '.join(map(str, self._pools))} for the "
                        f"network {key}: {len(taken)} are in use. Remove what earlier runs left "
                        "with 'pytest --harbor-clean', others with 'docker network prune'."
                    )
                taken.append(subnet)
                chosen[key] = str(subnet)
                ledger[str(subnet)] = time.time() + _RESERVED_SECONDS
        try:
            yield chosen
        finally:
            with self._ledger(Deadline.after(10, "release of subnets")) as ledger:
                for subnet_text in chosen.values():
                    if ledger.get(subnet_text, 0) <= time.time() + _RESERVED_SECONDS:
                        ledger.pop(subnet_text, None)

    def refuse(self, subnets: Iterable[str], deadline: Deadline) -> None:
        """Note that the engine cannot use these, for an hour: something unseen has them."""
        with self._ledger(deadline) as ledger:
            for subnet in subnets:
                ledger[subnet] = time.time() + 3600

    @contextlib.contextmanager
    def _ledger(self, deadline: Deadline) -> Iterator[dict[str, float]]:
        """The reservations of all processes, written back when the block ends well."""
        path = self._state.folder() / "subnets.json"
        with self._state.lock("subnets", deadline, poll=0.005):
            now = time.time()
            ledger = {net: until for net, until in (read_json(path) or {}).items() if until > now}
            yield ledger
            write_json(path, ledger)

    def _taken_by_engine(self) -> Iterator[Network]:
        networks: list[dict[str, Any]] = self._engine.api.networks()
        for network in networks:
            for config in (network.get("IPAM") or {}).get("Config") or ():
                with contextlib.suppress(ValueError):
                    yield Network(config.get("Subnet", ""))


def is_clash(message: str) -> bool:
    """Whether Compose's message says that a network's addresses are taken or used up (B12)."""
    return bool(_CLASH.search(message))


def prefix_for(members: int) -> int:
    """The longest prefix (smallest subnet) with room for so many containers."""
    prefix = _SMALLEST
    while 2 ** (32 - prefix) - _KEPT_ADDRESSES < members:
        prefix -= 1
    return prefix


def first_free(pool: Network, prefix: int, taken: Iterable[Network]) -> Network | None:
    """The first subnet of a pool that overlaps none of those taken."""
    size = 2 ** (32 - prefix)
    ranges = sorted(
        (int(net.network_address), int(net.broadcast_address))
        for net in taken
        if net.overlaps(pool)
    )
    at, end = int(pool.network_address), int(pool.broadcast_address)
    for low, high in ranges:
        if at + size - 1 < low:
            break
        if high >= at:
            at = -(-(high + 1) // size) * size
    return Network((at, prefix)) if at + size - 1 <= end else None


def host_routes() -> Iterator[Network]:
    """Networks that this host routes somewhere, a VPN's say; the default route is none."""
    try:
        lines = Path("/proc/net/route").read_text().splitlines()[1:]
    except OSError:
        return
    for line in lines:
        _, destination, _, _, _, _, _, mask, *_ = line.split()
        bits = bin(int(mask, 16)).count("1")
        if bits:
            yield Network(
                (int.from_bytes(bytes.fromhex(destination)[::-1], "big"), bits), strict=False
            )
