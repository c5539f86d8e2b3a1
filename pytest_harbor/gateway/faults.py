"""What went wrong with a call, in one word, and whether and when to try again.

A fault that comes again for the same request (a context that is too long, an empty account) is
never tried again, whatever its status says.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Final, Literal, get_args

Kind = Literal[
    "auth",
    "bad_request",
    "budget_spent",
    "context_overflow",
    "cut",
    "internal",
    "quota",
    "rate_limited",
    "replay_mismatch",
    "server",
    "timeout",
    "unreachable",
    "unscripted",
]
"""``cut``: the answer broke off. ``quota``: the provider's account is empty. The rest say it."""

KINDS: Final[frozenset[str]] = frozenset(get_args(Kind))

LONGEST_WAIT: Final = 120.0
"""Seconds; a server that asks for a longer pause gets none, and its answer is passed on."""
_FIRST: Final = 0.5
_CAP: Final = 30.0
_RETRYABLE: Final = frozenset({408, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529})

_OVERFLOW: Final = re.compile(
    rb"context_length_exceeded|context_window_exceeded|maximum context length|context window"
    rb"|prompt is too long|exceed\w* (?:the )?(?:available )?context|too many (?:input )?tokens",
    re.IGNORECASE,
)
_QUOTA: Final = re.compile(
    rb"insufficient_quota|billing_error|billing_hard_limit|credit balance is too low"
    rb"|insufficient[ _](?:balance|credits|funds)|exceeded your current quota",
    re.IGNORECASE,
)


def kind_of(status: int, body: bytes) -> Kind | None:
    """Name what an answer's status and body say; None for an answer that is no fault."""
    if status < 400:
        return None
    if _QUOTA.search(body) or status == 402:
        return "quota"
    if status == 413 or _OVERFLOW.search(body):
        return "context_overflow"
    if status in (401, 403):
        return "auth"
    if status == 429:
        return "rate_limited"
    if status in (408, 504):
        return "timeout"
    return "server" if status >= 500 else "bad_request"


def worth_retry(status: int, headers: Mapping[str, str], body: bytes) -> bool:
    """Whether the same request may fare better in a while."""
    if kind_of(status, body) in ("quota", "context_overflow"):
        return False
    said = headers.get("x-should-retry", "").lower()
    return said != "false" and (said == "true" or status in _RETRYABLE)


def pause_before(attempt: int, headers: Mapping[str, str] | None = None) -> float | None:
    """Seconds to wait before a further try; None when the server asks for too long a wait.

    ``attempt`` counts from 0. What the server asks for is a minimum; without it the wait doubles
    each time, and half of it is chance, so that calls that failed together come back apart.
    """
    asked = _retry_after(headers or {})
    if asked is not None:
        return asked + random.uniform(0, 0.1 * asked) if asked <= LONGEST_WAIT else None  # noqa: S311
    longest = min(_CAP, _FIRST * 2.0 ** min(attempt, 16))
    return random.uniform(longest / 2, longest)  # noqa: S311


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that the server asks to wait, from any of the ways to say so."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            return max(0.0, float(headers[name]) * unit)
        except (KeyError, ValueError):
            continue
    try:
        return max(0.0, parsedate_to_datetime(headers["retry-after"]).timestamp() - time.time())
    except (KeyError, ValueError):
        return None
