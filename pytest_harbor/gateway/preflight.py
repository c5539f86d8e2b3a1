"""What is tried before anything is spent: that a model server answers, and what to say if not."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from pytest_harbor.errors import RecipeError
from pytest_harbor.gateway.accounts import Terms
from pytest_harbor.gateway.ledger import Call
from pytest_harbor.gateway.model_server import ModelServer
from pytest_harbor.gateway.wires.base import WireName
from pytest_harbor.gateway.wires.every import WIRES

if TYPE_CHECKING:
    from pytest_harbor.gateway.server import Gateway

_SECONDS: Final = 300.0
_SAID: Final = [{"role": "user", "content": "Answer with the word OK."}]
_BODIES: Final[dict[WireName, dict[str, Any]]] = {
    "chat": {"model": "preflight", "messages": _SAID},
    "responses": {"model": "preflight", "input": _SAID, "store": False},
    "messages": {"model": "preflight", "messages": _SAID, "max_tokens": 64},
    "gemini": {
        "model": "preflight",
        "contents": [{"role": "user", "parts": [{"text": _SAID[0]["content"]}]}],
    },
}


def try_once(gateway: Gateway, server: ModelServer, model: str | None) -> None:
    """Have a model server answer once in a run, if it is one that costs.

    Not asked: scripts, recordings and models of this machine, and a server whose ``model`` nobody
    knows yet, for it is its clients' choice.

    Raises:
        RecipeError: it does not answer, now or when it was tried first; says what it said.
    """
    wire = server.try_with
    if server.provider != "http" or gateway.is_replaying or wire == "off" or model is None:
        return
    asked = replace(server, model=model)
    trouble = gateway.trials.once(asked.fingerprint(), lambda: _trouble(gateway, asked, wire))
    if trouble is not None:
        raise RecipeError(trouble)


def _trouble(gateway: Gateway, server: ModelServer, wire: WireName) -> str | None:
    call = _ask(gateway, server, wire)
    if call.ended == "done":
        return None
    if call.fault is None:
        said = f"in {_SECONDS:g} s"
    else:
        said = f"({call.fault}, status {call.status}): {call.message}"
    return f"model server {server.name!r} does not answer a {wire} request {said}"


def _ask(gateway: Gateway, server: ModelServer, wire: WireName) -> Call:
    """One real answer, through the gateway, as a party would ask for it."""
    import httpx2

    account = account_of(server)
    gateway.begin(account, Terms(recorded=False))
    try:
        place = WIRES[wire].place(gateway.open(account, server.name, server).v1, _BODIES[wire])
        with (
            suppress(httpx2.TimeoutException),
            httpx2.Client(timeout=_SECONDS, trust_env=False, verify=False) as client,
        ):
            client.post(f"{place.base_url}/{place.path}", json=place.body)
    finally:
        gateway.revoke(account)
    return gateway.calls(account)[-1]


def account_of(server: ModelServer) -> str:
    """The gateway's account under which a try is entered; no episode is called so."""
    return f"preflight.{server.name}"


def firewall_hint(base_url: str) -> str:
    """What to tell an operator when a container cannot reach an address that is listened at."""
    parts = urlsplit(base_url)
    return (
        f"the container cannot reach the model gateway at {parts.netloc}, though it listens there: "
        f"a firewall of this machine is likely in the way. Let containers in, for example with "
        f"iptables -I INPUT -i br-+ -p tcp -d {parts.hostname} -j ACCEPT"
    )
