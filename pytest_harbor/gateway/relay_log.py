"""What went through the relay: each request of an agent to an MCP server, and what came of it.

Kept in memory for counting, and on disk as JSON lines, written as calls end.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal

from pytest_harbor.gateway.ledger import append_line
from pytest_harbor.redaction import Redactor

McpEnded = Literal["answered", "failed", "timeout", "client_gone", "revoked"]
"""``failed``: the server was lost or gave no answer. ``timeout``: the relay's deadline passed.
``client_gone``: the agent hung up first. ``revoked``: the episode ended first."""

LONGEST_TEXT: Final = 20_000
"""Characters of a reply, and of all arguments together, that are kept."""
_MARGIN: Final = 64_000
"""A secret that stands at the cut is looked for as a whole."""


@dataclass(frozen=True)
class McpCall:
    """One request of an agent to an MCP server: ``tools/call``, or what prepares it."""

    episode: str
    try_number: int
    """1 until the episode is begun again, in a fresh group after a fault; then 2, and so on."""
    step: str | None
    """The step of the episode that was under way, if the gateway was told."""
    server: str
    method: str
    tool: str | None
    """The tool's name as the server knows it; None unless ``method`` is ``tools/call``."""
    arguments: Mapping[str, Any]
    """The tool's arguments; the parameters of another method."""
    started_at: str
    """ISO 8601, UTC."""
    seconds: float
    """From the request to its answer, or to whatever ended it."""
    status: int | None
    """HTTP status of the server; None when it gave none."""
    ended: McpEnded
    is_error: bool = False
    """The answer says that it did not work."""
    reply: str = ""
    """The answer's text, cut with a mark; names of tools for ``tools/list``."""
    reply_size: int = 0
    """Characters of the whole text."""
    fault: str = ""
    """What went wrong on the way."""

    @property
    def is_tool_call(self) -> bool:
        """Whether a tool was called, rather than asked for."""
        return self.method == "tools/call"

    @property
    def went_well(self) -> bool:
        """Whether the agent got an answer that is no error."""
        return self.ended == "answered" and not self.is_error


class RelayLog:
    """The requests of one episode to its MCP servers. Any thread may read it."""

    def __init__(
        self, file: Path | None, redactor: Callable[[], Redactor], calls: Iterable[McpCall] = ()
    ) -> None:
        self._file = file
        self._redactor = redactor
        self._lock = threading.Lock()
        self._calls = list(calls)

    @property
    def calls(self) -> tuple[McpCall, ...]:
        """All by now, in the order in which they ended."""
        with self._lock:
            return tuple(self._calls)

    def add(self, call: McpCall) -> None:
        """Enter a call that has ended."""
        with self._lock:
            self._calls.append(call)
            if self._file is not None:
                append_line(self._file, self._redactor().data(asdict(call)))

    def cut(self, text: str) -> str:
        """The text's beginning without secrets, and how much there is more of it."""
        if len(text) <= LONGEST_TEXT:
            return self._redactor().text(text)
        kept = self._redactor().text(text[: LONGEST_TEXT + _MARGIN])[:LONGEST_TEXT]
        return f"{kept} [... {len(text) - LONGEST_TEXT} more characters]"

    def cut_data(self, data: Mapping[str, Any]) -> Mapping[str, Any]:
        """The data as they are, or when they are large, the beginning of their JSON text."""
        text = json.dumps(data, ensure_ascii=False)
        return data if len(text) <= LONGEST_TEXT else {"cut": self.cut(text)}
