"""The gateway's own door: synchronous, for whoever runs episodes.

A session has one. It opens a secret address for each party of an episode, says what the episode
has spent, and closes the addresses when the episode ends.

One gateway serves one process: each pytest-xdist worker has its own. A gateway costs 0.15 s of CPU
and 9 MB, and a process that serves its own episodes needs no control port that a container might
find, and takes its addresses along when it dies. What must hold over all workers (concurrency
limits, the run's budget) they share through a folder.
"""

from __future__ import annotations

import asyncio
import os
import re
import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final, Self

from pytest_harbor.errors import HarborError, RecipeError
from pytest_harbor.gateway.accounts import Access, Account, Door, Terms, new_secret
from pytest_harbor.gateway.app import Application
from pytest_harbor.gateway.budgets import Spent
from pytest_harbor.gateway.host import Host
from pytest_harbor.gateway.ledger import Call, Ledger, Summary, summarize
from pytest_harbor.gateway.limits import Limit, Spending
from pytest_harbor.gateway.local import LocalModel
from pytest_harbor.gateway.model_server import UNLIMITED, Budget, ModelServer
from pytest_harbor.gateway.prices import find_price
from pytest_harbor.gateway.providers import Provider, Recorder
from pytest_harbor.gateway.recording import Recording, recording_file
from pytest_harbor.gateway.relay_door import CALL_SECONDS, RelayAccess, RelayDoor
from pytest_harbor.gateway.relay_log import McpCall, RelayLog
from pytest_harbor.gateway.trials import Trials
from pytest_harbor.gateway.upstream import Upstream
from pytest_harbor.gateway.wires.base import Tool
from pytest_harbor.redaction import Redactor

_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")


class Gateway:
    """Every model call of every episode of this process goes through here.

    Args:
        run_budget: what all episodes may spend together, over all workers that share a folder.
        shared: a folder that the workers of a run share; None when there is one process.
        secrets: further values that no ledger and no recording may hold.
        record: a folder to keep each party's exchanges in.
        replay: a folder of recorded exchanges; every call is answered from it, no key is needed.
        environment: where keys are looked up; the operator's own by default.
    """

    def __init__(
        self,
        *,
        run_budget: Budget = UNLIMITED,
        shared: Path | None = None,
        record: Path | None = None,
        replay: Path | None = None,
        secrets: Iterable[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._run_budget = run_budget
        self._run = Spending(shared)
        self._shared = shared
        self.trials: Final = Trials(shared)
        """What was tried in this run, by any of its workers."""
        self._record = record
        self._replay = replay
        self._environment = os.environ if environment is None else environment
        self._secrets = set(secrets)
        self._redactor = Redactor(self._secrets)
        self._accounts: dict[str, Account] = {}
        self._doors: dict[str, Door] = {}
        self._upstreams: dict[str, Upstream] = {}
        self._local = LocalModel()
        self._lock = threading.RLock()
        self._relays: dict[str, RelayDoor] = {}
        self._host = Host(Application(self._doors, self._relays))
        self._url: str | None = None

    def start(self) -> Self:
        """Start serving, at first at 127.0.0.1 only."""
        if self._url is None:
            self._host.start()
            self._url = self._host.listen("127.0.0.1")
        return self

    def close(self) -> None:
        """End all episodes, close all sockets. Ledgers can still be read."""
        if self._url is None:
            return
        with suppress(HarborError):
            for episode in self.episodes:
                self.revoke(episode)
            self._host.do(self._close_upstreams())
        self._local.stop()
        self._host.stop()
        self._url = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def url(self) -> str:
        """Where the gateway listens for this machine itself."""
        if self._url is None:
            raise HarborError("the model gateway is not running; call start() first")
        return self._url

    @property
    def is_replaying(self) -> bool:
        """Whether every call is answered from a recording."""
        return self._replay is not None

    @property
    def secrets(self) -> frozenset[str]:
        """The keys in use by now, for whoever else writes files."""
        return frozenset(self._secrets)

    def listen(self, address: str, port: int = 0) -> str:
        """Serve at one more IP address, such as that of a group's bridge; returns the base URL.

        The machine need not have the address yet. Port 0 takes a free one.

        Raises:
            HarborError: it is no address, or one that stands for all.
        """
        return self._host.listen(address, port)

    def unlisten(self, base_url: str) -> None:
        """Stop serving at an address."""
        self._host.unlisten(base_url)

    def begin(self, episode: str, terms: Terms) -> None:
        """Say what holds for an episode, before its first door is opened.

        What it spent before, in an attempt that was given up, stays on its account.
        """
        with self._lock:
            before = self._accounts.get(episode)
            if before is not None and before.is_open:
                raise HarborError(
                    f"episode {episode!r} is under way at the gateway; revoke it first"
                )
            ledger = Ledger(terms.ledger, self._get_redactor, before.ledger.calls if before else ())
            run_budget = self._run_budget if terms.run_budget is None else terms.run_budget
            relay_log = RelayLog(
                terms.relay_log, self._get_redactor, before.relay_log.calls if before else ()
            )
            account = Account(episode, terms, ledger, relay_log, self._run, run_budget)
            if before is not None:
                account.spending, account.refused = before.spending, before.refused
                account.try_number = before.try_number + 1
            self._accounts[episode] = account

    def open(
        self, episode: str, party: str, server: ModelServer, *, base_url: str | None = None
    ) -> Access:
        """Open a secret address at which a party of an episode reaches a model server.

        Args:
            episode: its name; without :meth:`begin` nothing is limited and nothing is written.
            party: ``agent``, ``user``, ``judge``, ...: whose calls these are.
            server: where they go.
            base_url: one that :meth:`listen` gave; None for 127.0.0.1.

        Raises:
            RecipeError: the server's key is not there, its files cannot be read, or a budget in
                USD cannot bind it because its model has no price.
        """
        if not _NAME.fullmatch(party):
            raise RecipeError(f"{party!r} is no name for a party: letters, digits, . _ - only")
        base = base_url or self.url
        with self._lock:
            account = self._open_account(episode)
            played = server
            if self._replay is not None:
                played = replace(server, provider="replay", recording=self._replay)
            _refuse_unpriced(account, played)
            provider = self._provider(account, party, played)
            recorder = self._recorder(account, party)
            door = Door(new_secret(), account, party, server, played.provider, provider, recorder)
            self._doors[door.secret] = door
        return Access(base, door.secret)

    def relay(
        self,
        episode: str,
        name: str,
        target_url: str,
        *,
        base_url: str | None = None,
        headers: Mapping[str, str] | None = None,
        aliases: Mapping[str, str] | None = None,
        seconds: float = CALL_SECONDS,
    ) -> RelayAccess:
        """Open a secret address at which an episode's agent reaches an MCP server, on the record.

        Args:
            episode: its name, as in :meth:`open`.
            name: the server's, for the record.
            target_url: where it is over HTTP. Where it is known under another address than the
                one to connect to (a sidecar's), give the former here and the latter to
                :meth:`aim`, as soon as it exists.
            base_url: one that :meth:`listen` gave; None for 127.0.0.1.
            headers: sent along with each request, in place of the agent's of the same names.
            aliases: tools to be offered to the agent under another name, by their own.
            seconds: how long a call may take; then the agent is told that it took too long.
        """
        base = base_url or self.url
        with self._lock:
            door = RelayDoor(
                new_secret(),
                self._open_account(episode),
                name,
                target_url,
                headers=headers or {},
                aliases=aliases or {},
                seconds=seconds,
            )
            self._relays[door.secret] = door
        return RelayAccess(base, door.secret, door.path)

    def aim(self, relay: RelayAccess, url: str) -> None:
        """Say where a relay's server is to be found from this host; path and Host header stay."""
        with self._lock:
            if relay.secret in self._relays:
                self._relays[relay.secret].aim(url)

    def mcp_calls(self, episode: str) -> tuple[McpCall, ...]:
        """The requests of an episode's agent to its MCP servers, in the order they ended."""
        return self._account(episode).relay_log.calls

    def _open_account(self, episode: str) -> Account:
        known = self._accounts.get(episode)
        if known is None or not known.is_open:
            self.begin(episode, known.terms if known else Terms())
        return self._accounts[episode]

    def step(self, episode: str, name: str | None) -> None:
        """Say which step of the episode is under way; calls that begin now are entered under it."""
        self._account(episode).step = name

    @property
    def episodes(self) -> tuple[str, ...]:
        """The episodes that are under way."""
        return tuple(name for name, account in tuple(self._accounts.items()) if account.is_open)

    def spent(self, episode: str) -> Spent | None:
        """The budget that is used up, if any; ``refused`` says whether it stopped anything."""
        return self._account(episode).spent()

    def calls(self, episode: str) -> tuple[Call, ...]:
        """The calls of an episode by now, in the order in which they ended."""
        return self._account(episode).ledger.calls

    def offered(self, episode: str, party: str, step: str | None) -> tuple[Tool, ...] | None:
        """The tools that a party's model was offered in a step of the latest try.

        None when it was not asked at all.
        """
        account = self._account(episode)
        found = account.offered.get((party, account.try_number, step))
        return None if found is None else tuple(found.values())

    def summary(self, episode: str, party: str | None = None, *, latest: bool = False) -> Summary:
        """The sums of an episode, or of one party in it.

        An episode that was begun again holds the calls of all its tries, since all of them cost;
        ``latest`` leaves out those before the last one.
        """
        account = self._account(episode)
        return summarize(
            call
            for call in account.ledger.calls
            if party in (None, call.party) and (not latest or call.try_number == account.try_number)
        )

    def unreplayed(self, episode: str) -> dict[str, int]:
        """Recorded exchanges that were not asked for, by party; only parties with some."""
        players = self._account(episode).players
        left = {party: getattr(player, "left", 0) for (party, _), player in players.items()}
        return {party: number for party, number in left.items() if number}

    def revoke(self, episode: str) -> Summary:
        """Close the episode's addresses and break off its calls; afterwards the sums are final."""
        with self._lock:
            account = self._account(episode)
            account.is_open = False
            for secret, door in tuple(self._doors.items()):
                if door.account is account:
                    del self._doors[secret]
            for secret, relay in tuple(self._relays.items()):
                if relay.account is account:
                    del self._relays[secret]
        self._host.do(_break_off(account))
        return self.summary(episode)

    def _account(self, episode: str) -> Account:
        try:
            return self._accounts[episode]
        except KeyError:
            raise HarborError(f"the gateway knows no episode {episode!r}; open a door") from None

    def _provider(self, account: Account, party: str, server: ModelServer) -> Provider:
        """The provider behind a server: one for all that are asked, one per party of the others."""
        mark = server.fingerprint()
        if server.provider == "replay":
            mark = str(server.recording)  # one recording, whichever server it stands for
        if server.provider in ("http", "local"):
            if mark not in self._upstreams:
                self._upstreams[mark] = self._upstream(server)
            return self._upstreams[mark]
        place = (party, mark)
        if place not in account.players:
            account.players[place] = _player(account, party, server)
        return account.players[place]

    def _recorder(self, account: Account, party: str) -> Recorder | None:
        if self._record is None or not account.terms.recorded:
            return None
        if party not in account.recorders:
            file = recording_file(self._record, account.recording, party)
            account.recorders[party] = Recording(file, party, self._get_redactor)
        return account.recorders[party]

    def _upstream(self, server: ModelServer) -> Upstream:
        if server.provider == "local":
            server = self._local.serve(server)
        key = server.read_key(self._environment)
        self._hide(filter(None, (key, *server.secrets)))
        return Upstream(server, key, Limit(server.name, server.concurrency, self._shared))

    def _get_redactor(self) -> Redactor:
        return self._redactor

    def _hide(self, secrets: Iterable[str]) -> None:
        self._secrets.update(secrets)
        self._redactor = Redactor(self._secrets)

    async def _close_upstreams(self) -> None:
        await asyncio.gather(*(each.close() for each in self._upstreams.values()))


def _refuse_unpriced(account: Account, server: ModelServer) -> None:
    in_usd = account.terms.budget.usd is not None or account.run_budget.usd is not None
    if server.provider != "http" or not in_usd or server.model is None:
        return
    if find_price(account.terms.prices, server.model) is None:
        raise RecipeError(
            f"a budget in USD cannot bind model server {server.name!r}: there is no price for "
            f"{server.model}. Add one, or give the budget in tokens"
        )


def _player(account: Account, party: str, server: ModelServer) -> Provider:
    if server.provider == "script":
        from pytest_harbor.gateway.script import Scripted

        return Scripted(server)
    from pytest_harbor.gateway.replay import Replayed

    return Replayed(recording_file(server.recording or Path(), account.recording, party))


async def _break_off(account: Account) -> None:
    tasks = tuple(account.tasks)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
