"""A gateway on real sockets, and behind it a model server that answers as a test tells it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from fake_model_server import CANARY, FakeModelServer, Served

from pytest_harbor.gateway import Access, Gateway, ModelServer, Price, Terms


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[FakeModelServer, str]]:
    fake = FakeModelServer()
    served = Served(fake)
    yield fake, served.url
    served.stop()


@pytest.fixture
def upstream(served: tuple[FakeModelServer, str]) -> FakeModelServer:
    fake, _ = served
    fake.forget()
    return fake


@pytest.fixture
def policy(served: tuple[FakeModelServer, str], upstream: FakeModelServer) -> ModelServer:
    """A model server that needs a key, with no time to lose between tries."""
    return ModelServer("policy", base_url=served[1], model="real-1", key_env="POLICY_KEY")


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    with Gateway(environment={"POLICY_KEY": CANARY}) as gateway:
        yield gateway


@pytest.fixture
def terms(tmp_path: Path) -> Terms:
    prices = {"real-1": Price(input=2.0, output=10.0, cached=0.5)}
    return Terms(ledger=tmp_path / "ledger.jsonl", prices=prices)


@pytest.fixture
def access(gateway: Gateway, policy: ModelServer, terms: Terms) -> Access:
    gateway.begin("ep1", terms)
    return gateway.open("ep1", "agent", policy)


@pytest.fixture
def client() -> Iterator[httpx2.Client]:
    with httpx2.Client(timeout=20, trust_env=False, verify=False) as client:
        yield client


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses between tries are short, except those that a server asks for."""
    monkeypatch.setattr("pytest_harbor.gateway.faults._FIRST", 0.01)
