"""What differs from run to run in a text that says the same: dates, times, hashes, addresses."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_MONTH: Final = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*"
_DAY: Final = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*"
_VOLATILE: Final = tuple(
    (re.compile(pattern), name)
    for pattern, name in (
        (r"https?://(?:\d+\.){3}\d+(?::\d+)?(?:/[A-Za-z0-9_-]{32}(?![A-Za-z0-9_-]))?", "<url>"),
        (r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b", "<uuid>"),
        (r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?)?", "<date>"),
        (rf"\b(?:{_DAY},? )?(?:\d{{1,2}} )?{_MONTH} +\d{{1,2}}(?:,? \d{{4}})?\b", "<date>"),
        (r"\b\d{1,2}/\d{1,2}/\d{2,4}\b", "<date>"),
        (r"\b\d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?(?: ?[AaPp][Mm]\b)?", "<time>"),
        (r"<time> \d{4}\b", "<time>"),
        (r"(?<=<time> )[+-]\d{4}\b", "<zone>"),
        (r"\b(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?\b", "<address>"),
        (r"\blocalhost:\d+", "localhost:<port>"),
        (r"\btmp(?:[a-z0-9_]{8}|\.[A-Za-z0-9]{6,10})\b", "<scratch>"),
        (r"(?i)\b(?<=chunk id: )\w+|(?<=session id )\w+|(?<=pid )\d+|(?<=pid: )\d+", "<id>"),
        (r"\b\d+m\d+(?:\.\d+)?s\b", "<duration>"),
        (r"\b\d+(?:\.\d+)? ?(?:ns|us|µs|ms|s|secs?|seconds?|mins?|minutes?)\b", "<duration>"),
        (r"\b[0-9a-f]{7,64}\b", "<hex>"),
    )
)


@lru_cache(maxsize=2048)
def steady_text(text: str) -> str:
    """A text with dates, times, durations, hashes, addresses and the like made alike."""
    for pattern, name in _VOLATILE:
        text = pattern.sub(name, text)
    return text
