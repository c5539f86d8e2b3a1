"""What was not alike in episodes that are added up is said; all else is silence."""

from __future__ import annotations

from sample_job import episode

from pytest_harbor.episode.result import AgentIdentity, EpisodeResult, RecipeValue
from pytest_harbor.report.identity import Difference, Setting, identity

OLD, NEW = "sha256:" + "a" * 64, "sha256:" + "b" * 64


def one(task: str = "t", attempt: int = 1, **changes) -> EpisodeResult:
    key = f"d/{task}/task.toml::{task}[attempt{attempt}]"
    return episode(key, attempt=attempt, **{"task_digest": OLD, **changes})


def setting(value: object, source: str = "harbor.yaml:3", key: str = "timeouts.multiplier"):
    return RecipeValue(key=key, value=value, source=source)


def test_episodes_that_are_alike() -> None:
    image = {"main": OLD, "user-server": NEW}
    recipe = (setting(1.0),)
    found = identity([one(attempt=n, images=image, recipe=recipe) for n in (1, 2)])
    assert found.differences == ()
    assert found.agent_versions == ("1.0.0",)
    assert found.tasks["d/t"].digests == (OLD,)
    assert found.tasks["d/t"].images == {"main": (OLD,), "user-server": (NEW,)}
    assert found.recipe == (Setting("timeouts.multiplier", 1.0, "harbor.yaml:3", 2),)


def test_a_task_that_changed_between_attempts() -> None:
    found = identity([one(), one(attempt=2), one(attempt=3, task_digest=NEW)])
    assert found.differences == (Difference("task digest", "d/t", {OLD: 2, NEW: 1}),)
    text = "t: task digest differs: sha256:aaaaaaaaaaaa in 2, sha256:bbbbbbbbbbbb in 1"
    assert str(found.differences[0]) == text


def test_different_tasks_may_differ() -> None:
    two = [one(images={"main": OLD}), one("u", task_digest=NEW, images={"main": NEW})]
    assert identity(two).differences == ()


def test_an_image_that_changed() -> None:
    images = [{"main": OLD, "db": OLD}, {"main": OLD, "db": NEW}]
    found = identity([one(attempt=n, images=each) for n, each in enumerate(images, 1)])
    assert [str(each) for each in found.differences] == [
        "t: image of db differs: sha256:aaaaaaaaaaaa in 1, sha256:bbbbbbbbbbbb in 1"
    ]


def test_an_episode_that_died_before_it_knew_is_no_difference() -> None:
    known = one(images={"main": OLD, "db": OLD})
    early = one(attempt=2, task_digest="", images={}, agent=None)
    later = one(attempt=3, images={"main": OLD})
    assert identity([known, early, later]).differences == ()


def test_another_version_of_the_agent() -> None:
    agents = [AgentIdentity(name="codex", version=version) for version in ("1.0", "1.1", "")]
    found = identity([one(attempt=n, agent=agent) for n, agent in enumerate(agents, 1)])
    assert [str(each) for each in found.differences] == [
        "agent version differs: 1.0 in 1, 1.1 in 1"
    ]


def test_a_recipe_that_changed_but_not_where_only_the_source_did() -> None:
    rows = [
        (setting(1.0), setting("x", "default", "pass.key")),
        (setting(2.0), setting("x", "--flag", "pass.key")),
    ]
    found = identity([one(attempt=n, recipe=each) for n, each in enumerate(rows, 1)])
    assert [str(each) for each in found.differences] == [
        "recipe timeouts.multiplier differs: 1.0 in 1, 2.0 in 1"
    ]
    assert [(each.source, each.episodes) for each in found.recipe if each.value == "x"] == [
        ("default", 1),
        ("--flag", 1),
    ]


def test_true_and_one_are_not_the_same_value() -> None:
    rows = [(setting(True),), (setting(1),)]
    found = identity([one(attempt=n, recipe=each) for n, each in enumerate(rows, 1)])
    assert len(found.differences) == 1


def test_the_order_of_the_results_does_not_matter() -> None:
    some = [one(), one(attempt=2, task_digest=NEW), one("u")]
    assert identity(some) == identity(reversed(some))


def test_what_part_of_a_task_has_changed() -> None:
    parts = [{"tests": "a" * 64}, {"tests": "b" * 64, "environment/user-server": "c" * 64}, {}]
    found = identity([one(attempt=n, part_digests=each) for n, each in enumerate(parts, 1)])
    assert [str(each) for each in found.differences] == [
        "t: digest of environment/user-server differs: none in 1, sha256:cccccccccccc in 1",
        "t: digest of tests differs: sha256:aaaaaaaaaaaa in 1, sha256:bbbbbbbbbbbb in 1",
    ]
