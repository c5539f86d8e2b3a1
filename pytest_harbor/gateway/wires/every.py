"""The wires by the path that a request comes in on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pytest_harbor.gateway.wires.base import Wire, WireName
from pytest_harbor.gateway.wires.chat import Chat
from pytest_harbor.gateway.wires.messages import Messages
from pytest_harbor.gateway.wires.responses import Responses

WIRES: Final[Mapping[WireName, Wire]] = {
    "chat": Chat(),
    "responses": Responses(),
    "messages": Messages(),
}


def wire_at(path: str) -> Wire | None:
    """The wire whose requests go to a path below the version, as ``chat/completions``."""
    return next((wire for wire in WIRES.values() if wire.path == path), None)
