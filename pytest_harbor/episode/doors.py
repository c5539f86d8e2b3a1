"""An episode's secret doors at the model gateway: opened before its group, closed at its end.

They tell the group where its containers find their models, and the episode what was spent there,
by whom, and whether the simulated user could think.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from pytest_harbor.agents.base import Grant, ModelDoor
from pytest_harbor.episode.model_servers import (
    MARK,
    POLICY,
    located,
    make_servers,
    make_terms,
    party_of,
    placeholder,
)
from pytest_harbor.episode.plan import Plan
from pytest_harbor.episode.result import PartyRecord
from pytest_harbor.errors import HarborError, RecipeError, SandboxError, UserError
from pytest_harbor.sandbox.container import Container
from pytest_harbor.sandbox.from_inside import (
    NoClientError,
    UnreachableError,
    request_from_inside,
)
from pytest_harbor.task.timeouts import Deadline

if TYPE_CHECKING:
    from pytest_harbor.gateway import (
        Access,
        Call,
        Gateway,
        McpCall,
        ModelServer,
        RelayAccess,
        Summary,
    )

LEDGER: Final = "model-calls.jsonl"
"""The file of an episode's folder in which each call stands."""
RELAY_LOG: Final = "mcp-calls.jsonl"
"""The same for what the agent asked of MCP servers."""
AGENT: Final = party_of(POLICY)
USER: Final = party_of("user_model")
_TRY_SECONDS: Final = 10.0


class Doors:
    """The doors of one episode, for as many groups as it takes."""

    mark: Final = MARK

    def __init__(
        self, plan: Plan, gateway: Gateway, episode: str, folder: Path, host: Mapping[str, str]
    ) -> None:
        """Make the plan's model servers; nothing is open yet.

        Raises:
            RecipeError: a server lacks what it needs.
        """
        self._gateway = gateway
        self._episode = episode
        self._plan = plan
        self._terms = replace(
            make_terms(plan.recipe, folder / LEDGER), relay_log=folder / RELAY_LOG
        )
        self._grants = plan.relayable
        self._aliases = plan.agent.capabilities.tool_aliases
        replaying = gateway.is_replaying
        self._servers = tuple(
            make_servers(plan.model_servers, plan.recipe, host, replaying=replaying)
        )
        self._access: dict[str, Access] = {}
        self._relays: dict[str, RelayAccess] = {}
        self._listening: dict[str, str] = {}
        self._before = self._asked_before = 0
        self._began = False
        self.is_open = False
        self.secrets: frozenset[str] = frozenset()
        """What no file of the episode may hold: keys, and the addresses that were given out."""

    def open(self) -> None:
        """Open a door for each model server, and one for each MCP server of the agent's.

        Raises:
            HarborError: a key is missing, a model server does not answer, a budget cannot bind,
                or is spent before the start.
        """
        self._gateway.begin(self._episode, self._terms)
        self.is_open = self._began = True
        try:
            self._before = len(self._gateway.calls(self._episode))
            self._asked_before = len(self._gateway.mcp_calls(self._episode))
            for server in self._servers:
                self._access[server.name] = self._open(server)
            for grant in self._grants:
                self._relays[grant.name] = self._gateway.relay(
                    self._episode,
                    grant.name,
                    grant.url or "",
                    headers=grant.headers,
                    aliases=self._aliases,
                )
            opened = [access.secret for access in self._access.values()]
            opened += [relay.secret for relay in self._relays.values()]
            self.secrets |= {*opened, *self._gateway.secrets}
            self.check(goes_on=True)
        except BaseException:
            self.close()
            raise

    def _open(self, server: ModelServer) -> Access:
        from pytest_harbor.gateway.preflight import try_once

        try:
            access = self._gateway.open(self._episode, party_of(server.name), server)
            model = self._plan.model if server.name == POLICY else None
            try_once(self._gateway, server, server.model or model)
        except RecipeError as error:
            raise located(error, server.name, self._plan.recipe) from None
        return access

    def close(self) -> None:
        """Let the addresses die; afterwards the sums are final."""
        self.unlisten()
        if self.is_open:
            self.is_open = False
            self._gateway.revoke(self._episode)

    # -- where they are ----------------------------------------------------------------------

    def listen(self, address: str) -> Mapping[str, str]:
        """Be there at an address of this host; returns what to write for which placeholder."""
        if address not in self._listening:
            self._listening[address] = self._gateway.listen(address)
        return self._addresses(address)

    def unlisten(self) -> None:
        """Be at no address any more."""
        while self._listening:
            _, base_url = self._listening.popitem()
            self._gateway.unlisten(base_url)

    def fill(self, values: Mapping[str, str], address: str | None) -> dict[str, str]:
        """Variables with what stands behind placeholders, as seen from a container.

        ``address`` is that of this host as the container sees it.

        Raises:
            HarborError: there is a placeholder, and no such address.
        """
        if not any(MARK in value for value in values.values()):
            return dict(values)
        if address not in self._listening:
            raise HarborError(
                "main cannot reach the model gateway: none of its networks is a bridge of this "
                "host with a known address",
                outcome="start_failed",
            )
        found = self._addresses(address)
        return {name: _replaced(value, found) for name, value in values.items()}

    def _addresses(self, address: str) -> dict[str, str]:
        base_url = self._listening[address]
        return {placeholder(name): access.at(base_url).url for name, access in self._access.items()}

    def model(self, name: str, address: str | None) -> ModelDoor:
        """Where the agent finds its model, by an address of this host that it can reach.

        An agent that works on this host needs no way from main to here.
        """
        place = address if address in self._listening else "127.0.0.1"
        self.listen(place)
        return ModelDoor(name, self._access[POLICY].at(self._listening[place]).url)

    def try_from(self, main: Container, address: str | None) -> tuple[str, ...]:
        """See from inside main that the gateway answers; returns what could not be tried.

        Raises:
            SandboxError: it does not, as where a firewall is in the way.
        """
        from pytest_harbor.gateway.preflight import firewall_hint

        if address not in self._listening:
            return ()
        base_url = self._listening[address]
        place = urlsplit(base_url)
        access = next(iter(self._access.values()), None)
        path, status = (f"{access.secret}/v1/models", b" 200 ") if access else ("", b" 404 ")
        asked = f"GET /{path} HTTP/1.1\r\nHost: gateway\r\nConnection: close\r\n\r\n"
        host, port = place.hostname or "", place.port or 80
        limit = Deadline.after(_TRY_SECONDS, "trying the model gateway from inside main")
        try:
            answer = request_from_inside(main, host, port, asked, limit)
        except NoClientError as error:
            return (f"whether main can reach the model gateway was not tried: {error}",)
        except UnreachableError as error:
            said = f" ({error})" if str(error) else ""
            raise SandboxError(firewall_hint(base_url) + said) from None
        if status not in answer.split(b"\r\n", 1)[0]:
            raise SandboxError(f"at {place.netloc} something else answers main: {answer[:200]!r}")
        return ()

    def relay(self, grant: Grant, url: str, address: str | None) -> Grant | None:
        """A grant by way of the gateway; None where main or the gateway has no such way.

        ``url`` is where this host finds the server, ``address`` where main finds this host. The
        headers of the grant stay here: they are added on the way.
        """
        if grant.name not in self._relays or address not in self._listening:
            return None
        relay = self._relays[grant.name]
        self._gateway.aim(relay, url)
        return replace(grant, url=relay.at(self._listening[address]).url, headers={})

    # -- what went through ---------------------------------------------------------------------

    def step(self, name: str | None) -> None:
        """Say which step is under way."""
        self._gateway.step(self._episode, name)

    def check(self, *, goes_on: bool) -> None:
        """See whether a budget or the simulated user's model gave out.

        ``goes_on``: more is to come, so a budget that is used up is one too many even where
        nothing was refused yet.

        Raises:
            HarborError: outcome ``budget_spent``, or ``user_degraded``.
        """
        spent = self._gateway.spent(self._episode)
        if spent is not None and (goes_on or spent.refused):
            refused = f"; {spent.refused} model calls were refused" if spent.refused else ""
            raise HarborError(f"{spent}{refused}", outcome="budget_spent")
        calls = [call for call in self._calls() if call.party == USER]
        failed = [call for call in calls if call.ended == "failed"]
        if failed:
            raise UserError(
                f"{len(failed)} of {len(calls)} model calls of the simulated user failed, the "
                f"first with {failed[0].fault} (status {failed[0].status}): {failed[0].message}",
                outcome="user_degraded",
            )

    def unreplayed(self) -> tuple[str, ...]:
        """What a recording holds and nobody asked for again, as warnings."""
        if not self._began:
            return ()
        return tuple(
            f"{number} recorded model calls of {party} were not asked for in this replay"
            for party, number in self._gateway.unreplayed(self._episode).items()
        )

    def parties(self, step: str | None = None) -> dict[str, PartyRecord]:
        """Who called how much: in a step of this try, or in all steps of all tries."""
        from pytest_harbor.gateway import summarize

        if not self._began:
            return {}
        if step is None:
            calls = self._gateway.calls(self._episode)
        else:
            calls = tuple(call for call in self._calls() if call.step == step)
        found = {}
        for server in self._servers:
            party = party_of(server.name)
            own = [call for call in calls if call.party == party]
            found[party] = _party(summarize(own), own, server.identity() if step is None else {})
        return found

    def tool_calls(self, step: str) -> tuple[McpCall, ...]:
        """What the agent called of MCP servers in a step of this try."""
        calls = self._gateway.mcp_calls(self._episode)[self._asked_before :]
        return tuple(call for call in calls if call.is_tool_call and call.step == step)

    def offered(self, step: str, tools: Iterable[str]) -> tuple[str, ...] | None:
        """Which MCP tools the agent's model was offered in a step, whatever the CLI calls them.

        None when the agent asked no model here.
        """
        from pytest_harbor.gateway import find_tool

        if not self._began:
            return None
        found = self._gateway.offered(self._episode, AGENT, step)
        if found is None:
            return None
        shown = {tool: self._aliases.get(tool, tool) for tool in tools}
        return tuple(tool for tool, name in shown.items() if find_tool([name], found))

    def _calls(self) -> tuple[Call, ...]:
        """The calls of this try."""
        return self._gateway.calls(self._episode)[self._before :]


def _replaced(text: str, found: Mapping[str, str]) -> str:
    for old, new in found.items():
        text = text.replace(old, new)
    return text


def _party(summary: Summary, calls: Iterable[Call], server: Mapping[str, object]) -> PartyRecord:
    models = (call.served_model or call.asked_model for call in calls)
    return PartyRecord(
        calls=summary.calls,
        failed=summary.failed,
        refused=summary.refused,
        abandoned=summary.abandoned,
        retries=summary.retries,
        input_tokens=summary.input_tokens,
        output_tokens=summary.output_tokens,
        cached_tokens=summary.cached_tokens,
        reasoning_tokens=summary.reasoning_tokens,
        seconds=round(summary.seconds, 3),
        cost_usd=summary.cost_usd,
        notes=summary.notes,
        models=tuple(dict.fromkeys(model for model in models if model)),
        server=dict(server),
    )
