"""aider: its chat history, a Markdown file for people.

The user's lines begin with ``####``, aider's own with ``>``, and all others are the model's. aider
exits with 0 whatever happened: no answer, or an error after the last one, is an error here.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from pytest_harbor.agents.readers.base import Reading
from pytest_harbor.agents.readers.draft import Draft, Story, exit_trouble
from pytest_harbor.agents.readers.lines import (
    bounded,
    logs_named,
    moment,
    read_text,
    the_one,
    total,
)
from pytest_harbor.trajectory import Metrics, Result

_START: Final = re.compile(r"^# aider chat started at (.+)$", re.MULTILINE)
_USER, _AIDER, _FENCE = "#### ", "> ", "```"
_ERROR: Final = re.compile(r"litellm\.\w+|\b\w+(?:Error|Exception):|has hit a token limit")
_TOKENS: Final = re.compile(
    r"Tokens: (?P<sent>[\d.,]+[kM]?) sent"
    r"(?:, (?P<written>[\d.,]+[kM]?) cache write)?"
    r"(?:, (?P<hit>[\d.,]+[kM]?) cache hit)?"
    r", (?P<received>[\d.,]+[kM]?) received\."
    r"(?: Cost: \$(?P<cost>[\d.,]+) message)?"
)
_TIMES: Final = {"k": 1_000, "M": 1_000_000}


class AiderReader:
    """Reads what ``aider --chat-history-file`` leaves."""

    def read(
        self,
        logs: Path,
        *,
        stdout: Path,  # noqa: ARG002  the history holds the same
        exit_code: int | None,
        instruction: str,
        agent_name: str,
        agent_version: str,
        model: str | None,
    ) -> Reading:
        """Read one turn."""
        story = Story(agent_name, agent_version, model)
        path = the_one(logs_named(logs, "*.md"), "chat", story.note)
        if path is None:
            story.note("there is no chat history (*.md)")
        text = read_text(path, story.note) if path is not None else ""
        chat = _Chat(story, model)
        chat.tell(text)
        story.begin_with(instruction)
        trouble = exit_trouble("aider", exit_code, is_done=chat.has_answer)
        if path is not None and trouble is None and not chat.has_answer:
            trouble = "aider got no answer from its model"
        return story.reading(error=chat.trouble or trouble)


READER = AiderReader()


class _Chat:
    """Tells the last chat of a history to a story; each start of aider begins one."""

    def __init__(self, story: Story, model: str | None) -> None:
        self._story = story
        self._model = model
        self._draft: Draft | None = None
        self._answers = 0
        self._at: str | None = None
        self.has_answer = False
        self.trouble: str | None = None

    def tell(self, text: str) -> None:
        starts = list(_START.finditer(text))
        if starts:
            self._at = moment(starts[-1][1].strip())
            text = text[starts[-1].end() :]
        fenced = False
        for line in text.splitlines():
            said = line.removesuffix("  ")
            if fenced or not line.startswith((_USER, _AIDER)):
                self._answer(line)
                fenced ^= line.startswith(_FENCE)
            elif line.startswith(_USER):
                self._user(said.removeprefix(_USER))
            else:
                self._aider(said.removeprefix(_AIDER))
        self._end()

    def _user(self, line: str) -> None:
        if self._draft is None or self._draft.source != "user":
            self._end()
            self._draft = self._story.say("user", "", self._at)
        self._draft.text.append(line)

    def _answer(self, line: str) -> None:
        if self._draft is not None and self._draft.source == "agent" and not self._draft.results:
            self._draft.text.append(line or " ")
        elif line.strip():
            self._end()
            self._answers += 1
            self._draft = self._story.reply(str(self._answers), None, self._model)
            self._draft.text.append(line)
            self.has_answer, self.trouble = True, None

    def _aider(self, line: str) -> None:
        """What aider says after an answer is what came of it; before, it is the system's."""
        if self._draft is None or self._draft.source == "user":
            self._end()
            self._draft = self._story.say("system", "", self._at)
        if _ERROR.search(line):
            self.trouble = line
        if self._draft.source == "system":
            self._draft.text.append(line)
            return
        before = self._draft.results[0].content if self._draft.results else None
        self._draft.results = [Result(content=f"{before}\n{line}" if before else line)]
        if found := _TOKENS.search(line):
            self._story.note("aider rounds the tokens that it tells")
            self._draft.metrics = _metrics(found)

    def _end(self) -> None:
        """Trim what has been gathered."""
        if self._draft is not None:
            lines = [line.rstrip() for line in self._draft.text]
            self._draft.text = [bounded("\n".join(lines).strip())]
        self._draft = None


def _metrics(found: re.Match[str]) -> Metrics:
    sent, hit, written = (_count(found[name]) for name in ("sent", "hit", "written"))
    return Metrics(
        prompt_tokens=total((sent, hit, written)),
        completion_tokens=_count(found["received"]),
        cached_tokens=hit,
        cost_usd=float(found["cost"].replace(",", "")) if found["cost"] else None,
    )


def _count(text: str | None) -> int | None:
    if text is None:
        return None
    times = _TIMES.get(text[-1], 1)
    return round(float(text.rstrip("kM").replace(",", "")) * times)
