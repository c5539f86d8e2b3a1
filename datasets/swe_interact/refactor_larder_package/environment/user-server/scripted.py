"""A user who follows script.yaml: always the same answers to the same work.

They open vague, approve a plan, and say what they want one thing at a time, each only after
looking at a new commit that lacks it. When nothing is missing any more they approve. Keys of
script.yaml:

    base_commits   how many commits the repository starts with (default 1)
    opening        the first answer, whatever was asked
    planning       rules for what is asked before there is code, and `default`
    plan           `match`: what sounds like a plan; `reply`: the approval of it
    no_commit      "have a look" was said, but there is no commit yet
    same_commit    ... or none since the last look
    cannot_look    the repository cannot be read
    questions      rules for what is asked later without showing work, and `default`
    requirements   in the order in which they are raised: `id`, `seen`, `ask`, `again`
    approval       nothing is missing
    approved       anything said after that

A rule is `match` (a regular expression, in any case) and `reply`. `seen` is one condition or a
list: `grep` (an extended regular expression that HEAD must contain) or `no_grep`, and `path`. Without
`seen` (the difference cannot be read off the code) a thing is asked for once. One that was asked for
MAX_ASKS times and is still not seen is let go, and so is one that the agent twice claims to have
without committing anything.
"""

import re
import shlex
from pathlib import Path
from typing import Any

import yaml

from record import Record
from repo import Repo, speaks_of_work

MAX_ASKS = 2

ANSWERS = ("opening", "no_commit", "same_commit", "cannot_look", "approval", "approved")


def load(path: Path) -> dict[str, Any]:
    """Read a script, and refuse one that would fail in the middle of a conversation."""
    script: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    texts = [script[name] for name in ANSWERS]
    rules = [script["plan"]]
    for name in ("planning", "questions"):
        texts.append(script[name]["default"])
        rules.extend(script[name].get("rules", ()))
    for rule in rules:
        re.compile(rule["match"])
        texts.append(rule["reply"])
    names = [wanted["id"] for wanted in script["requirements"]]
    if len(set(names)) != len(names):
        raise ValueError(f"{path.name}: two requirements of one id")
    for wanted in script["requirements"]:
        texts += [wanted["ask"], wanted.get("again", wanted["ask"])]
        for condition in conditions_of(wanted):
            if ("grep" in condition) == ("no_grep" in condition):
                raise ValueError(f"{path.name}: {wanted['id']}: one of grep and no_grep")
    if not all(isinstance(text, str) and text.strip() for text in texts):
        raise ValueError(f"{path.name}: every answer must be a text")
    return script


def conditions_of(wanted: dict[str, Any]) -> list[dict[str, str]]:
    """Return the conditions under which a requirement is met; none if they cannot be seen."""
    seen = wanted.get("seen", [])
    return seen if isinstance(seen, list) else [seen]


class ScriptedUser:
    """Where the conversation stands, and the rules for what comes next."""

    def __init__(self, script: Path, repo: Repo, record: Record) -> None:
        self._script = load(script)
        self._repo = repo
        self._record = record
        self._calls = 0
        self._plan_approved = False
        self._approved = False
        self._reviewed: str | None = None
        self._raised: str | None = None
        self._stale = 0
        self._asks: dict[str, int] = {}

    def describe(self) -> str:
        """Name this user for the log."""
        return "script"

    def reply(self, question: str) -> str:
        """Answer one message."""
        self._calls += 1
        if self._calls == 1:
            return self._script["opening"].strip()
        if self._approved:
            return self._script["approved"].strip()
        if self._repo.commits() <= self._script.get("base_commits", 1):
            return self._before_code(question)
        if speaks_of_work(question):
            return self._review()
        return self._by_rules("questions", question)

    def _before_code(self, question: str) -> str:
        plan = self._script["plan"]
        if not self._plan_approved and re.search(plan["match"], question, re.IGNORECASE):
            self._plan_approved = True
            return plan["reply"].strip()
        if self._plan_approved and speaks_of_work(question):
            return self._script["no_commit"].strip()
        return self._by_rules("planning", question)

    def _review(self) -> str:
        """Look at the latest commit; name the first thing that is missing."""
        seen = self._repo.snapshot()
        self._record.event("snapshot", found=seen is not None)
        head = self._repo.head()
        if seen is None or head is None:
            return self._script["cannot_look"].strip()
        if head != self._reviewed:
            self._reviewed, self._stale = head, 0
        else:
            self._stale += 1
            if self._stale < MAX_ASKS and self._raised is not None:
                return self._script["same_commit"].strip()
            if self._raised is not None:
                self._asks[self._raised] = MAX_ASKS
        for wanted in self._script["requirements"]:
            name = wanted["id"]
            asked = self._asks.get(name, 0)
            conditions = conditions_of(wanted)
            limit = MAX_ASKS if conditions else 1
            if asked >= limit or (conditions and self._is_there(conditions)):
                continue
            self._asks[name] = asked + 1
            self._raised = name
            self._record.event("requirement_raised", id=name, times=asked + 1)
            said = wanted["ask"] if asked == 0 else wanted.get("again", wanted["ask"])
            return said.strip()
        self._approved = True
        self._record.event("approved", head=head)
        return self._script["approval"].strip()

    def _is_there(self, conditions: list[dict[str, str]]) -> bool:
        """Check a requirement's conditions against HEAD."""
        for condition in conditions:
            wanted = "grep" in condition
            pattern = shlex.quote(condition["grep" if wanted else "no_grep"])
            path = shlex.quote(condition.get("path", "."))
            result = self._repo.run(f"git grep -nE -e {pattern} HEAD -- {path}")
            if (result.get("returncode") == 0) != wanted:
                return False
        return True

    def _by_rules(self, name: str, question: str) -> str:
        """Answer by the first rule that fits, else by the default."""
        rules = self._script[name]
        for rule in rules.get("rules", ()):
            if re.search(rule["match"], question, re.IGNORECASE):
                return rule["reply"].strip()
        return rules["default"].strip()
