"""The ledger: each model call of each party, what it took and what it cost.

Kept in memory for sums, and on disk as JSON lines, written as calls end. A call that failed, was
refused or was broken off stands here too.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from pytest_harbor.gateway.faults import Kind
from pytest_harbor.gateway.wires.base import Usage, WireName
from pytest_harbor.redaction import Redactor

Ended = Literal["done", "failed", "client_gone", "revoked"]
"""``client_gone``: the client hung up first. ``revoked``: the episode ended first."""


@dataclass(frozen=True)
class Call:
    """One model call, as the client saw it: further tries towards the server are inside it."""

    id: str
    episode: str
    party: str
    try_number: int
    """1 until the episode is begun again, in a fresh group after a fault; then 2, and so on."""
    step: str | None
    """The step of the episode that was under way, if the gateway was told."""
    server: str
    provider: str
    wire: WireName
    started_at: str
    """ISO 8601, UTC."""
    seconds: float
    """From the request to the end of the answer, waiting and further tries included."""
    first_byte_seconds: float | None
    """From the request to the first part of a stream; None for an answer that came whole."""
    queued_seconds: float
    """Of ``seconds``: waiting for the server's concurrency limit."""
    streamed: bool
    status: int | None
    """HTTP status that the client saw; None when it saw none."""
    ended: Ended
    fault: Kind | None = None
    message: str = ""
    retries: tuple[str, ...] = ()
    """Why each further try was made: a status, or the name of an error."""
    asked_model: str | None = None
    served_model: str | None = None
    usage: Usage | None = None
    """None when the answer did not say."""
    cost_usd: float | None = None
    """None when the price or the usage is not known."""


@dataclass(frozen=True)
class Summary:
    """The sums of some calls."""

    calls: int = 0
    failed: int = 0
    """Calls whose client got an error, or an answer that broke off."""
    refused: int = 0
    """Of ``failed``: refused by the gateway because a budget was spent."""
    abandoned: int = 0
    """Calls that the client or the end of the episode broke off."""
    retries: int = 0
    faults: Mapping[str, int] = field(default_factory=dict)
    """Number of calls by kind of fault."""
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    written_tokens: int = 0
    reasoning_tokens: int = 0
    seconds: float = 0.0
    """Time in calls; calls at the same time count each."""
    cost_usd: float | None = 0.0
    """None when a call's price is not known: a sum without it would look like the whole."""
    known_cost_usd: float = 0.0
    """The cost of the calls whose price is known."""
    unpriced_models: tuple[str, ...] = ()
    uncounted: int = 0
    """Calls that were answered, but whose answer did not say how many tokens it took."""

    @property
    def tokens(self) -> int:
        """Input and output together."""
        return self.input_tokens + self.output_tokens

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the sums must know."""
        notes = []
        if self.unpriced_models:
            names = ", ".join(self.unpriced_models)
            notes.append(f"no price is known for {names}: tokens are counted, the cost is not")
        if self.uncounted:
            notes.append(f"{self.uncounted} answered calls did not say how many tokens they took")
        return tuple(notes)


def summarize(calls: Iterable[Call]) -> Summary:
    """Add calls up."""
    calls = tuple(calls)
    used = [call.usage for call in calls if call.usage is not None]
    unpriced = {_model(call) for call in calls if call.usage and call.cost_usd is None}
    known = sum(call.cost_usd or 0.0 for call in calls)
    return Summary(
        calls=len(calls),
        failed=sum(call.ended == "failed" for call in calls),
        refused=sum(call.fault == "budget_spent" for call in calls),
        abandoned=sum(call.ended in ("client_gone", "revoked") for call in calls),
        retries=sum(len(call.retries) for call in calls),
        faults=dict(sorted(Counter(call.fault for call in calls if call.fault).items())),
        input_tokens=sum(usage.input for usage in used),
        output_tokens=sum(usage.output for usage in used),
        cached_tokens=sum(usage.cached for usage in used),
        written_tokens=sum(usage.written for usage in used),
        reasoning_tokens=sum(usage.reasoning for usage in used),
        seconds=sum(call.seconds for call in calls),
        cost_usd=None if unpriced else known,
        known_cost_usd=known,
        unpriced_models=tuple(sorted(unpriced)),
        uncounted=sum(call.ended == "done" and call.usage is None for call in calls),
    )


def _model(call: Call) -> str:
    return call.served_model or call.asked_model or "an unnamed model"


class Ledger:
    """The calls of one episode. Any thread may read it while calls are added."""

    def __init__(
        self, file: Path | None, redactor: Callable[[], Redactor], calls: Iterable[Call] = ()
    ) -> None:
        self._file = file
        self._redactor = redactor
        self._lock = threading.Lock()
        self._calls = list(calls)

    @property
    def calls(self) -> tuple[Call, ...]:
        """All calls by now, in the order in which they ended."""
        with self._lock:
            return tuple(self._calls)

    def redact(self, text: str) -> str:
        """The text without secrets."""
        return self._redactor().text(text)

    def add(self, call: Call, tokens: Iterable[Mapping[str, Any]] = ()) -> None:
        """Enter a call that has ended, and the token ids that were asked to be kept."""
        with self._lock:
            self._calls.append(call)
            if self._file is None:
                return
            append_line(self._file, self._redactor().data(asdict(call)))
            for table in tokens:
                append_line(tokens_file(self._file), {"call": call.id, **table})


def tokens_file(ledger: Path) -> Path:
    """Where token ids go: beside the ledger, for they are many."""
    return ledger.with_name(f"{ledger.stem}.tokens{ledger.suffix}")


def append_line(file: Path, data: Any) -> None:
    """Append data as a JSON line; text that is no Unicode does not stop it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a", encoding="utf-8", errors="replace") as lines:
        lines.write(json.dumps(data, ensure_ascii=False) + "\n")
