"""Requests without what differs from run to run, and what two of them do differ in.

An agent that does the same again still sends another session id, another date, another commit
hash. Those are taken out; what is left tells whether it is the same request.
"""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from pytest_harbor.steady import steady_text

_TOP: Final = frozenset(
    {"client_metadata", "metadata", "prompt_cache_key", "safety_identifier", "session_id", "user"}
)
"""Keys of a request that name a session or a person."""
_ANYWHERE: Final = frozenset(
    {
        *("id", "cache_control", "signature", "thoughtSignature", "encrypted_content"),
        "timestamp",
    }
)
"""Keys of messages and items that mean nothing to the model, or are new each time."""
_CALL_IDS: Final = frozenset({"call_id", "tool_call_id", "tool_use_id"})
"""Which call a result belongs to: the order stays, the name goes."""
_DATA: Final = frozenset(
    {
        *("input", "parameters", "input_schema", "schema"),
        *("args", "response", "parametersJsonSchema"),
    }
)
"""Tables whose keys are the tool's own: an ``id`` in there is an argument."""

_SHOWN_DIFFERENCES: Final = 6
_SHOWN_CHARACTERS: Final = 90
_BEFORE: Final = 30


def canonical(body: Mapping[str, Any]) -> dict[str, Any]:
    """A request without what differs from run to run."""
    calls: dict[str, str] = {}
    kept = {key: value for key, value in body.items() if key not in _TOP}
    steady: dict[str, Any] = _steady(kept, calls)
    return steady


def digest(request: Mapping[str, Any]) -> str:
    """Equal for equal canonical requests, whatever the order of their keys."""
    return hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()


def _steady(value: Any, calls: dict[str, str]) -> Any:
    if isinstance(value, str):
        return steady_text(value)
    if isinstance(value, Mapping):
        return {
            key: _entry(key, each, calls) for key, each in value.items() if key not in _ANYWHERE
        }
    if isinstance(value, list):
        return [_steady(each, calls) for each in value]
    return value


def _entry(key: str, value: Any, calls: dict[str, str]) -> Any:
    if key in _CALL_IDS:
        return calls.setdefault(str(value), f"call {len(calls) + 1}")
    if key in _DATA and isinstance(value, Mapping):
        return _texts(value)
    return _steady(value, calls)


def _texts(value: Any) -> Any:
    """Data with steady texts and all of its keys."""
    if isinstance(value, str):
        return steady_text(value)
    if isinstance(value, Mapping):
        return {key: _texts(each) for key, each in value.items()}
    return [_texts(each) for each in value] if isinstance(value, list) else value


def explain(recorded: Mapping[str, Any], asked: Mapping[str, Any]) -> str:
    """The differences of two canonical requests, a few lines for people."""
    found = list(differences(recorded, asked))
    lines = found[:_SHOWN_DIFFERENCES]
    if len(found) > len(lines):
        lines.append(f"... and {len(found) - len(lines)} more differences")
    return "\n".join(lines)


def differences(recorded: Any, asked: Any, place: str = "") -> Iterator[str]:
    """Each place where they differ, with both sides."""
    if isinstance(recorded, Mapping) and isinstance(asked, Mapping):
        for key in [*recorded, *(key for key in asked if key not in recorded)]:
            inner = f"{place}.{key}" if place else key
            yield from _compare(recorded, asked, key, inner)
    elif isinstance(recorded, list) and isinstance(asked, list):
        if len(recorded) != len(asked):
            yield f"{place}: recorded {len(recorded)} entries, asked with {len(asked)}"
        for index, (one, other) in enumerate(zip(recorded, asked, strict=False)):
            yield from differences(one, other, f"{place}[{index}]")
    elif recorded != asked:
        yield _contrast(place, recorded, asked)


def _compare(
    recorded: Mapping[str, Any], asked: Mapping[str, Any], key: str, place: str
) -> Iterator[str]:
    if key not in asked:
        yield f"{place}: recorded {_shown(recorded[key])}, not asked"
    elif key not in recorded:
        yield f"{place}: not recorded, asked {_shown(asked[key])}"
    else:
        yield from differences(recorded[key], asked[key], place)


def _contrast(place: str, recorded: Any, asked: Any) -> str:
    """Both sides; of long texts, from a little before the place where they part."""
    if not (isinstance(recorded, str) and isinstance(asked, str)):
        return f"{place}: recorded {_shown(recorded)}, asked {_shown(asked)}"
    if "\n" in recorded and "\n" in asked:
        changed = difflib.unified_diff(recorded.splitlines(), asked.splitlines(), n=1, lineterm="")
        lines = [_cut(line) for line in list(changed)[2:14]]
        return "\n    ".join([f"{place}: (- recorded, + asked)", *lines])
    same = next(
        (at for at, pair in enumerate(zip(recorded, asked, strict=False)) if len({*pair}) == 2),
        min(len(recorded), len(asked)),
    )
    start = max(0, same - _BEFORE)
    lead = "..." if start else ""
    one, other = (_shown(lead + each[start:]) for each in (recorded, asked))
    return f"{place}:\n    recorded {one}\n    asked    {other}"


def _shown(value: Any) -> str:
    return _cut(json.dumps(value, ensure_ascii=False))


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."
