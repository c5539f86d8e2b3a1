"""The records that a simulated user keeps of itself, where it hands them out.

SWE-Interact's does so at port 8001, to those who have its token. Its answers look the same whether
its model answered or not; only these records tell.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, Final

from pytest_harbor.sandbox.group import Group

_PORT: Final = "8001"
_TOKEN: Final = "swe-interact"  # noqa: S105  everybody's default; the operator may set another
_PATH: Final = "/export-user-logs"
_SECONDS: Final = 5.0
_LIMIT: Final = 64 * 1024 * 1024
_EVENTS: Final = "events.jsonl"
_CANNED: Final = ("llm_last_resort_reply", "ask_user_model_error")
"""Events after which the agent got an answer that no model gave."""


@dataclass(frozen=True)
class Export:
    """What was handed out."""

    files: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    """Why there is nothing, where there should be something."""

    @property
    def canned(self) -> dict[str, int]:
        """How often events occurred that mean a stock answer, by their names."""
        found = Counter(_events(self.files.get(_EVENTS, "")))
        return {name: found[name] for name in _CANNED if found[name]}


def fetch_export(service: str, group: Group) -> Export | None:
    """Fetch a simulated user's records from here; None where it hands out none."""
    address = group.address(service)
    if address is None:
        return None
    env = group.container(service).image_env
    port = env.get("SIM_USER_EXPORT_PORT") or _PORT
    token = urllib.parse.quote(env.get("SIM_USER_EXPORT_TOKEN") or _TOKEN)
    return ask(f"http://{address}:{port}{_PATH}?token={token}")


def ask(url: str) -> Export | None:
    """Ask for records at a URL; None where nobody listens or nobody knows of such a thing."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=_SECONDS) as response:
            document = json.loads(response.read(_LIMIT))
    except urllib.error.HTTPError as error:
        error.close()
        if error.code in (401, 403):
            return Export(notes=("its records are not handed out: the token is another one",))
        return None
    except OSError:
        return None
    except ValueError:
        return Export(notes=("its records are not JSON",))
    return Export(dict(_files(document)))


def _files(document: Any) -> Iterator[tuple[str, str]]:
    """Names and texts of the files in a document, wherever in it they stand."""
    if not isinstance(document, dict):
        return
    for name, value in document.items():
        if isinstance(value, str) and name.endswith(".jsonl"):
            yield PurePosixPath(name).name, value
        else:
            yield from _files(value)


def _events(lines: str) -> Iterator[str]:
    for line in lines.splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict):
            yield str(event.get("event") or event.get("type") or event.get("kind"))
