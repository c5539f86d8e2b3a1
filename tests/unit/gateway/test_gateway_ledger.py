"""What calls took: sums, costs, budgets, limits; and that no key is written anywhere."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fake_model_server import CANARY, FakeModelServer, Planned, lines
from wire_shapes import CHAT, CHAT_STREAM, COST

from pytest_harbor.errors import RecipeError
from pytest_harbor.gateway import Access, Budget, Gateway, ModelServer, Price, Terms, Usage
from pytest_harbor.gateway.limits import Spending
from pytest_harbor.gateway.prices import cost, find_price

ASK = {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}


def post(client: httpx2.Client, access: Access, path: str = "chat/completions") -> httpx2.Response:
    return client.post(f"{access.v1}/{path}", json=ASK)


def test_a_line_for_each_call_and_sums_by_party(
    gateway: Gateway,
    access: Access,
    policy: ModelServer,
    terms: Terms,
    upstream: FakeModelServer,
    client: httpx2.Client,
) -> None:
    user = gateway.open("ep1", "user", policy)
    upstream.plan(Planned(body=CHAT), Planned(body=CHAT), Planned(status=400, body={}))
    post(client, access)
    post(client, user)
    post(client, user)
    assert terms.ledger is not None
    written = lines(terms.ledger)
    assert [line["party"] for line in written] == ["agent", "user", "user"]
    assert written[0]["usage"] == {
        "input": 1000,
        "output": 100,
        "cached": 400,
        "written": 0,
        "reasoning": 30,
    }
    assert written[0]["cost_usd"] == pytest.approx(COST)
    assert written[0]["seconds"] > 0
    assert written[0]["first_byte_seconds"] is None
    whole, part = gateway.summary("ep1"), gateway.summary("ep1", "user")
    assert (whole.calls, whole.failed, whole.tokens) == (3, 1, 2200)
    assert (part.calls, part.failed, part.faults) == (2, 1, {"bad_request": 1})
    assert whole.cost_usd == pytest.approx(2 * COST)
    assert whole.notes == ()


def test_an_unknown_price_is_said_and_no_cost_is_made_up(
    gateway: Gateway, policy: ModelServer, upstream: FakeModelServer, client: httpx2.Client
) -> None:
    upstream.plan(Planned(body={**CHAT, "model": "new-9"}))
    post(client, gateway.open("ep1", "agent", ModelServer(**{**vars(policy), "model": "new-9"})))
    summary = gateway.summary("ep1")
    assert (summary.cost_usd, summary.known_cost_usd, summary.tokens) == (None, 0.0, 1100)
    assert summary.notes == ("no price is known for new-9: tokens are counted, the cost is not",)


def test_an_answer_that_does_not_count_is_said(
    gateway: Gateway, access: Access, upstream: FakeModelServer, client: httpx2.Client
) -> None:
    upstream.plan(Planned(body={"model": "real-1", "choices": []}))
    post(client, access)
    assert gateway.summary("ep1").uncounted == 1
    assert "did not say how many tokens" in gateway.summary("ep1").notes[0]


@pytest.mark.parametrize(
    ("budget", "unit"), [(Budget(tokens=2000), "tokens"), (Budget(usd=COST * 1.5), "USD")]
)
def test_a_spent_budget_ends_the_episodes_calls(
    budget: Budget,
    unit: str,
    gateway: Gateway,
    policy: ModelServer,
    terms: Terms,
    upstream: FakeModelServer,
    client: httpx2.Client,
) -> None:
    gateway.begin("ep1", Terms(prices=terms.prices, budget=budget))
    access = gateway.open("ep1", "agent", policy)
    upstream.plan(Planned(body=CHAT))
    assert [post(client, access).status_code for _ in range(2)] == [200, 200]
    spent = gateway.spent("ep1")
    assert spent is not None
    assert (spent.scope, spent.unit, spent.refused) == ("episode", unit, 0)
    chat, messages = post(client, access), post(client, access, "messages")
    assert (chat.status_code, messages.status_code) == (402, 402)
    assert chat.json()["error"]["code"] == "budget_spent"
    assert "the episode's budget of" in chat.json()["error"]["message"]
    assert messages.json()["error"]["type"] == "billing_error"
    assert len(upstream.got) == 2
    spent = gateway.spent("ep1")
    assert spent is not None
    assert spent.refused == 2
    assert gateway.summary("ep1").refused == 2


def test_a_budget_of_the_run_holds_over_workers(
    policy: ModelServer, upstream: FakeModelServer, client: httpx2.Client, tmp_path: Path
) -> None:
    upstream.plan(Planned(body=CHAT))
    shared: dict[str, Any] = {
        "run_budget": Budget(tokens=2000),
        "shared": tmp_path / "shared",
        "environment": {"POLICY_KEY": CANARY},
    }
    with Gateway(**shared) as one, Gateway(**shared) as two:
        first, second = one.open("ep1", "agent", policy), two.open("ep2", "agent", policy)
        assert post(client, first).status_code == 200
        assert post(client, second).status_code == 200
        assert [post(client, each).status_code for each in (first, second)] == [402, 402]
        spent = two.spent("ep2")
        assert spent is not None
        assert str(spent) == "the run's budget of 2,000 tokens is spent: 2,200 tokens used"


def test_a_line_that_a_dead_worker_left_half_does_no_harm(tmp_path: Path) -> None:
    one, two = Spending(tmp_path), Spending(tmp_path)
    one.add(1.0, 10)
    with (tmp_path / "spent.jsonl").open("a") as file:
        file.write('{"usd": 5.0, "tok\n')
    two.add(0.5, 5)
    assert one.total() == two.total() == (1.5, 15)


@pytest.mark.parametrize("over_workers", [False, True])
def test_no_more_calls_at_once_than_the_server_takes(
    over_workers: bool, policy: ModelServer, upstream: FakeModelServer, tmp_path: Path
) -> None:
    upstream.plan(Planned(body=CHAT, delay=0.05))
    server = ModelServer(**{**vars(policy), "concurrency": 2})
    shared = tmp_path / "shared" if over_workers else None
    environment = {"POLICY_KEY": CANARY}
    with (
        Gateway(shared=shared, environment=environment) as one,
        Gateway(shared=shared, environment=environment) as two,
        httpx2.Client(timeout=30, trust_env=False, verify=False) as client,
        ThreadPoolExecutor(8) as pool,
    ):
        doors = [one.open("ep1", "agent", server), two.open("ep2", "agent", server)]
        asked = [doors[number % (2 if over_workers else 1)] for number in range(8)]
        answers = list(pool.map(lambda door: post(client, door), asked))
        assert {each.status_code for each in answers} == {200}
        assert upstream.most_under_way == 2
        assert max(call.queued_seconds for call in one.calls("ep1")) > 0.04


def test_a_key_is_in_nothing_that_a_client_or_a_file_gets(
    gateway: Gateway,
    access: Access,
    policy: ModelServer,
    upstream: FakeModelServer,
    client: httpx2.Client,
    tmp_path: Path,
) -> None:
    quoting = {"error": {"message": f"Incorrect API key provided: {CANARY}"}}
    leaky = {"x-request-id": f"r-{CANARY}", "www-authenticate": CANARY}
    stream = [CHAT_STREAM[0], b'data: {"error": {"message": "' + CANARY.encode() + b'"}}\n\n']
    upstream.plan(
        Planned(status=401, body=quoting, headers=leaky),
        Planned(events=[*stream]),
        Planned(body={**CHAT, "echo": CANARY}),
    )
    answers = [
        post(client, access),
        client.post(f"{access.v1}/chat/completions", json={**ASK, "stream": True}),
        post(client, access),
        client.get(f"{access.v1}/models"),
    ]
    for answer in answers:
        assert CANARY not in answer.text + str(answer.headers)
    assert "[redacted]" in answers[0].text
    for path in tmp_path.rglob("*"):
        assert path.is_dir() or CANARY not in path.read_text()
    assert CANARY not in repr(gateway.calls("ep1")) + repr(policy) + repr(gateway.summary("ep1"))
    assert CANARY not in repr(ModelServer("a", base_url="http://x", key=CANARY))
    assert CANARY not in json.dumps(policy.identity())


def test_the_ledger_can_be_read_while_it_is_written(
    gateway: Gateway, access: Access, upstream: FakeModelServer
) -> None:
    upstream.plan(Planned(body=CHAT))
    stop, seen = threading.Event(), []

    def watch() -> None:
        while not stop.is_set():
            seen.append(gateway.summary("ep1").calls)

    watcher = threading.Thread(target=watch)
    watcher.start()
    with httpx2.Client(trust_env=False, verify=False) as client:
        for _ in range(10):
            post(client, access)
    stop.set()
    watcher.join()
    assert seen == sorted(seen)
    assert gateway.summary("ep1").calls == 10


def test_prices_are_found_by_the_names_that_providers_use() -> None:
    price = Price(1.0, 2.0)
    prices = {"gpt-5.5": price}
    for name in ("gpt-5.5", "gpt-5.5-2026-04-01", "openai/gpt-5.5", "gpt-5.5-latest"):
        assert find_price(prices, None, name) is price
    for name in ("gpt-5.5-mini", "gpt-5", ""):
        assert find_price(prices, name) is None


def test_costs_are_by_kind_of_token() -> None:
    usage = Usage(input=1_000_000, output=500_000, cached=600_000, written=100_000)
    assert cost(usage, Price(2.0, 10.0)) == pytest.approx(2.0 + 5.0)
    assert cost(usage, Price(2.0, 10.0, cached=0.2, written=2.5)) == pytest.approx(
        0.3 * 2.0 + 0.6 * 0.2 + 0.1 * 2.5 + 0.5 * 10.0
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"provider": "htpp"}, "no provider 'htpp'"),
        ({"base_url": None}, "needs base_url"),
        ({"base_url": "api.example.org"}, "must start with http"),
        ({"auth": "basic"}, "auth is 'basic'"),
        ({"timeout": 0}, "timeout is 0"),
        ({"retries": -1}, "retries is -1"),
        ({"concurrency": 0}, "concurrency is 0"),
        ({"provider": "script"}, "needs rules"),
        ({"provider": "replay"}, "needs recording"),
    ],
)
def test_a_definition_that_cannot_work_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(RecipeError, match=f"model server 'm': .*{said}"):
        ModelServer(**{"name": "m", "base_url": "http://x", **given})


def test_budgets_and_prices_are_numbers_of_sense() -> None:
    with pytest.raises(RecipeError, match="a budget is usd: 0"):
        Budget(usd=0)
    with pytest.raises(RecipeError, match="a price is output: -1"):
        Price(1, -1)
