"""The ``script`` provider: a model that follows rules, in the shape of whichever wire asks."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from pytest_harbor.gateway.model_server import ModelServer
from pytest_harbor.gateway.outgoing import encode
from pytest_harbor.gateway.providers import Answer, ProviderError, Request, StreamError, Trace
from pytest_harbor.gateway.script_rules import (
    SHELLS,
    Fault,
    Rule,
    Script,
    Wanted,
    complete,
    load_script,
    shell_arguments,
)
from pytest_harbor.gateway.wires.base import Conversation, Reply, ToolCall, Usage, find_tool

_TITLE: Final = Rule(say="A scripted reply.")
"""For requests without tools that no rule meets, as CLIs make them for titles."""
_JSON: Final = {"content-type": "application/json"}
_STREAM: Final = {"content-type": "text/event-stream", "cache-control": "no-cache"}
_CHARACTERS_PER_TOKEN: Final = 4


class Scripted:
    """Plays a script to one party of an episode, from the start."""

    def __init__(self, server: ModelServer) -> None:
        self._path = server.rules or Path()
        self._server = server
        self._script: Script = load_script(self._path)
        self._calls = 0
        self._used: Counter[int] = Counter()

    @asynccontextmanager
    async def answer(self, request: Request, _trace: Trace) -> AsyncIterator[Answer]:
        """Answer by the first rule that meets the request."""
        asked = request.wire.conversation(request.body)
        self._calls += 1
        rule = self._choose(asked, request.party)
        reply = self._reply(rule, asked, request)
        await asyncio.sleep(rule.delay)
        if rule.fault is not None and rule.fault.hang:
            await asyncio.Event().wait()
        yield _answer(rule, reply, request)

    async def close(self) -> None:
        """Nothing is held."""

    def _choose(self, asked: Conversation, party: str) -> Rule:
        rules = self._script.rules
        for number, rule in enumerate(rules):
            if rule.times is not None and self._used[number] >= rule.times:
                continue
            if rule.calls_tools and not asked.tools:
                continue
            if rule.when.meets(asked, party, self._calls):
                self._used[number] += 1
                return rule
        if not asked.tools and any(rule.calls_tools for rule in rules):
            return _TITLE
        raise ProviderError(
            400,
            "unscripted",
            f"{self._path.name} has no rule for turn {asked.turn} (call {self._calls} of "
            f"{party}); the last message is {_short(asked)!r}",
        )

    def _reply(self, rule: Rule, asked: Conversation, request: Request) -> Reply:
        seed = f"{request.episode}/{request.party}/{self._calls}"
        name = hashlib.sha256(seed.encode()).hexdigest()[:16]
        reply = Reply(
            id=name,
            model=self._script.model or self._server.model or asked.model or "scripted",
            created=int(time.time()),
            usage=Usage(0, 0),
            text=rule.say,
            thinking=rule.think if asked.thinks else "",
            calls=tuple(self._tool_calls(rule, asked, name)),
        )
        return replace(reply, usage=_usage(rule, reply, request))

    def _tool_calls(self, rule: Rule, asked: Conversation, seed: str) -> Iterable[ToolCall]:
        wanted = list(rule.call)
        if rule.shell is not None:
            wanted.append(Wanted(tool=SHELLS))
        for number, each in enumerate(wanted):
            tool = find_tool(each.tool, asked.tools)
            if tool is None:
                offered = ", ".join(tool.qualified for tool in asked.tools)
                raise ProviderError(
                    400,
                    "unscripted",
                    f"{self._path.name} calls {' or '.join(each.tool)} in turn {asked.turn}, which "
                    f"the request does not offer; it offers {offered}",
                )
            arguments: dict[str, Any] = each.arguments
            if rule.shell is not None and each.tool == SHELLS:
                arguments = shell_arguments(tool, rule.shell)
            yield ToolCall(f"call_{seed}{number}", tool, complete(tool, arguments))


def _answer(rule: Rule, reply: Reply, request: Request) -> Answer:
    fault = rule.fault or Fault()
    if fault.status is not None:
        return _fault(fault, fault.status, request)
    if fault.cut is not None:
        parts = request.wire.events(reply, request.outgoing) if request.streams else ()
        return Answer(200, _STREAM, events=_cut(parts, fault.cut))
    if not request.streams:
        return Answer(200, _JSON, encode(request.wire.whole(reply)))
    return Answer(
        200, _STREAM, events=_paced(request.wire.events(reply, request.outgoing), rule.pace)
    )


def _fault(fault: Fault, status: int, request: Request) -> Answer:
    headers = dict(_JSON)
    if fault.retry_after is not None:
        headers["retry-after"] = f"{fault.retry_after:g}"
    return Answer(status, headers, encode(request.wire.error(status, "scripted", fault.message)))


async def _paced(events: Iterable[bytes], pace: float) -> AsyncIterator[bytes]:
    for event in events:
        yield event
        await asyncio.sleep(pace)


async def _cut(events: Iterable[bytes], after: int) -> AsyncIterator[bytes]:
    for number, event in enumerate(events):
        if number == after:
            break
        yield event
    raise StreamError("the script breaks the connection here")


def _usage(rule: Rule, reply: Reply, request: Request) -> Usage:
    if rule.usage is not None:
        return Usage(**rule.usage.model_dump())
    said = reply.thinking + reply.text + "".join(json.dumps(each.arguments) for each in reply.calls)
    return Usage(
        input=_tokens(json.dumps(request.body)),
        output=_tokens(said),
        reasoning=_tokens(reply.thinking) if reply.thinking else 0,
    )


def _tokens(text: str) -> int:
    return len(text) // _CHARACTERS_PER_TOKEN + 1


def _short(asked: Conversation) -> str:
    text = asked.said[-1].text if asked.said else ""
    return text if len(text) <= 200 else f"{text[:200]}..."
