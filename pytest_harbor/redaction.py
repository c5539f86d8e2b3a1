"""Takes secrets out of text, bytes and JSON data: by value, and by shape for the unknown ones.

The run folder and the reports send everything through here before it is cut to size, because a
half of a key that stands at a cut is no longer found. Where values come from is the caller's
matter.
"""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple
from urllib.parse import quote, quote_plus

MASK: Final = "[redacted]"
SHORTEST: Final = 6
"""Shorter values are left alone: they are words ("true", "main"), and would riddle every log."""


class Redactor:
    """Masks the values it was given, in every spelling they travel in, and anything key-shaped."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        spellings = {
            spelling
            for secret in secrets
            if len(secret) >= SHORTEST
            for spelling in _spellings(secret)
            if len(spelling) >= SHORTEST and spelling not in MASK
        }
        # Longest first: a value that contains another one must not be cut up by it.
        self._spellings = tuple(sorted(spellings, key=lambda each: (-len(each), each)))

    def text(self, text: str) -> str:
        """The text without secrets."""
        for spelling in self._spellings:
            text = text.replace(spelling, MASK)
        for shape in _SHAPES:
            for hint in shape.hints:
                if hint in text:
                    text = shape.pattern.sub(shape.mask, text)
                    break
        return text

    def bytes(self, body: bytes) -> bytes:
        """The bytes without secrets; what is not UTF-8 passes through unharmed."""
        text = body.decode("utf-8", "surrogateescape")
        return self.text(text).encode("utf-8", "surrogateescape")

    def data(self, value: Any) -> Any:
        """JSON data without secrets, in keys and values at any depth; tuples become lists."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.data(key): self.data(each) for key, each in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.data(each) for each in value]
        return value


def _spellings(secret: str) -> Iterator[str]:
    """The value itself and what it becomes in JSON, URLs, HTML, headers and dumps."""
    yield secret
    for ascii_only in (True, False):
        escaped = json.dumps(secret, ensure_ascii=ascii_only)[1:-1]
        yield escaped
        yield json.dumps(escaped)[1:-1]  # JSON inside JSON, as in tool arguments
    yield repr(secret)[1:-1]
    yield html.escape(secret)
    for safe in ("", "/"):
        yield quote(secret, safe=safe)
        yield quote_plus(secret, safe=safe)
    raw = secret.encode("utf-8", "surrogatepass")
    yield raw.hex()
    for lead in range(3):
        inner = _base64_inside(raw, lead)
        yield inner
        yield inner.replace("+", "-").replace("/", "_")


def _base64_inside(raw: bytes, lead: int) -> str:
    """The characters that ``raw`` alone decides when ``lead`` other bytes stand before it.

    ``user:password`` in an Authorization header, or a key in the middle of an encoded file, is
    shifted by what precedes it; the first and last characters mix with the neighbours.
    """
    encoded = base64.b64encode(b"\0" * lead + raw).decode()
    start = (lead * 8 + 5) // 6
    end = (lead + len(raw)) * 8 // 6
    return encoded[start:end]


class _Shape(NamedTuple):
    """A kind of key: what to look for cheaply, the exact form, what stays in its place."""

    hints: tuple[str, ...]
    pattern: re.Pattern[str]
    mask: str = MASK


def _shape(pattern: str, *hints: str, mask: str = MASK) -> _Shape:
    return _Shape(hints, re.compile(pattern), mask)


_SHAPES: Final = (
    _shape(
        r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----[\s\S]*?"
        r"(?:-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----|\Z)",
        "PRIVATE KEY",
    ),
    # OpenAI, Anthropic, OpenRouter, LiteLLM; "sk-learn-pipeline" is none.
    _shape(r"(?<![A-Za-z0-9])sk-(?=[a-z_-]*[0-9A-Z])[A-Za-z0-9_-]{16,}", "sk-"),
    _shape(
        r"(?<![A-Za-z0-9])(?:gh[oprsu]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{30,})",
        *("ghp_", "gho_", "ghs_", "ghu_", "ghr_", "github_pat_"),
    ),
    _shape(r"(?<![A-Za-z0-9])glpat-[A-Za-z0-9_-]{18,}", "glpat-"),
    _shape(r"(?<![A-Za-z0-9])(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])", "AKIA", "ASIA"),
    _shape(r"(?<![A-Za-z0-9])AIza[A-Za-z0-9_-]{35}", "AIza"),
    _shape(r"(?<![A-Za-z0-9])xox[abeprs]-[A-Za-z0-9-]{10,}", "xox"),
    _shape(r"(?<![A-Za-z0-9])(?:hf|npm)_[A-Za-z0-9]{30,}", "hf_", "npm_"),
    # A JSON web token: two base64 objects and a signature.
    _shape(r"(?<![A-Za-z0-9])eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*", "eyJ"),
    _shape(
        r"(?i)\b(bearer)(\s+|%20)(?=[A-Za-z0-9._~+/=%-]*[0-9])[A-Za-z0-9._~+/=%-]{12,}",
        *("bearer", "Bearer", "BEARER"),
        mask=rf"\1\2{MASK}",
    ),
    _shape(
        r"(?i)\b(authorization[\"']?\s*[:=]\s*[\"']?basic\s+)[A-Za-z0-9+/=]{8,}",
        *("asic", "BASIC"),
        mask=rf"\1{MASK}",
    ),
    # The password of a URL; the user stays readable.
    _shape(r"(://[^\s/@:\"']{0,64}:)[^\s/@\"']{3,}(@)", "://", mask=rf"\1{MASK}\2"),
)
