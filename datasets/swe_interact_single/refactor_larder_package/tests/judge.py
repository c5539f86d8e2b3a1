"""Run the hidden tests on a fresh copy of the work tree; exit 0 only if every expected one passes.

tests/config.json names the tests: FAIL_TO_PASS fail on the untouched repository, PASS_TO_PASS do
not. A test that is named there and did not run counts as failed, so nothing passes by vanishing.
The tests (tests/hidden/test_hidden.py) see the copy as the environment variable APP and look at it
from outside, through commands: the code under test never shares this process.
"""

import argparse
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path


def copy_tree(app, target):
    """Copy what git tracks and what it would add; return how many files that is."""
    listing = subprocess.run(
        ["git", "-c", f"safe.directory={app}", "-c", "core.fsmonitor=false", "-C", str(app)]
        + ["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate"],
        check=True,
        capture_output=True,
    )
    count = 0
    for name in os.fsdecode(listing.stdout).split("\0"):
        source = app / name
        if not name or not (source.is_symlink() or source.is_file()):
            continue
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target / name, follow_symlinks=False)
        count += 1
    return count


class Result(unittest.TextTestResult):
    """Keep each test's verdict, time and message by its short name."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.verdicts = {}
        self._started = 0.0

    def startTest(self, test):
        """Note the time."""
        super().startTest(test)
        self._started = time.monotonic()
        self._note(test, "passed", "")

    def addError(self, test, err):
        """Note an error, also one of a class or the module."""
        super().addError(test, err)
        self._note(test, "failed", self._exc_info_to_string(err, test))

    def addFailure(self, test, err):
        """Note a failure."""
        super().addFailure(test, err)
        self._note(test, "failed", self._exc_info_to_string(err, test))

    def addSkip(self, test, reason):
        """A hidden test has no business being skipped."""
        super().addSkip(test, reason)
        self._note(test, "failed", f"skipped: {reason}")

    def addSubTest(self, test, subtest, err):
        """A failed subtest fails its test."""
        super().addSubTest(test, subtest, err)
        if err is not None:
            self._note(test, "failed", self._exc_info_to_string(err, test))

    def stopTest(self, test):
        """Note how long it took."""
        super().stopTest(test)
        self.verdicts[short(test)]["duration"] = round((time.monotonic() - self._started) * 1000)

    def _note(self, test, status, message):
        entry = {"name": short(test), "status": status, "duration": 0}
        if message:
            entry["message"] = message[-4000:]
        self.verdicts[short(test)] = entry


def short(test):
    """Return `Class.method`."""
    return ".".join(test.id().split(".")[-2:])


def run(tests, app):
    """Run the hidden tests; return the verdicts by name."""
    os.environ["APP"] = str(app)
    hidden = tests / "hidden"
    sys.path.insert(0, str(hidden))
    spec = importlib.util.spec_from_file_location("test_hidden", hidden / "test_hidden.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["test_hidden"] = module
    spec.loader.exec_module(module)
    suite = unittest.defaultTestLoader.loadTestsFromModule(module)
    runner = unittest.TextTestRunner(stream=sys.stdout, verbosity=2, resultclass=Result)
    return runner.run(suite).verdicts


def write_ctrf(path, verdicts, started):
    """Write the verdicts in the Common Test Report Format."""
    entries = list(verdicts.values())
    passed = sum(entry["status"] == "passed" for entry in entries)
    summary = {
        "tests": len(entries), "passed": passed, "failed": len(entries) - passed, "pending": 0,
        "skipped": 0, "other": 0, "start": started, "stop": round(time.time() * 1000),
    }  # fmt: skip
    results = {"tool": {"name": "judge"}, "summary": summary, "tests": entries}
    path.write_text(json.dumps({"results": results}, indent=2) + "\n")


def main():
    """Judge."""
    options = argparse.ArgumentParser()
    options.add_argument("--app", type=Path, required=True)
    options.add_argument("--tests", type=Path, required=True)
    options.add_argument("--ctrf", type=Path, required=True)
    args = options.parse_args()
    config = json.loads((args.tests / "config.json").read_text())
    expected = config["FAIL_TO_PASS"] + config["PASS_TO_PASS"]
    started = round(time.time() * 1000)
    with tempfile.TemporaryDirectory(prefix="judge-") as folder:
        copy = Path(folder) / "app"
        copy.mkdir()
        print(f"{copy_tree(args.app.resolve(), copy)} files under test", flush=True)
        verdicts = run(args.tests.resolve(), copy)
    for name in expected:
        gone = {"name": name, "status": "failed", "duration": 0, "message": "did not run"}
        verdicts.setdefault(name, gone)
    write_ctrf(args.ctrf, verdicts, started)
    for kind in ("FAIL_TO_PASS", "PASS_TO_PASS"):
        names = config[kind]
        failed = [name for name in names if verdicts[name]["status"] != "passed"]
        print(f"{kind}: {len(names) - len(failed)} of {len(names)} pass", *failed, sep="\n  failed: ")
    ok = bool(expected) and all(entry["status"] == "passed" for entry in verdicts.values())
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
