"""Keeps each party's exchanges in a file, and reads them back.

    <folder>/<episode>/<party>.jsonl

One JSON line for each exchange. What requests repeat (every request of a conversation holds all
that was said before) stands once, in a line of its own, and is referred to.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pytest_harbor.errors import RecipeError
from pytest_harbor.gateway.providers import Answer, Request
from pytest_harbor.gateway.wires.base import WireName
from pytest_harbor.redaction import Redactor

VERSION: Final = 1
_WORTH_A_LINE: Final = 120
"""Characters from which on a part of a request is written once and referred to."""
_PART: Final = "$part"


@dataclass(frozen=True)
class Recorded:
    """One request and what was answered, as the gateway's provider gave it."""

    number: int
    """From 1, in the order of asking."""
    wire: WireName
    request: Mapping[str, Any]
    status: int | None
    """None when the client left before there was an answer."""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    events: tuple[str, ...] | None = None
    whole: bool = True
    """Whether the answer came to its end."""


def recording_file(folder: Path, episode: str, party: str) -> Path:
    """Where a party's exchanges are."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", episode).lstrip(".") or "episode"
    return folder / name / f"{party}.jsonl"


class Recording:
    """Takes down what a party asks and is answered; what was there before is replaced."""

    def __init__(self, file: Path, party: str, redactor: Callable[[], Redactor]) -> None:
        self._file = file
        self._redactor = redactor
        self._begun = 0
        self._parts: dict[str, str] = {}
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(_line({"recording": VERSION, "party": party}), encoding="utf-8")

    def tape(self, request: Request) -> RunningTape:
        """Begin to take down an exchange."""
        self._begun += 1
        return RunningTape(self, self._begun, request)

    def write(self, number: int, request: Request, answer: Mapping[str, Any]) -> None:
        """Write an exchange that is over, after the parts that it is the first to hold."""
        redactor = self._redactor()
        new: list[str] = []
        asked = {
            key: [self._referred(each, new, redactor) for each in value]
            if isinstance(value, list)
            else self._referred(value, new, redactor)
            for key, value in request.body.items()
        }
        head = {"exchange": number, "wire": request.wire.name, "request": asked}
        with self._file.open("a", encoding="utf-8", errors="replace") as file:
            file.write("".join(new) + _line({**head, **redactor.data(answer)}))

    def _referred(self, value: Any, new: list[str], redactor: Redactor) -> Any:
        """The value, or a reference to the line it stands in; a new line goes to ``new``."""
        text = json.dumps(value, sort_keys=True)
        if len(text) < _WORTH_A_LINE:
            return redactor.data(value)
        if text not in self._parts:
            self._parts[text] = f"p{len(self._parts) + 1}"
            new.append(_line({"part": self._parts[text], "value": redactor.data(value)}))
        return {_PART: self._parts[text]}


class RunningTape:
    """One exchange while it goes on."""

    def __init__(self, recording: Recording, number: int, request: Request) -> None:
        self._recording = recording
        self._number = number
        self._request = request
        self._answer: Answer | None = None
        self._events: list[str] = []

    def answered(self, answer: Answer) -> None:
        """An answer began; that of a whole body is all of it."""
        self._answer = answer

    def event(self, event: bytes) -> None:
        """An event of a stream came."""
        self._events.append(event.decode("utf-8", "replace"))

    def close(self, *, whole: bool) -> None:
        """The exchange is over: write it."""
        answer = self._answer
        if answer is None:
            data: dict[str, Any] = {"status": None}
        else:
            kept = {name: value for name, value in answer.headers.items() if _is_steady(name)}
            data = {"status": answer.status, "headers": kept, **self._content(answer)}
        self._recording.write(self._number, self._request, {**data, "whole": whole})

    def _content(self, answer: Answer) -> dict[str, Any]:
        if answer.events is not None:
            return {"events": self._events}
        try:
            return {"body": json.loads(answer.body)}
        except ValueError:
            return {"text": answer.body.decode("utf-8", "replace")}


def _is_steady(header: str) -> bool:
    """Headers that mean something when the answer is given again."""
    return header in ("content-type", "retry-after", "retry-after-ms", "x-should-retry")


def _line(data: Mapping[str, Any]) -> str:
    return json.dumps(data, ensure_ascii=False) + "\n"


def read_recording(file: Path) -> tuple[Recorded, ...]:
    """The exchanges of a file, in the order of asking.

    Raises:
        RecipeError: there is no such file, or it was not written by :class:`Recording`.
    """
    try:
        lines = [json.loads(line) for line in file.read_text(encoding="utf-8").split("\n") if line]
    except FileNotFoundError:
        raise RecipeError(_missing(file)) from None
    except (OSError, ValueError) as error:
        raise RecipeError(f"{file}: the recording cannot be read ({error})") from None
    if not lines or lines[0].get("recording") != VERSION:
        raise RecipeError(f"{file}: is no recording of this version ({VERSION}); record it again")
    parts = {line["part"]: line["value"] for line in lines if "part" in line}
    exchanges = (_exchange(line, parts) for line in lines if "exchange" in line)
    return tuple(sorted(exchanges, key=lambda each: each.number))


def _exchange(line: Mapping[str, Any], parts: Mapping[str, Any]) -> Recorded:
    request = {
        key: [_resolved(each, parts) for each in value]
        if isinstance(value, list)
        else _resolved(value, parts)
        for key, value in line["request"].items()
    }
    text = json.dumps(line["body"], ensure_ascii=False) if "body" in line else line.get("text", "")
    return Recorded(
        number=line["exchange"],
        wire=line["wire"],
        request=request,
        status=line["status"],
        headers=line.get("headers", {}),
        body=text.encode(),
        events=tuple(line["events"]) if "events" in line else None,
        whole=line["whole"],
    )


def _resolved(value: Any, parts: Mapping[str, Any]) -> Any:
    if isinstance(value, dict) and list(value) == [_PART]:
        return parts[value[_PART]]
    return value


def _missing(file: Path) -> str:
    """What is recorded instead: the name of an episode follows from its node id."""
    episode, folder = file.parent, file.parent.parent
    if episode.is_dir():
        there = f"parties recorded there: {_names(episode.glob('*.jsonl'))}"
    else:
        there = f"episodes recorded in {folder}: {_names(folder.glob('*'))}"
    return f"{file}: there is no such recording; {there}"


def _names(paths: Iterable[Path]) -> str:
    return ", ".join(sorted(path.stem for path in paths)) or "none"
