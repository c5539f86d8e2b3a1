#!/usr/bin/env python3
"""Let the simulated user look at the repository: a few read-only commands over HTTP.

Runs as the main service's own command, on port 8765. `POST /tool` takes
`{"tool": "run_command", "args": {"command", "max_chars", "timeout"}}` and answers with
`{"ok": true, "returncode", "stdout", "stderr", "content"}`, or with `{"ok": false, "error"}`.
No shell is involved: the command is split into words, checked, and run as it stands.
What the user then makes of it is none of this file's business.
"""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ROOT = os.environ.get("REPO_EXEC_ROOT", "/app")
PORT = int(os.environ.get("REPO_EXEC_PORT", "8765"))
MAX_BODY = 1_000_000

GIT_SUBCOMMANDS = {
    "cat-file", "diff", "grep", "log", "ls-files", "rev-parse", "show", "status",
}  # fmt: skip
# Options that write a file or start another program. Git accepts any unambiguous beginning.
GIT_REFUSED = ("--output", "--ext-diff", "--textconv", "--filters", "--open-files-in-pager")
GIT_HARMLESS = {"--text"}
# Nothing that the repository's own configuration names may run on the user's behalf.
GIT_PREFIX = ["git", "--no-pager", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"]
GIT_NO_DRIVERS = ["--no-ext-diff", "--no-textconv"]
FIND_REFUSED = {
    "-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint", "-fprint0", "-fprintf", "-fls",
}  # fmt: skip
SHELL_WORDS = {"|", "||", "&", "&&", ";", ">", ">>", "<", "2>", "2>&1"}


class Refused(Exception):
    """The command is not one of those that the user may run."""


def check_git(words):
    """Return the git command line to run, or refuse."""
    at = 0
    prefix = list(GIT_PREFIX)
    while at < len(words) and words[at].startswith("-"):
        if words[at] == "--no-pager":
            at += 1
        elif words[at] == "-C" and at + 1 < len(words):
            prefix += words[at : at + 2]
            at += 2
        else:
            raise Refused(f"git option not allowed: {words[at]}")
    if at == len(words) or words[at] not in GIT_SUBCOMMANDS:
        allowed = ", ".join(sorted(GIT_SUBCOMMANDS))
        raise Refused(f"only these git commands are allowed: {allowed}")
    subcommand, options = words[at], words[at + 1 :]
    for word in options:
        if word == "--":
            break
        name = word.split("=", 1)[0]
        begins = len(name) > 3 and any(refused.startswith(name) for refused in GIT_REFUSED)
        if begins and name not in GIT_HARMLESS:
            raise Refused(f"git option not allowed: {word}")
        if subcommand == "grep" and re.match(r"-[A-Za-z]*O", word):
            raise Refused(f"git option not allowed: {word}")
    drivers = GIT_NO_DRIVERS if subcommand in {"diff", "log", "show"} else []
    return [*prefix, subcommand, *drivers, *options]


def check_rg(words):
    """Return the ripgrep command line to run, or refuse."""
    for word in words:
        if word.startswith(("--pre", "--hostname-bin")):
            raise Refused(f"rg option not allowed: {word}")
    return ["rg", "--no-config", *words]


def check_sed(words):
    """Return the sed command line to run, or refuse."""
    for word in words:
        if word.startswith("--i") or re.match(r"-[nErsuzb]*i", word):
            raise Refused("sed may not edit in place")
    return ["sed", "--sandbox", *words]


def check_find(words):
    """Return the find command line to run, or refuse."""
    for word in words:
        if word in FIND_REFUSED:
            raise Refused(f"find action not allowed: {word}")
    return ["find", *words]


CHECKS = {
    "git": check_git,
    "rg": check_rg,
    "sed": check_sed,
    "find": check_find,
    "grep": lambda words: ["grep", *words],
    "ls": lambda words: ["ls", *words],
    "cat": lambda words: ["cat", *words],
}


def allowed(command):
    """Turn a command's text into the words to run, or refuse."""
    try:
        words = shlex.split(command)
    except ValueError as problem:
        raise Refused(f"cannot split the command into words: {problem}") from None
    if not words:
        raise Refused("the command is empty")
    if SHELL_WORDS & set(words):
        raise Refused("one plain command at a time: no pipes, redirections or lists")
    if words[0] not in CHECKS:
        raise Refused(f"only these commands are allowed: {', '.join(sorted(CHECKS))}")
    return CHECKS[words[0]](words[1:])


def cut(data, limit):
    """Decode a command's output and keep its first `limit` characters."""
    text = data.decode("utf-8", "replace")
    if len(text) <= limit:
        return text
    return text[:limit] + f"\n[cut: {len(text) - limit} more characters]"


def run_command(args):
    """Run one allowed command in the repository."""
    limit = min(max(int(args.get("max_chars") or 20_000), 1), 200_000)
    seconds = min(max(float(args.get("timeout") or 30), 1), 300)
    words = allowed(str(args.get("command") or ""))
    environment = {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": "/nonexistent",
        "LANG": "C.UTF-8",
        "GIT_OPTIONAL_LOCKS": "0",  # git status would otherwise refresh the index on disk
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "safe.directory",
        "GIT_CONFIG_VALUE_0": "*",
    }
    try:
        done = subprocess.run(
            words,
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=seconds,
        )
    except subprocess.TimeoutExpired:
        return {"ok": False, "error": f"no answer within {seconds:g} seconds"}
    except OSError as problem:
        return {"ok": False, "error": f"cannot run {words[0]}: {problem}"}
    out, err = cut(done.stdout, limit), cut(done.stderr, limit)
    return {
        "ok": True,
        "returncode": done.returncode,
        "stdout": out,
        "stderr": err,
        "content": out if done.returncode == 0 else out + err,
    }


def answer(request):
    """Answer one request's JSON body."""
    if not isinstance(request, dict):
        return {"ok": False, "error": "the body must be a JSON object"}
    if request.get("tool") != "run_command":
        return {"ok": False, "error": f"tool not available: {request.get('tool')}"}
    args = request.get("args")
    if not isinstance(args, dict):
        return {"ok": False, "error": "args must be a JSON object"}
    try:
        return run_command(args)
    except Refused as reason:
        return {"ok": False, "error": str(reason)}
    except (TypeError, ValueError) as problem:
        return {"ok": False, "error": f"bad arguments: {problem}"}


class Handler(BaseHTTPRequestHandler):
    """The two addresses: POST /tool and GET /health."""

    def reply(self, status, document):
        """Send a JSON document."""
        data = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        """Say that the server is there."""
        found = self.path == "/health"
        self.reply(200 if found else 404, {"ok": found})

    def do_POST(self):
        """Run a tool."""
        if self.path != "/tool":
            self.reply(404, {"ok": False, "error": "no such address"})
            return
        length = int(self.headers.get("Content-Length") or 0)
        if length > MAX_BODY:
            self.reply(413, {"ok": False, "error": "the body is too large"})
            return
        try:
            request = json.loads(self.rfile.read(length))
        except ValueError:
            self.reply(400, {"ok": False, "error": "the body is not JSON"})
            return
        self.reply(200, answer(request))

    def log_message(self, format, *args):
        """Keep quiet: the user's side keeps the record."""


def main():
    """Serve until told to stop."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    ThreadingHTTPServer(("0.0.0.0", PORT), Handler).serve_forever()


if __name__ == "__main__":
    main()
