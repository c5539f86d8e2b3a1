#!/usr/bin/env python3
"""Check the tasks' verifiers in their own images. Needs Docker.

    check.py [TASK...]

For each task: the untouched repository and the plausible wrong solution (wrong/<task>.patch) must
score 0, the solution must score 1, and each way to hand in the wrong shape must be a structural
failure with its own code. tests/config.json must name every hidden test, in the list where it belongs;
a test that is named nowhere or in the wrong list is printed. Where there is a rubric: what passes the hidden tests only
(wrong/<task>.rubric.patch) must score 0, and what a model says must count, with a stand-in for the
model. What the simulated user says is not checked here; run the oracle for that.
"""

import json
import subprocess
import sys
from pathlib import Path

SHARED = Path(__file__).resolve().parent
DATASET = SHARED.parent

# Begins every case: the repository as the image has it, nothing left from the case before.
FRESH = """
set -e
rm -rf /app /tmp/base_commit.txt /logs && cp -a /pristine /app && mkdir -p /logs/verifier
cd /app
git config user.name Dev
git config user.email dev@example.com
base() { git rev-parse HEAD > /tmp/base_commit.txt; }
solve() { bash /solution/solve.sh; }
apply() { git update-index -q --refresh || true; git apply --index /case/tests.patch; }
commit() { git add -A; git commit -qm "$1"; }
"""

# What the single-turn verifier says about a work tree.
TREES = {
    "untouched": (":", 0.0),
    "wrong solution": ("git apply /case/wrong.patch", 0.0),
    "solution": ("solve", 1.0),
    "solution with leftovers": (
        "solve; mkdir -p build node_modules;"
        " for f in build/inq json.py unittest.py conftest.py; do echo 'raise SystemExit' > $f; done",
        1.0,
    ),
}

# What step 5 says about what was handed in: a structural code, or a reward.
HANDED_IN = {
    "nothing": (":", "no_base"),
    "no such base commit": (
        "solve; commit a; apply; commit b; echo gone > /tmp/base_commit.txt",
        "bad_base",
    ),
    "uncommitted work": ("base; solve; commit a; apply; commit b; echo >> README.md", "dirty_tree"),
    "no commit": ("base", "no_parent"),
    "nothing on the base": ("git commit -qm x --allow-empty; base", "nothing_committed"),
    "one commit": ("base; solve; apply; commit all", "not_separate"),
    "an empty test commit": (
        "base; solve; commit a; git commit -qm b --allow-empty",
        "empty_test_commit",
    ),
    "another history": (
        "base; solve; git checkout -q --orphan new; commit a; apply; commit b",
        "rewritten_history",
    ),
    "no repository": ("base; rm -rf .git", "no_repository"),
    "the wrong solution": ("base; git apply /case/wrong.patch; commit a; apply; commit b", 0.0),
    "the solution": ("base; solve; commit a; apply; commit b; touch untracked", 1.0),
    "the solution in two commits": (
        "base; solve; git add README.md; git commit -qm a; commit b; apply; commit c",
        1.0,
    ),
}

# What a judge makes of a work tree: EVAL_MODEL, and a reward or the code of an error.
JUDGED = {
    "tests pass, the rubric does not": ("git apply /case/rubric.patch", "script", 0.0),
    "a model approves": ("solve", "fair", 1.0),
    "a model approves at the second try": ("solve", "busy", 1.0),
    "a model finds a fault": ("solve", "strict", 0.0),
    "a model approves of the wrong solution": ("git apply /case/wrong.patch", "fair", 0.0),
    "a model makes no sense": ("solve", "mumbling", "no_answer"),
    "a model is refused": ("solve", "unknown", "judge_failed"),
    "a model without a key": ("solve", "keyless", "no_credentials"),
    "no change and no key": (":", "keyless", "no_credentials"),
}

# Stands in for an endpoint. The name of the model says how it behaves.
ENDPOINT = """
import json
from http.server import BaseHTTPRequestHandler, HTTPServer

ITEMS = json.load(open("/tests/rubrics.json"))[1:]
busy = []

class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        question, model = body["messages"][0]["content"], body["model"]
        at, item = next((n, i) for n, i in enumerate(ITEMS) if i["title"] in question)
        good = "NO" if item["annotations"]["type"].startswith("negative") else "YES"
        status = 200
        if self.headers["Authorization"] != "Bearer secret" or model == "unknown":
            status = 404
        elif model == "busy" and not busy:
            busy.append(1)
            status = 503
        elif model == "strict" and at == 1:
            good = "NO" if good == "YES" else "YES"
        text = "Hm." if model == "mumbling" else f"**{good}**: so it is."
        reply = json.dumps({"choices": [{"message": {"content": text}}]}).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

HTTPServer(("127.0.0.1", 8099), Handler).serve_forever()
"""


def docker(*words, **more):
    """Run the Docker client."""
    return subprocess.run(["docker", *words], check=True, capture_output=True, text=True, **more)


class Box:
    """A running container of a task's image, with the task's tests, solution and patches."""

    def __init__(self, task):
        image = docker("build", "-q", str(task / "environment")).stdout.strip()
        self.id = docker("run", "-d", "--rm", "--init", image, "sleep", "3600").stdout.strip()
        self.run("mkdir /case /step5; cp -a /app /pristine")
        step5 = task / "steps/05_test_handoff"
        self.copy(f"{task}/solution", "/solution")
        self.copy(f"{task}/tests", "/tests")
        self.copy(f"{task}/tests/.", "/step5")
        self.copy(f"{step5}/tests/.", "/step5")
        self.copy(SHARED / "wrong" / f"{task.name}.patch", "/case/wrong.patch")
        self.keys = ["reward"]
        if (task / "tests/rubrics.json").is_file():
            self.keys += ["tests_reward", "must_have_pass", "rubrics_agg_score"]
            self.copy(SHARED / "wrong" / f"{task.name}.rubric.patch", "/case/rubric.patch")
            docker("exec", "-d", self.id, "python3", "-c", ENDPOINT)
        self.copy(task / "steps/04_write_tests/solution/tests.patch", "/case/tests.patch")

    def copy(self, source, target):
        """Copy into the container."""
        docker("cp", "-q", str(source), f"{self.id}:{target}")

    def run(self, script):
        """Run a piece of bash; return its output."""
        return docker("exec", "-w", "/", self.id, "bash", "-c", script).stdout

    def tree(self, case):
        """Return the reward of a work tree."""
        self.run(f"{FRESH}{case}\n/tests/test.sh > /logs/verifier/test-stdout.txt 2>&1")
        return json.loads(self.run("cat /logs/verifier/reward.json"))["reward"]

    def misplaced(self):
        """Return what config.json has in the wrong list, or not at all."""
        self.tree(":")
        config = json.loads(self.run("cat /tests/config.json"))
        tests = json.loads(self.run("cat /logs/verifier/ctrf.json"))["results"]["tests"]
        listed = {name: kind for kind in ("FAIL_TO_PASS", "PASS_TO_PASS") for name in config[kind]}
        found = []
        for test in tests:
            right = "PASS_TO_PASS" if test["status"] == "passed" else "FAIL_TO_PASS"
            if test.get("message") == "did not run":
                found.append(f"{test['name']}: there is no such test")
            elif listed.get(test["name"]) != right:
                found.append(f"{test['name']}: {right}")
        return found

    def handed_in(self, case):
        """Return what step 5 makes of a case: a structural code, or the reward."""
        url = "USER_SERVER_EXPORT_URL=http://127.0.0.1:9/"
        self.run(f"{FRESH}{case}\n{url} bash /step5/test.sh > /logs/verifier/test-stdout.txt 2>&1")
        reward = json.loads(self.run("cat /logs/verifier/reward.json"))
        structural = self.run("cat /logs/verifier/structural.json 2> /dev/null || true")
        keys = ["reward"] if structural else self.keys
        if list(reward) != keys or not all(isinstance(value, float) for value in reward.values()):
            return f"reward.json holds {reward}"
        if structural:
            code = json.loads(structural)["code"]
            return code if reward["reward"] == 0.0 else f"{code} with reward {reward}"
        return reward["reward"]

    def judged(self, case, model):
        """Return what a judge makes of a work tree: the reward, or the code of its error."""
        key = "" if model == "keyless" else "secret"
        judge = f"EVAL_MODEL={model} EVAL_API_KEY={key} EVAL_BASE_URL=http://127.0.0.1:8099"
        self.run(f"{FRESH}{case}\n{judge} /tests/test.sh > /logs/verifier/test-stdout.txt 2>&1 || :")
        error = self.run("cat /logs/verifier/judge_error.json 2> /dev/null || true")
        reward = self.run("cat /logs/verifier/reward.json 2> /dev/null || true")
        if error:
            said = json.loads(error)["code"] in self.run("cat /logs/verifier/test-stdout.txt")
            return f"{error} {reward}" if reward or not said else json.loads(error)["code"]
        return json.loads(reward)["reward"]

    def remove(self):
        """Remove the container."""
        docker("rm", "-f", self.id)


def check(task):
    """Print a line per case; return how many are not as they should be."""
    wrong = 0
    box = Box(task)
    try:
        judged = JUDGED if len(box.keys) > 1 else {}
        for look, cases in ((box.tree, TREES), (box.handed_in, HANDED_IN), (box.judged, judged)):
            for name, (*case, expected) in cases.items():
                got = look(*case)
                wrong += got != expected
                verdict = "ok   " if got == expected else "WRONG"
                print(f"{verdict} {task.name}: {name}: {got}", flush=True)
        misplaced = box.misplaced()
        wrong += len(misplaced)
        for line in misplaced:
            print(f"WRONG {task.name}: tests/config.json: {line}")
    except subprocess.CalledProcessError as problem:
        print(f"WRONG {task.name}: {problem}\n{problem.stdout}{problem.stderr}")
        wrong += 1
    finally:
        box.remove()
    return wrong


def main():
    """Check the named tasks, or all."""
    names = sys.argv[1:] or sorted(path.parent.name for path in DATASET.glob("*/task.toml"))
    return 1 if sum(check(DATASET / name) for name in names) else 0


if __name__ == "__main__":
    sys.exit(main())
