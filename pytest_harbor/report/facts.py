"""What the HTML page says of a step and an episode: chips beside the name, facts below.

Only words; all text still is as hostile as it came. html.py cleans whatever a template prints.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from pytest_harbor.episode.result import EpisodeResult, GrantRecord, StepResult
from pytest_harbor.report.episodes import tokens_of
from pytest_harbor.report.parties import party_items
from pytest_harbor.report.text import count, decimal, duration, money, number_of, reward
from pytest_harbor.report.transcript import Transcript, is_call_of

_TOLD: Final = 20
"""How many of a list of an agent's own remarks are shown."""

Tone = Literal["bad", "warn", "broken", "quiet"]


def words(name: str) -> str:
    """An outcome's name as words."""
    return name.replace("_", " ")


def item_name(result: EpisodeResult) -> str:
    """The test's own part of the node id."""
    return result.key.rpartition("::")[2] or result.task


@dataclass(frozen=True)
class Chip:
    """A small remark beside a step's name."""

    text: str
    tone: Tone = "quiet"


@dataclass(frozen=True)
class Fact:
    """A line of a definition list; ``items`` are shown as a list."""

    label: str
    text: str = ""
    items: tuple[str, ...] = ()
    code: bool = False


@dataclass(frozen=True)
class Setting:
    """A recipe key over all episodes."""

    key: str
    value: str
    source: str


def settings(results: Iterable[EpisodeResult]) -> list[Setting]:
    """The recipe in force; a key that is not the same everywhere says so."""
    seen: dict[str, dict[tuple[str, str], None]] = {}
    for result in results:
        for each in result.recipe:
            seen.setdefault(each.key, {})[(_shown(each.value), each.source)] = None
    return [
        Setting(key, *next(iter(values)))
        if len(values) == 1
        else Setting(key, f"differs ({len(values)} values)", "")
        for key, values in seen.items()
    ]


def _shown(value: object) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def step_chips(
    step: StepResult, chat: Transcript | None, asked: int | None = None
) -> Iterator[Chip]:
    """What is worth a remark at a glance; nothing of a step that simply went well.

    ``asked`` is how often the user's own log says it was asked in this step.
    """
    turn = step.turn
    if turn is not None and turn.ended != "exited":
        yield Chip("agent timeout" if turn.ended == "timeout" else "agent error", "warn")
    elif turn is not None and turn.exit_code:
        yield Chip(f"agent exit {turn.exit_code}", "warn")
    if step.gate:
        yield Chip("gate", "bad")
    if step.fault is not None:
        yield Chip(words(step.fault.outcome), "broken")
    if step.grade is not None and step.grade.exit_code:
        yield Chip(f"verifier exit {step.grade.exit_code}", "warn")
    if step.hygiene.tampering:
        yield Chip("tampering", "bad")
    if step.warnings:
        yield Chip(number_of(len(step.warnings), "warning"), "warn")
    for text in _calls(step, chat, asked):
        yield Chip(text)


def _calls(step: StepResult, chat: Transcript | None, asked: int | None) -> Iterator[str]:
    """How often each granted tool was called, where that is known (B90)."""
    calls = granted_calls(step, chat)
    if asked is not None:
        calls = {**calls, next(iter(calls or granted_tools(step.grants)), "user"): asked}
    for tool, number in calls.items():
        yield f"{tool}: {number_of(number, 'call')}"


def granted_calls(step: StepResult, chat: Transcript | None) -> dict[str, int]:
    """Calls of each granted tool, by the gateway, else by who ran the agent or its transcript."""
    if any(grant.calls is not None for grant in step.grants):
        return {tool: n for grant in step.grants for tool, n in (grant.calls or {}).items()}
    counted = step.turn.extra.get("mcp_calls") if step.turn else None
    if isinstance(counted, dict):
        return {str(tool): n for tool, n in counted.items() if isinstance(n, int)}
    if chat is None:
        return {}
    return {
        tool: sum(n for name, n in chat.calls.items() if is_call_of(name, [tool]))
        for tool in granted_tools(step.grants)
    }


def granted_tools(grants: Iterable[GrantRecord]) -> list[str]:
    """The tools that a step's agent was given over MCP."""
    return list(dict.fromkeys(tool for grant in grants for tool in grant.tools))


def granted_names(grants: Iterable[GrantRecord]) -> list[str]:
    """The same as agents call them that join server and tool with a single underscore, too."""
    joined = (f"{grant.name}_{tool}" for grant in grants for tool in grant.tools)
    return [*granted_tools(grants), *(name for each in joined for name in (each, f"mcp_{each}"))]


def step_facts(step: StepResult, chat: Transcript | None) -> Iterator[Fact]:
    """Everything that is known of a step, turn first, then grading, then what surrounds them."""
    yield from _turn_facts(step)
    if chat is not None and chat.calls:
        calls = [
            f"{name} \N{MULTIPLICATION SIGN} {number}"
            for name, number in chat.calls.most_common(12)
        ]
        yield Fact("Tool calls", ", ".join(calls))
    if chat is not None and chat.copied:
        yield Fact(
            "Copied", f"{number_of(chat.copied, 'message')} from an earlier session, left out"
        )
    called = {party: each for party, each in step.parties.items() if each.calls}
    if called:
        yield Fact("Model calls", items=party_items(called))
    yield from _grade_facts(step)
    for grant in step.grants:
        yield Fact(f"MCP {grant.name}", _grant(grant))
    yield from _hygiene_facts(step)
    if step.artifacts:
        items = tuple(
            f"{each.source} ({each.status}{f': {each.note}' if each.note else ''})"
            for each in step.artifacts
        )
        yield Fact("Artifacts", items=items)
    if step.warnings:
        yield Fact("Warnings", items=step.warnings)


def _turn_facts(step: StepResult) -> Iterator[Fact]:
    turn = step.turn
    if turn is None:
        return
    exit_code = "" if turn.exit_code is None else f" with {turn.exit_code}"
    ended = {"exited": f"exited{exit_code}", "timeout": "out of time", "error": "error"}[turn.ended]
    told = f": {turn.message}" if turn.message else ""
    yield Fact("Turn", f"{ended} after {duration(turn.ran.seconds)}{told}")
    if turn.budget:
        yield Fact("Agent budget", turn.budget)
    spent = [count(tokens_of(step)) + " tokens"] if tokens_of(step) is not None else []
    spent += [money(turn.cost_usd)] if turn.cost_usd is not None else []
    if spent:
        yield Fact("Spent", ", ".join(spent))
    yield from _told_by_agent(turn.extra)


def _told_by_agent(extra: Mapping[str, object]) -> Iterator[Fact]:
    """What the agent adds to its turn: the version that ran, what a card changes, what diverged."""
    for name, value in extra.items():
        title = f"Agent's {name.replace('_', ' ')}"
        if isinstance(value, list) and value:
            yield Fact(title, items=tuple(str(each) for each in value[:_TOLD]))
        elif isinstance(value, str | int | float) and value != "":
            yield Fact(title, str(value))


def _grade_facts(step: StepResult) -> Iterator[Fact]:
    grade = step.grade
    if grade is None:
        return
    exit_code = "no exit status" if grade.exit_code is None else f"exit {grade.exit_code}"
    yield Fact("Verifier", f"{exit_code} after {duration(grade.ran.seconds)}")
    if grade.budget:
        yield Fact("Verifier budget", grade.budget)
    if set(grade.rewards) - {"reward"}:
        rewards = tuple(f"{key} = {decimal(value)}" for key, value in grade.rewards.items())
        yield Fact("Rewards", items=rewards)
    if step.gate:
        yield Fact("Gate", step.gate)


def _hygiene_facts(step: StepResult) -> Iterator[Fact]:
    named = {
        "Tampering": step.hygiene.tampering,
        "Killed before grading": step.hygiene.killed_before_grading,
        "Killed after grading": step.hygiene.killed_after_grading,
        "Removed after grading": step.hygiene.removed,
        "Changed while grading": step.hygiene.changed,
    }
    for label, items in named.items():
        if items:
            more = (f"… and {len(items) - 20} more",) if len(items) > 20 else ()
            yield Fact(label, items=(*items[:20], *more), code=True)


def _grant(grant: GrantRecord) -> str:
    seen = {True: "answered", False: "did not answer", None: "not tried"}[grant.reachable]
    tools = f"; tools: {', '.join(grant.tools)}" if grant.tools else ""
    note = f"; {grant.note}" if grant.note else ""
    return f"{grant.mode}, {seen}{tools}{_called(grant)}{note}"


def _called(grant: GrantRecord) -> str:
    """What the agent did with it, where its calls were counted."""
    if grant.calls is None:
        return ""
    number = sum(grant.calls.values())
    if not number:
        hidden = [] if grant.offered is None else sorted({*grant.tools} - {*grant.offered})
        unseen = f"; not offered to the model by name: {', '.join(hidden)}" if hidden else ""
        return f"; never called{unseen}"
    errors = f", {number_of(grant.errors, 'error')}" if grant.errors else ""
    return f"; {number_of(number, 'call')}{errors}, waited {duration(grant.wait_seconds)}"


def episode_facts(result: EpisodeResult) -> Iterator[Fact]:
    """What identifies an episode and decides what its number means."""
    yield Fact("Run it again", f"pytest {_shell(result.key)}", code=True)
    if result.agent is not None:
        agent = " ".join(filter(None, [result.agent.name, result.agent.version]))
        effort = f"effort {result.agent.effort}" if result.agent.effort else None
        yield Fact("Agent", ", ".join(filter(None, [agent, result.agent.model, effort])))
    if result.attempt > 1:
        yield Fact("Attempt", str(result.attempt))
    graded = f"{result.reward_strategy} of the steps, passes from {decimal(result.threshold)}"
    yield Fact("Pass rule", graded)
    if result.reward != result.reward_as_harbor:
        ours, theirs = reward(result.reward), reward(result.reward_as_harbor)
        yield Fact("Reward", f"{ours}; by Harbor's rules {theirs}")
    if result.tokens is not None:
        yield Fact("Tokens", f"{result.tokens:,}")
    if result.parties:
        yield Fact("Model calls", items=party_items(result.parties))
    if result.task_digest:
        yield Fact("Task digest", result.task_digest, code=True)
    if result.part_digests:
        parts = (f"{part}: {digest[:12]}" for part, digest in sorted(result.part_digests.items()))
        yield Fact("Its parts", items=tuple(parts), code=True)
    if result.network_mode:
        yield Fact("Network", result.network_mode)
    if result.images:
        images = tuple(f"{service}: {image}" for service, image in sorted(result.images.items()))
        yield Fact("Images", items=images, code=True)
    if result.host_names_asked:
        yield Fact("Asked of the host", ", ".join(result.host_names_asked))
    if result.warnings:
        yield Fact("Warnings", items=result.warnings)


def _shell(text: str) -> str:
    return text if re.fullmatch(r"[\w./:@%+=-]+", text) else "'" + text.replace("'", "'\\''") + "'"
