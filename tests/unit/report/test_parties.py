"""The cost split: agent, simulated user and judge apart, in lines and sums."""

from __future__ import annotations

from sample_job import episode

from pytest_harbor.episode.result import EpisodeResult, PartyRecord
from pytest_harbor.report.facts import episode_facts
from pytest_harbor.report.identity import identity
from pytest_harbor.report.parties import party_items, party_sums
from pytest_harbor.report.summary import render_totals, totals

AGENT = PartyRecord(calls=3, input_tokens=12_000, output_tokens=300, cost_usd=0.5, models=("a-1",))
USER = PartyRecord(
    calls=2, failed=1, input_tokens=100, cached_tokens=40, output_tokens=5, cost_usd=0.25,
    models=("u-1",),
)  # fmt: skip
JUDGE = PartyRecord(calls=1, input_tokens=7, cost_usd=None, notes=("no price is known for j-1",))


def one(name: str, **parties: PartyRecord) -> EpisodeResult:
    return episode(f"d/{name}/task.toml::{name}", parties=parties)


RESULTS = [one("x", judge=JUDGE, user=USER, agent=AGENT), one("y", user=USER), one("z")]


def test_sums_by_party_in_a_fixed_order() -> None:
    sums = party_sums(RESULTS)
    assert list(sums) == ["agent", "user", "judge"]
    user = sums["user"]
    assert (user.episodes, user.calls, user.failed, user.tokens) == (2, 4, 2, 210)
    assert (user.cost_usd, user.cost_known, user.models) == (0.5, 2, ("u-1",))
    assert (sums["judge"].cost_usd, sums["judge"].cost_known) == (None, 0)
    assert party_sums([one("z")]) == {}


def test_a_cost_that_is_known_of_some_only_says_so() -> None:
    unknown = USER.model_copy(update={"cost_usd": None})
    user = party_sums([one("x", user=USER), one("y", user=unknown)])["user"]
    assert str(user) == "4 calls (2 failed), 210 tokens, $0.25 (known of 1)"


def test_the_totals_show_the_split_where_there_is_one() -> None:
    (line,) = [line for line in render_totals(totals(RESULTS)) if "model calls" in line]
    assert line == (
        "model calls: agent 3 calls, 12.3k tokens, $0.50; user 4 calls (2 failed), 210 tokens, "
        "$0.50; judge 1 call, 7 tokens, cost unknown"
    )
    alone = render_totals(totals([one("x", agent=AGENT)]))
    assert not any("model calls" in line for line in alone)


def test_an_episode_shows_each_partys_calls_and_models() -> None:
    assert party_items(RESULTS[0].parties) == (
        "agent: 3 calls, 12.0k + 300 tokens, $0.50, a-1",
        "user: 2 calls (1 failed), 100 (40 cached) + 5 tokens, $0.25, u-1",
        "judge: 1 call, 7 + 0 tokens, cost unknown; no price is known for j-1",
    )
    (fact,) = [fact for fact in episode_facts(RESULTS[0]) if fact.label == "Model calls"]
    assert len(fact.items) == 3
    assert not [fact for fact in episode_facts(one("z")) if fact.label == "Model calls"]


def test_another_model_as_the_user_is_a_difference() -> None:
    other = USER.model_copy(update={"models": ("u-2",)})
    found = identity([one("x", user=USER), one("y", user=other), one("z", user=USER)])
    assert [str(each) for each in found.differences] == [
        "model of user differs: u-1 in 2, u-2 in 1"
    ]
    assert identity([one("x", user=USER), one("y", user=USER)]).differences == ()
