"""How the user sees the work: read-only commands in main, through its repo_exec server."""

import json
import os
import re
import urllib.error
import urllib.request
from typing import Any

from record import Record

URL = os.environ.get("REPO_EXEC_URL", "http://main:8765/tool")
HTTP_TIMEOUT = 30

# Words in a message that make the user look at the latest work before answering.
SNAPSHOT_WORDS = (
    "done", "implemented", "fixed", "changed", "commit", "diff", "review", "ship", "tests pass",
    "key changes",
)  # fmt: skip
STATUS_CHARS = 12_000
HEAD_CHARS = 50_000

# No proxy: the address is a neighbour's.
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def speaks_of_work(message: str) -> bool:
    """Tell whether a message claims or offers something to look at."""
    lowered = message.lower()
    return any(word in lowered for word in SNAPSHOT_WORDS)


class Repo:
    """The repository in main, as far as a reader gets."""

    def __init__(self, record: Record) -> None:
        self._record = record

    def run(self, command: str, max_chars: int = 20_000, timeout: int = 25) -> dict[str, Any]:
        """Run one command; a failure to reach main is an answer too."""
        max_chars = min(max(int(max_chars), 1_000), 60_000)
        timeout = min(max(int(timeout), 1), 300)
        args = {"command": command, "max_chars": max_chars, "timeout": timeout}
        body = json.dumps({"tool": "run_command", "args": args}).encode()
        request = urllib.request.Request(
            URL, data=body, headers={"Content-Type": "application/json"}
        )
        try:
            with opener.open(request, timeout=HTTP_TIMEOUT) as response:
                result = json.load(response)
        except (OSError, ValueError) as problem:
            result = {"ok": False, "error": f"{type(problem).__name__}: {problem}"}
            self._record.event("repo_exec_error", error=result["error"])
        self._record.tool_call(tool="run_command", args=args, result=result)
        return result

    def head(self) -> str | None:
        """Return the commit id of HEAD."""
        result = self.run("git rev-parse HEAD")
        found = re.fullmatch(r"[0-9a-f]{40,64}", str(result.get("stdout", "")).strip())
        return found.group() if found else None

    def commits(self) -> int:
        """Count the commits up to HEAD."""
        result = self.run("git log --format=%h", max_chars=60_000)
        return len(str(result.get("stdout", "")).split())

    def snapshot(self) -> str | None:
        """Return the short status and the latest commit, or None where main does not answer."""
        status = self.run("git status --short", max_chars=STATUS_CHARS)
        latest = self.run("git show --stat --patch HEAD", max_chars=HEAD_CHARS)
        if not (status.get("ok") and latest.get("ok")):
            return None
        return (
            f"git status --short:\n{status.get('stdout', '')}\n"
            f"git show HEAD:\n{latest.get('stdout', '')}"
        )
