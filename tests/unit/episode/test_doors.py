"""The doors of an episode: where they are, when they close, what they see go through."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx2
import pytest
from models import KEY, Upstream
from test_model_servers import plan

from pytest_harbor.episode.doors import LEDGER, Doors
from pytest_harbor.episode.outcome import Outcome
from pytest_harbor.errors import HarborError, RecipeError
from pytest_harbor.gateway import Gateway

HERE = "127.0.0.1"
PRICES = {"prices.real-1.input": 10.0, "prices.real-1.output": 100.0}
ONE_CALL = (100 * 10 + 20 * 100) / 1e6
"""What a call to the upstream costs."""


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    with Upstream() as upstream:
        yield upstream


@pytest.fixture
def gateway() -> Iterator[Gateway]:
    with Gateway(environment={"UPSTREAM_KEY": KEY}) as gateway:
        yield gateway


class Opener:
    """Opens the doors of an episode that may ask one upstream under two names."""

    def __init__(self, folder: Path, gateway: Gateway, upstream: Upstream) -> None:
        self.folder, self.gateway, self.upstream = folder, gateway, upstream

    def make(self, **values: Any) -> Doors:
        servers = {
            f"model_servers.{name}.{key}": value
            for name in ("policy", "user_model")
            for key, value in {
                "base_url": self.upstream.url,
                "key": {"env": "UPSTREAM_KEY"},
                "model": "real-1",
                "retries": 0,
                "try_with": "off",
            }.items()
        }
        used = {
            "agent.env.POLICY": {"model_server": "policy"},
            "compose_variables.USER": {"model_server": "user_model"},
        }
        changes = {key.replace("__", "."): value for key, value in values.items()}
        made = plan(self.folder / "a-task", {**servers, **used, **PRICES, **changes}, {})
        return Doors(made, self.gateway, "ep", self.folder / "ep", {})

    def open(self, **values: Any) -> Doors:
        doors = self.make(**values)
        doors.open()
        doors.listen(HERE)
        return doors


@pytest.fixture
def opener(tmp_path: Path, gateway: Gateway, upstream: Upstream) -> Opener:
    return Opener(tmp_path, gateway, upstream)


def url(doors: Doors, name: str) -> str:
    return doors.fill({"URL": f"http://{name}{doors.mark}"}, HERE)["URL"]


def ask(doors: Doors, name: str) -> int:
    return post(url(doors, name))


def post(base: str) -> int:
    body = {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}
    with httpx2.Client(trust_env=False, verify=False, timeout=10) as client:
        return client.post(f"{base}/v1/chat/completions", json=body).status_code


def test_placeholders_become_addresses_of_their_own(opener: Opener) -> None:
    doors = opener.open()
    found: Mapping[str, str] = doors.listen(HERE)
    agent, user = found[f"http://policy{doors.mark}"], found[f"http://user_model{doors.mark}"]
    assert agent != user
    assert {agent.rpartition("/")[2], user.rpartition("/")[2]} <= doors.secrets
    assert doors.listen(HERE) == found  # at one place once
    plain = {"A": "no placeholder", "B": f"http://policy{doors.mark}/v1"}
    assert doors.fill(plain, HERE) == {"A": "no placeholder", "B": f"{agent}/v1"}
    assert doors.fill({"A": "no placeholder"}, None) == {"A": "no placeholder"}
    with pytest.raises(HarborError, match="cannot reach the model gateway"):
        doors.fill(plain, None)
    doors.close()


def test_another_address_is_another_socket_and_the_old_one_is_gone(opener: Opener) -> None:
    doors = opener.open()
    first = url(doors, "policy")
    doors.unlisten()
    doors.listen(HERE)
    second = url(doors, "policy")
    assert first != second
    assert first.rpartition("/")[2] == second.rpartition("/")[2]
    assert post(second) == 200
    with pytest.raises(httpx2.ConnectError):
        post(first)
    doors.close()
    with pytest.raises(httpx2.ConnectError):
        post(second)


def test_an_address_dies_with_the_episode(opener: Opener, gateway: Gateway) -> None:
    doors = opener.open()
    _, _, secret = url(doors, "policy").rpartition("/")
    assert post(f"{gateway.url}/{secret}") == 200
    doors.close()
    assert post(f"{gateway.url}/{secret}") == 404
    doors.close()


def test_a_refusal_leaves_nothing_open(tmp_path: Path, opener: Opener, gateway: Gateway) -> None:
    doors = opener.make(model_servers__user_model__key={"env": "NOT_SET"})
    assert (doors.parties(), doors.unreplayed()) == ({}, ())
    with pytest.raises(RecipeError, match="NOT_SET"):
        doors.open()
    assert gateway.episodes == ()


def test_a_server_that_does_not_answer_is_named_and_leaves_nothing_open(
    opener: Opener, gateway: Gateway, upstream: Upstream
) -> None:
    changed = {"model_servers.user_model.try_with": "chat"}
    upstream.say = "OK"
    opener.open(**changed).close()
    assert len(upstream.got) == 1
    upstream.stop()
    changed["model_servers.user_model.timeout"] = 60.0  # another server than the one that answered
    with pytest.raises(RecipeError, match=r"here: .*'user_model' does not answer .*unreachable"):
        opener.open(**changed)
    assert gateway.episodes == ()


def test_parties_are_told_apart_by_step_and_in_all(opener: Opener) -> None:
    doors = opener.open()
    doors.step("one")
    ask(doors, "policy")
    ask(doors, "policy")
    doors.step("two")
    ask(doors, "user_model")
    one, two, every = doors.parties("one"), doors.parties("two"), doors.parties()
    assert (one["agent"].calls, one["user"].calls) == (2, 0)
    assert (two["agent"].calls, two["user"].calls) == (0, 1)
    assert (every["agent"].tokens, every["user"].tokens) == (240, 120)
    assert every["agent"].cost_usd == pytest.approx(2 * ONE_CALL)
    assert every["agent"].server["model"] == "real-1"
    assert one["agent"].server == {}
    assert (opener.folder / "ep" / LEDGER).read_text().count("\n") == 3
    doors.close()


def test_another_try_pays_for_the_first_and_is_not_blamed_for_it(opener: Opener) -> None:
    doors = opener.open()
    doors.step("one")
    ask(doors, "user_model")
    opener.upstream.stop()
    ask(doors, "user_model")
    with pytest.raises(HarborError):
        doors.check(goes_on=False)
    doors.close()
    doors.open()
    doors.check(goes_on=True)
    assert doors.parties("one")["user"].calls == 0
    assert (doors.parties()["user"].calls, doors.parties()["user"].failed) == (2, 1)
    doors.close()


def test_a_model_without_a_price_has_no_cost_and_a_reason(opener: Opener) -> None:
    opener.upstream.model = "unknown-1"
    doors = opener.open(model_servers__policy__model="unknown-1")
    ask(doors, "policy")
    agent = doors.parties()["agent"]
    assert (agent.tokens, agent.cost_usd) == (120, None)
    assert "no price is known for unknown-1" in agent.notes[0]
    doors.close()


def test_a_failed_call_of_the_user_degrades_it_and_one_of_the_agent_does_not(
    opener: Opener,
) -> None:
    doors = opener.open()
    opener.upstream.stop()
    ask(doors, "policy")
    doors.check(goes_on=False)
    ask(doors, "user_model")
    with pytest.raises(
        HarborError, match="1 of 1 model calls of the simulated user failed"
    ) as said:
        doors.check(goes_on=False)
    assert said.value.outcome == Outcome.USER_DEGRADED
    doors.close()


def test_a_spent_budget_stops_what_was_refused_and_what_would_come(opener: Opener) -> None:
    doors = opener.open(budget__episode__tokens=100)
    ask(doors, "user_model")
    doors.check(goes_on=False)  # it was enough
    with pytest.raises(HarborError, match="budget of 100 tokens is spent: 120 tokens used") as said:
        doors.check(goes_on=True)
    assert said.value.outcome == Outcome.BUDGET_SPENT
    ask(doors, "user_model")  # refused; it is the budget's fault and not the user's
    with pytest.raises(HarborError, match="1 model calls were refused") as said:
        doors.check(goes_on=False)
    assert said.value.outcome == Outcome.BUDGET_SPENT
    doors.close()


def test_no_episode_begins_when_the_run_has_spent_its_budget(opener: Opener) -> None:
    doors = opener.open(budget__run__usd=ONE_CALL / 2)
    ask(doors, "policy")
    doors.close()
    with pytest.raises(HarborError, match="the run's budget") as said:
        doors.open()
    assert said.value.outcome == Outcome.BUDGET_SPENT
    assert opener.gateway.episodes == ()


def test_a_replay_needs_no_key(tmp_path: Path, opener: Opener) -> None:
    with Gateway(environment={"UPSTREAM_KEY": KEY}, record=tmp_path / "tapes") as recording:
        opener.gateway = recording
        doors = opener.open()
        ask(doors, "policy")
        ask(doors, "user_model")
        doors.close()
    opener.upstream.stop()
    with Gateway(environment={}, replay=tmp_path / "tapes") as replaying:
        opener.gateway = replaying
        doors = opener.open()
        assert ask(doors, "policy") == 200
        assert doors.parties()["agent"].models == ("real-1-2026-01-01",)
        doors.close()
        (left,) = doors.unreplayed()
        assert left == "1 recorded model calls of user were not asked for in this replay"
