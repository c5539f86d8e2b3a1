"""Which servers an agent can reach through the gateway."""

from __future__ import annotations

import pytest

from pytest_harbor.agents.base import Grant
from pytest_harbor.user.grants import is_relayable


@pytest.mark.parametrize(
    ("url", "relayable"),
    [
        ("http://user-server:8000/mcp", True),
        ("https://example.org/mcp", True),
        ("http://localhost:8000/mcp", False),
        ("http://127.0.0.1:8000/mcp", False),
        ("http://[::1]:8000/mcp", False),
        (None, False),
    ],
)
def test_what_only_main_can_see_is_not_relayed(url: str | None, relayable: bool) -> None:
    assert is_relayable(Grant("a", "streamable-http", url)) is relayable
