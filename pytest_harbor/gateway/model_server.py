"""What the gateway is told: which model servers there are, what tokens cost, what may be spent.

Frozen data only. Who reads it from a recipe, and who acts on it, is not this module's matter.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final, Literal, get_args
from urllib.parse import urlsplit

from pytest_harbor.errors import RecipeError

ProviderName = Literal["http", "script", "replay", "local"]
Auth = Literal["auto", "bearer", "x-api-key", "x-goog-api-key"]
TryWith = Literal["chat", "responses", "messages", "gemini", "off"]

_NEEDED: Final = {"http": "base_url", "script": "rules", "replay": "recording"}
"""What a server of each kind must name."""
_SECRET_HEADER: Final = re.compile(r"auth|key|token|secret|cookie", re.IGNORECASE)


@dataclass(frozen=True)
class ModelServer:
    """A place where a model answers, under the name that a recipe gives it."""

    name: str
    provider: ProviderName = "http"
    base_url: str | None = None
    """For ``http``. With a version in its path it is used as it stands, else one is added: /v1,
    for Gemini /v1beta."""
    model: str | None = None
    """Replaces whatever model the client asks for; None lets the client's choice through."""
    key_env: str | None = None
    """The variable of the operator's environment that holds the key."""
    key: str | None = field(default=None, repr=False)
    """The key itself; wins over ``key_env``."""
    auth: Auth = "auto"
    """The header that takes the key. ``auto``: as the wire has it (Anthropic's x-api-key, Google's
    x-goog-api-key), else Bearer."""
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    """Laid over the client's request, tables key by key; a null takes the client's key away."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout: float = 600.0
    """Seconds without a byte from the server."""
    retries: int = 4
    """Further tries after a 429, a 5xx or a lost connection, before anything was passed on."""
    concurrency: int | None = None
    """Calls under way at once, over all workers that share a folder; None for no limit."""
    inject_usage: bool = True
    """Ask for token counts where a chat stream does not; the client does not see them."""
    keep_tokens: bool = False
    """Write token ids and log probabilities, where the server returns them, beside the ledger."""
    try_with: TryWith = "chat"
    """The kind of request that an ``http`` server must answer before a run's first group starts."""
    rules: Path | None = None
    """For ``script``: the YAML file of its rules."""
    recording: Path | None = None
    """For ``replay``: the folder that was recorded to."""

    def __post_init__(self) -> None:
        problem = self._problem()
        if problem:
            raise RecipeError(f"model server {self.name!r}: {problem}")

    def _problem(self) -> str | None:
        if self.provider not in get_args(ProviderName):
            known = ", ".join(get_args(ProviderName))
            return f"there is no provider {self.provider!r}; there are {known}"
        if self.auth not in get_args(Auth):
            return f"auth is {self.auth!r}; give one of {', '.join(get_args(Auth))}"
        if self.try_with not in get_args(TryWith):
            return f"try_with is {self.try_with!r}; give one of {', '.join(get_args(TryWith))}"
        need = _NEEDED.get(self.provider)
        if need is not None and getattr(self, need) is None:
            return f"a server of provider {self.provider!r} needs {need}"
        if self.provider == "http" and urlsplit(self.base_url or "").scheme not in (
            "http",
            "https",
        ):
            return f"base_url is {self.base_url!r}; it must start with http:// or https://"
        if not (math.isfinite(self.timeout) and self.timeout > 0):
            return f"timeout is {self.timeout}; give seconds above 0"
        if self.retries < 0:
            return f"retries is {self.retries}; give 0 or more"
        if self.concurrency is not None and self.concurrency < 1:
            return f"concurrency is {self.concurrency}; give 1 or more, or leave it out"
        return None

    @property
    def is_free(self) -> bool:
        """Whether its tokens cost nothing, whatever the price table says."""
        return self.provider in ("script", "local")

    @property
    def secrets(self) -> tuple[str, ...]:
        """Values of this definition that no file or container may hold."""
        headers = (value for name, value in self.headers.items() if _SECRET_HEADER.search(name))
        return tuple(value for value in (self.key, *headers) if value)

    def read_key(self, environment: Mapping[str, str]) -> str | None:
        """The key, from the definition or the environment; None for a server that needs none.

        Raises:
            RecipeError: the variable that should hold it is not set or empty.
        """
        if self.key is not None or self.key_env is None:
            return self.key
        value = environment.get(self.key_env, "").strip()
        if not value:
            raise RecipeError(
                f"model server {self.name!r} takes its key from {self.key_env}, which is not set; "
                f"export it, or choose another server"
            )
        return value

    def identity(self) -> dict[str, Any]:
        """What moves a score, for a report: the definition without keys and headers."""
        kept = ("name", "provider", "base_url", "model", "extra_body", "rules", "recording")
        values = {name: getattr(self, name) for name in kept}
        return {
            name: str(value) if isinstance(value, Path) else value
            for name, value in values.items()
            if value not in (None, {})
        }

    def fingerprint(self) -> str:
        """Equal for equal definitions; tells nothing about the key in it."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        text = json.dumps(values, sort_keys=True, default=_plain)
        return hashlib.sha256(text.encode()).hexdigest()


def _plain(value: object) -> Any:
    return dict(value) if isinstance(value, Mapping) else str(value)


@dataclass(frozen=True)
class Price:
    """What tokens of a model cost, in USD per million."""

    input: float
    output: float
    cached: float | None = None
    """Input that the provider had in its cache; None: as ``input``."""
    written: float | None = None
    """Input that the provider put into its cache; None: as ``input``."""

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if value is not None and not (math.isfinite(value) and value >= 0):
                raise RecipeError(f"a price is {each.name}: {value}; give USD per million tokens")


Prices = Mapping[str, Price]
"""Prices by model name."""


@dataclass(frozen=True)
class Budget:
    """What may be spent; None for no limit. Calls under way when it runs out are let finish."""

    usd: float | None = None
    tokens: int | None = None
    """Input (cached or not) and output together."""

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if value is not None and not (math.isfinite(value) and value > 0):
                raise RecipeError(f"a budget is {each.name}: {value}; give a number above 0")


UNLIMITED: Final = Budget()
