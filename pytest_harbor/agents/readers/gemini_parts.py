"""Messages in Gemini's form, as gemini-cli and qwen-code keep them: parts, calls and responses."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pytest_harbor.agents.readers.draft import Draft, Story
from pytest_harbor.agents.readers.lines import Line, flat, number, table
from pytest_harbor.trajectory import Metrics


def tell_parts(story: Story, draft: Draft, parts: Iterable[Line]) -> None:
    """Add the parts of an answer: text, thoughts and calls."""
    for part in parts:
        call = table(part, "functionCall")
        if call:
            tell_call(story, draft, call)
        elif part.get("thought"):
            draft.thoughts.append(flat(part.get("text")))
        elif part.keys() - {"thoughtSignature"}:
            draft.text.append(flat([part]))


def tell_call(story: Story, draft: Draft, call: Line) -> None:
    """Add a call; one without id gets the place that it stands at."""
    call_id = call.get("id") or f"{call.get('name')}-{len(draft.calls) + 1}"
    story.call(draft, str(call_id), str(call.get("name")), call.get("args"))


def tell_responses(
    story: Story, parts: Iterable[Line], at: str | None = None, **extra: Any
) -> None:
    """Add what came of calls."""
    for part in parts:
        found = table(part, "functionResponse")
        answer = table(found, "response")
        if found:
            content = answer.get("output", answer.get("error", answer))
            failed = True if "error" in answer else None
            story.result(str(found.get("id")), content, at, is_error=failed, **extra)


def metrics(prompt: Any, cached: Any, whole: Any) -> Metrics:
    """An answer's tokens; what is not prompt is completion, thoughts included."""
    asked, everything = number(prompt), number(whole)
    said = everything - asked if asked is not None and everything is not None else None
    return Metrics(prompt_tokens=asked, completion_tokens=said, cached_tokens=number(cached))
