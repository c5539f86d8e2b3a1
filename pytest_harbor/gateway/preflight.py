"""What is tried before anything is spent: that a model server answers, and what to say if not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from pytest_harbor.errors import RecipeError
from pytest_harbor.gateway.ledger import Call
from pytest_harbor.gateway.model_server import ModelServer
from pytest_harbor.gateway.wires.base import WireName
from pytest_harbor.gateway.wires.every import WIRES

if TYPE_CHECKING:
    from pytest_harbor.gateway.server import Gateway

EPISODE: Final = "preflight"
"""The account under which these calls are entered."""
_SECONDS: Final = 300.0
_SAID: Final = [{"role": "user", "content": "Answer with the word OK."}]
_BODIES: Final[dict[WireName, dict[str, Any]]] = {
    "chat": {"model": "preflight", "messages": _SAID},
    "responses": {"model": "preflight", "input": _SAID, "store": False},
    "messages": {"model": "preflight", "messages": _SAID, "max_tokens": 64},
}


def try_server(gateway: Gateway, server: ModelServer, wire: WireName = "chat") -> Call | None:
    """Ask a model server for one real answer, through the gateway, as a party would.

    Returns:
        The call as it was entered; None where nothing needs to be tried (scripts, recordings).

    Raises:
        RecipeError: it does not answer; says what it said.
    """
    import httpx2

    if server.provider != "http" or gateway.is_replaying:
        return None
    url = f"{gateway.open(EPISODE, server.name, server).v1}/{WIRES[wire].path}"
    with httpx2.Client(timeout=_SECONDS, trust_env=False, verify=False) as client:
        client.post(url, json=_BODIES[wire])
    call = next(call for call in reversed(gateway.calls(EPISODE)) if call.party == server.name)
    if call.fault is not None:
        raise RecipeError(
            f"model server {server.name!r} does not answer a {wire} request ({call.fault}, "
            f"status {call.status}): {call.message}"
        )
    return call


def firewall_hint(base_url: str) -> str:
    """What to tell an operator when a container cannot reach an address that is listened at."""
    parts = urlsplit(base_url)
    return (
        f"the container cannot reach the model gateway at {parts.netloc}, though it listens there: "
        f"a firewall of this machine is likely in the way. Let containers in, for example with "
        f"iptables -I INPUT -i br-+ -p tcp -d {parts.hostname} -j ACCEPT"
    )
