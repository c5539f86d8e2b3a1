"""From reward files to numbers: reading what a verifier wrote, and adding steps up.

Reading is stricter than Harbor where Harbor guesses (harbor-format 5.2, 15). Adding up is done
twice from the same step rewards: by our rules, and as Harbor 0.26 would.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pytest_harbor.errors import VerifierError

Strategy = Literal["mean", "final"]

_DECIMAL = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_SCALAR = "reward"


@dataclass(frozen=True)
class Reading:
    """Rewards as a verifier wrote them, the one number among them, and what was odd."""

    rewards: Mapping[str, float]
    scalar: float | None
    file: str
    warnings: tuple[str, ...] = ()


def read_rewards(files: Mapping[str, bytes], *, key: str | None = None) -> Reading:
    """Read the rewards out of the files that a verifier left (name → bytes).

    ``reward.json`` wins over ``reward.txt`` (harbor-format 5.2). The scalar is the key ``reward``,
    else the configured ``key``, else the only key there is; otherwise None, which a step that
    decides cannot have.

    Raises:
        VerifierError: no file (outcome ``no_reward``), or one that holds no reward
            (outcome ``reward_unreadable``).
    """
    if "reward.json" in files:
        rewards, warnings = _from_json(files["reward.json"])
        if "reward.txt" in files:
            warnings += _disagreement(rewards, files["reward.txt"])
        name = "reward.json"
    elif "reward.txt" in files:
        rewards, warnings = {_SCALAR: _from_text(files["reward.txt"])}, ()
        name = "reward.txt"
    else:
        raise VerifierError(_nothing_there(files), outcome="no_reward")
    warnings += tuple(
        f"{name}: {k} = {v:g} is outside 0 to 1" for k, v in rewards.items() if not 0 <= v <= 1
    )
    scalar, note = _scalar(rewards, key)
    return Reading(rewards, scalar, name, warnings + note)


def _scalar(rewards: Mapping[str, float], key: str | None) -> tuple[float | None, tuple[str, ...]]:
    for name in (_SCALAR, key):
        if name is not None and name in rewards:
            return rewards[name], ()
    keys = ", ".join(sorted(rewards))
    if len(rewards) == 1:
        return next(iter(rewards.values())), (f"no key 'reward'; its only key, {keys}, is used",)
    return None, (
        f"no key 'reward' among {keys}: which one counts? Name it in the recipe (reward_key)",
    )


def _from_text(body: bytes) -> float:
    text = _decode("reward.txt", body).strip()
    if not text:
        raise _unreadable("reward.txt", "is empty")
    if not _DECIMAL.fullmatch(text):
        raise _unreadable("reward.txt", f"holds {_short(text)}, which is not a decimal number")
    return _finite("reward.txt", float(text))


def _from_json(body: bytes) -> tuple[dict[str, float], tuple[str, ...]]:
    name = "reward.json"
    text = _decode(name, body)
    if not text.strip():
        raise _unreadable(name, "is empty")
    try:
        data = json.loads(text, object_pairs_hook=_no_twins)
    except (ValueError, RecursionError) as error:
        raise _unreadable(name, f"is not JSON ({error})") from None
    if isinstance(data, int | float) and not isinstance(data, bool):
        number = _number(name, _SCALAR, data)
        return {_SCALAR: number}, (f"{name} holds a bare number; it is read as the reward",)
    if not isinstance(data, dict):
        raise _unreadable(name, f"holds {_short(text)}, not an object of numbers")
    if not data:
        raise _unreadable(name, "holds no reward: {}")
    warnings = tuple(
        f"{name}: {k} is a boolean; it is read as {int(v)}"
        for k, v in data.items()
        if isinstance(v, bool)
    )
    if isinstance(data.get(_SCALAR), int | float):
        # SWE-Interact's verifiers put the reason of a scored zero beside the number
        words = {k: v for k, v in data.items() if isinstance(v, str)}
        warnings += tuple(f"{name}: {k} is text: {_short(v)}" for k, v in words.items())
        data = {k: v for k, v in data.items() if k not in words}
    return {k: _number(name, k, v) for k, v in data.items()}, warnings


def _number(name: str, key: str, value: Any) -> float:
    if not isinstance(value, int | float):
        raise _unreadable(name, f"has {key} = {_short(json.dumps(value))}, which is not a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    return _finite(name, number, key)


def _finite(name: str, number: float, key: str = _SCALAR) -> float:
    if not math.isfinite(number):
        raise _unreadable(name, f"has {key} = {number}, which is not finite")
    return number


def _no_twins(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found and found[key] != value:
            raise ValueError(f"the key {key!r} stands there twice with different values")
        found[key] = value
    return found


def _disagreement(rewards: Mapping[str, float], text_body: bytes) -> tuple[str, ...]:
    try:
        text = _from_text(text_body)
    except VerifierError:
        return ("reward.json counts; reward.txt beside it cannot be read",)
    if _SCALAR in rewards and rewards[_SCALAR] != text:
        return (f"reward.json says {rewards[_SCALAR]:g} and counts; reward.txt says {text:g}",)
    return ()


def _nothing_there(files: Iterable[str]) -> str:
    names = sorted(files)
    lookalikes = [n for n in names if re.fullmatch(r"(?i)rewards?\.?(txt|json|md)?", n)]
    hint = f"; {lookalikes[0]} is not a name that is read" if lookalikes else ""
    seen = ", ".join(names[:20]) or "nothing"
    return f"the verifier wrote neither reward.json nor reward.txt (/logs/verifier: {seen}{hint})"


def _decode(name: str, body: bytes) -> str:
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise _unreadable(name, "is not UTF-8") from None


def _unreadable(name: str, what: str) -> VerifierError:
    return VerifierError(f"{name} {what}", outcome="reward_unreadable")


def _short(text: str) -> str:
    text = text.strip()
    return repr(text if len(text) <= 60 else text[:57] + "...")


@dataclass(frozen=True)
class StepScore:
    """What adding up needs to know of one declared step.

    ``graded`` steps have a verifier result; ``rewards`` are its keys and ``scalar`` its one number.
    """

    graded: bool = False
    reached: bool = False
    rewards: Mapping[str, float] | None = None
    scalar: float | None = None


def add_up(steps: Sequence[StepScore], strategy: Strategy) -> float | None:
    """The task's reward by our rules: every declared step is in the denominator.

    An unreached step counts 0; call this only for episodes that no infrastructure fault ended.
    """
    scalars = [0.0 if not step.reached else step.scalar for step in steps]
    counted = scalars if strategy == "mean" else scalars[-1:]
    known = [scalar for scalar in counted if scalar is not None]
    if not known or len(known) != len(counted):
        return None
    return math.fsum(known) / len(known)


def add_up_keys(steps: Sequence[StepScore], strategy: Strategy) -> dict[str, float]:
    """Every reward key by our rules; a key that a step lacks counts 0 there."""
    counted = list(steps) if strategy == "mean" else list(steps[-1:])
    return _mean_by_key([step.rewards or {} for step in counted])


def add_up_as_harbor(steps: Sequence[StepScore], strategy: Strategy) -> float | None:
    """The key ``reward`` as Harbor 0.26 aggregates it (harbor-format 3.4): executed steps only.

    Harbor goes no further than the first step that was not graded (3.3, row 13); we may, where the
    recipe counts that as zero.
    """
    reached = [step for step in steps if step.reached]
    ungraded = (number for number, step in enumerate(reached) if not step.graded)
    reached = reached[: next(ungraded, len(reached)) + 1]
    if strategy == "final":
        last = reached[-1] if reached else StepScore()
        return (last.rewards or {}).get(_SCALAR) if last.graded else None
    return _mean_by_key([step.rewards or {} for step in reached if step.graded]).get(_SCALAR)


def _mean_by_key(rewards: Sequence[Mapping[str, float]]) -> dict[str, float]:
    keys = dict.fromkeys(key for each in rewards for key in each)
    return {k: math.fsum(each.get(k, 0.0) for each in rewards) / len(rewards) for k in keys}


def missed_gate(
    minimum: float | Mapping[str, float] | None, reading: Mapping[str, float], scalar: float | None
) -> str | None:
    """Which part of a step's ``min_reward`` its rewards miss, in words; None when it is met.

    A number gates the key ``reward`` (or the scalar that stands for it); a table gates each of its
    keys, and a key that is missing misses its gate (harbor-format 2.7).
    """
    if minimum is None:
        return None
    if isinstance(minimum, Mapping):
        for key, least in minimum.items():
            got = reading.get(key)
            if got is None or got < least:
                return f"min_reward {key} ≥ {least:g}, got {'none' if got is None else f'{got:g}'}"
        return None
    got = reading.get(_SCALAR, scalar)
    if got is None or got < minimum:
        return f"min_reward ≥ {minimum:g}, got {'none' if got is None else f'{got:g}'}"
    return None
