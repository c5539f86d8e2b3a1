"""The identity of everything that moves a score, and where it was not the same throughout.

Episodes of one agent, model and dataset are added up only because they are taken to be alike. Here
is what results know of that: agent version, task digest, image ids, recipe. Whatever is not alike
is said, for numbers over two versions of a task are numbers of neither (B78, B120).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from pytest_harbor.episode.result import EpisodeResult, RecipeValue

_SHORT = 12
"""Digits of a digest that tell two apart by eye."""


@dataclass(frozen=True)
class Difference:
    """Something that was not the same in all episodes that are added up."""

    what: str
    """"agent version", "task digest", "image of main", "recipe agent.name"."""
    of: str
    """The task's path; empty for what holds for all tasks."""
    values: Mapping[str, int]
    """Each value with its number of episodes."""

    def __str__(self) -> str:
        """One line for people."""
        parts = [f"{_short(value)} in {number}" for value, number in self.values.items()]
        task = f"{PurePosixPath(self.of).name}: " if self.of else ""
        return f"{task}{self.what} differs: {', '.join(parts)}"


@dataclass(frozen=True)
class TaskIdentity:
    """What a task was; more than one value where it changed."""

    digests: tuple[str, ...]
    images: Mapping[str, tuple[str, ...]]
    """Image ids of each service."""


@dataclass(frozen=True)
class Setting:
    """A recipe value as some episodes had it."""

    key: str
    value: object
    source: str
    episodes: int


@dataclass(frozen=True)
class Identity:
    """Who acted on what, by which recipe."""

    agent_versions: tuple[str, ...]
    tasks: Mapping[str, TaskIdentity]
    """By the task's path."""
    models: Mapping[str, tuple[str, ...]]
    """By party, the models that answered."""
    recipe: tuple[Setting, ...]
    differences: tuple[Difference, ...]


def identity(results: Iterable[EpisodeResult]) -> Identity:
    """The identity of a group: episodes of one agent, model and dataset."""
    every = sorted(results, key=lambda each: each.key)
    versions = Counter(each.agent.version for each in every if each.agent and each.agent.version)
    models = _models(every)
    by_task: dict[str, list[EpisodeResult]] = {}
    for each in every:
        by_task.setdefault(each.task_path, []).append(each)
    differences = [
        *_difference("agent version", "", versions),
        *(found for party, seen in models.items() for found in _served(party, seen)),
        *(found for path, members in by_task.items() for found in _changes(path, members)),
        *_recipe_differences(every),
    ]
    return Identity(
        agent_versions=tuple(sorted(versions)),
        tasks={path: _task(members) for path, members in by_task.items()},
        models={party: tuple(seen) for party, seen in models.items()},
        recipe=tuple(_settings(every)),
        differences=tuple(differences),
    )


def _models(results: Sequence[EpisodeResult]) -> dict[str, Counter[str]]:
    """By party, each model that answered it with the number of episodes."""
    parties = sorted({party for each in results for party in each.parties})
    return {
        party: Counter(
            model
            for each in results
            if party in each.parties
            for model in each.parties[party].models
        )
        for party in parties
    }


def _served(party: str, seen: Counter[str]) -> Iterator[Difference]:
    """Another model played the party in some episodes."""
    yield from _difference(f"model of {party}", "", seen)


def _task(members: Sequence[EpisodeResult]) -> TaskIdentity:
    images = {name: tuple(counted) for name, counted in _images(members).items()}
    return TaskIdentity(tuple(_digests(members)), images)


def _changes(path: str, members: Sequence[EpisodeResult]) -> Iterator[Difference]:
    yield from _difference("task digest", path, _digests(members))
    for part in sorted({part for each in members for part in each.part_digests}):
        known = (each.part_digests for each in members if each.part_digests)
        counted = Counter(f"sha256:{one[part]}" if part in one else "none" for one in known)
        yield from _difference(f"digest of {part}", path, counted)
    for service, counted in _images(members).items():
        yield from _difference(f"image of {service}", path, counted)


def _difference(what: str, of: str, counted: Counter[str]) -> Iterator[Difference]:
    """An episode that does not know (it died too early) is no difference."""
    if len(counted) > 1:
        yield Difference(what, of, dict(counted))


def _digests(members: Iterable[EpisodeResult]) -> Counter[str]:
    return Counter(each.task_digest for each in members if each.task_digest)


def _images(members: Sequence[EpisodeResult]) -> dict[str, Counter[str]]:
    services = sorted({service for each in members for service in each.images})
    return {
        service: Counter(each.images[service] for each in members if each.images.get(service))
        for service in services
    }


def _settings(results: Iterable[EpisodeResult]) -> Iterator[Setting]:
    seen: dict[tuple[str, str, str], list[RecipeValue]] = {}
    for result in results:
        for each in result.recipe:
            seen.setdefault((each.key, _plain(each.value), each.source), []).append(each)
    for (key, _, source), members in seen.items():
        yield Setting(key, members[0].value, source, len(members))


def _recipe_differences(results: Iterable[EpisodeResult]) -> Iterator[Difference]:
    """Only of values: the same value from another source moves nothing."""
    values: dict[str, Counter[str]] = {}
    for result in results:
        for each in result.recipe:
            values.setdefault(each.key, Counter())[_plain(each.value)] += 1
    for key, counted in values.items():
        yield from _difference(f"recipe {key}", "", counted)


def _plain(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _short(value: str) -> str:
    kind, colon, digest = value.partition(":")
    return f"{kind}:{digest[:_SHORT]}" if colon and kind == "sha256" else value
