"""Fetch the simulated user's logs from its export port. Never fatal: a failure is a file too."""

import json
import os
import sys
import urllib.request
from pathlib import Path

BASE = os.environ.get("USER_SERVER_EXPORT_URL") or "http://user-server:8001/export-user-logs"
TOKEN = os.environ.get("SIM_USER_EXPORT_TOKEN") or "swe-interact"
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

target = Path(sys.argv[1])
target.mkdir(parents=True, exist_ok=True)
try:
    with opener.open(f"{BASE}?token={TOKEN}", timeout=20) as response:
        files = json.load(response)["files"]
    for name, text in files.items():
        (target / Path(name).name).write_text(text)
    sizes = {name: len(text.encode()) for name, text in files.items()}
    (target / "manifest.json").write_text(json.dumps(sizes, indent=2) + "\n")
    (target / ".exported").touch()
except Exception as problem:
    (target / "export-error.txt").write_text(f"{type(problem).__name__}: {problem}\n")
