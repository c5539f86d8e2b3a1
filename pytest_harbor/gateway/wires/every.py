"""The wires by the path that a request comes in on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pytest_harbor.gateway.wires.base import Wire, WireName
from pytest_harbor.gateway.wires.chat import Chat
from pytest_harbor.gateway.wires.gemini import Gemini
from pytest_harbor.gateway.wires.messages import Messages
from pytest_harbor.gateway.wires.responses import Responses

WIRES: Final[Mapping[WireName, Wire]] = {
    "chat": Chat(),
    "responses": Responses(),
    "messages": Messages(),
    "gemini": Gemini(),
}


def wire_at(path: str) -> tuple[Wire | None, dict[str, Any]]:
    """The wire whose requests go to a path below the version, and what the path says of one."""
    for wire in WIRES.values():
        if (asked := wire.asked(path)) is not None:
            return wire, asked
    return None, {}
