"""Text and numbers as reports show them: without control characters, and easy to read.

Everything a task, an agent or a verifier wrote is hostile until it has gone through here.
"""

from __future__ import annotations

import re
import unicodedata
from decimal import Decimal

_ESCAPES = re.compile(
    r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?"  # OSC: titles, links
    r"|\x1b\[?[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor; and two-character sequences
)
# The characters of XML 1.0, less DEL and the C1 controls: what browsers and terminals can take.
_ILLEGAL = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# Marks that change the direction of what follows, and so what a name seems to be.
_BIDI = re.compile("[\u202a-\u202e\u2066-\u2069]")


def clean(text: object) -> str:
    r"""Text that any XML reader, browser or terminal takes: no ANSI, the rest made visible.

    ``\x00`` becomes ``#x00``, as pytest writes it.
    """
    raw = str(text)
    if raw.isascii() and raw.isprintable():
        return raw
    return _BIDI.sub(_visible, escape(_ESCAPES.sub("", raw)))


def escape(text: str) -> str:
    """Only make characters visible that XML does not allow; pytest's spelling of names."""
    return _ILLEGAL.sub(_visible, text)


def _visible(match: re.Match[str]) -> str:
    return f"#x{ord(match.group()):02X}"


def log_text(text: str) -> str:
    """A terminal's output as it was left on the screen: a progress bar is its last state."""
    if "\r" in text:
        lines = text.replace("\r\n", "\n").split("\n")
        text = "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in lines)
    return clean(text)


def one_line(text: object, limit: int = 300) -> str:
    """The first line, cut to ``limit``; a mark says that there was more."""
    whole = clean(text).strip()
    first = whole.split("\n", 1)[0].rstrip()
    if len(first) > limit:
        return first[: limit - 1].rstrip() + "…"
    return first if first == whole else f"{first} …"


def head_and_tail(text: str, limit: int) -> str:
    """A text within its limit; what is left out in the middle is said."""
    if len(text) <= limit:
        return text
    tail = limit // 3
    left = len(text) - limit
    return f"{text[: limit - tail]}\n… {left:,} characters not shown …\n{text[-tail:]}"


def number_of(number: int, thing: str) -> str:
    """``1 call``, ``2,000 calls``."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def decimal(number: float) -> str:
    """A number as a plain decimal, without exponent or the dust of float sums."""
    return format(Decimal(repr(round(number, 9) if isinstance(number, float) else number)), "f")


def reward(number: float | None) -> str:
    """A reward for people: at most three decimals; a dash where there is none."""
    if number is None:
        return "—"
    short = f"{number:.3f}".rstrip("0")
    return short + "0" if short.endswith(".") else short


def duration(seconds: float) -> str:
    """A time span for people."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def money(usd: float | None) -> str:
    """A sum of US dollars for people; small ones keep two significant digits."""
    if usd is None:
        return "—"
    if 0 < usd < 0.1:
        return f"${usd:.2g}" if usd >= 0.0001 else "<$0.0001"
    return f"${usd:,.2f}"


def count(number: int | None) -> str:
    """A large number for people: 950, 12.3k, 4.5M."""
    if number is None:
        return "—"
    for unit, size in (("M", 1_000_000), ("k", 10_000)):
        if number >= size:
            return f"{number / (1000 if unit == 'k' else size):.1f}{unit}"
    return str(number)


def size(number: int) -> str:
    """A number of bytes for people."""
    if number < 1000:
        return f"{number} B"
    if number < 1_000_000:
        return f"{number / 1000:.3g} kB"
    return f"{number / 1_000_000:.3g} MB"


def width(text: str) -> int:
    """How many terminal cells a text takes."""
    return sum(_cells(each) for each in text)


def fit(text: str, cells: int) -> str:
    """A text cut or filled to exactly so many terminal cells."""
    if width(text) <= cells:
        return text + " " * (cells - width(text))
    kept, used = "", 0
    for each in text:
        if used + _cells(each) > cells - 1:
            break
        kept, used = kept + each, used + _cells(each)
    return kept + "…" + " " * (cells - used - 1)


def _cells(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Cf", "Mn"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
