"""Builds on the real engine: what names an image, and what a failed build says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from groups import IMAGE, a_group, a_spec, an_engine, an_owner, environment, inside, soon

from pytest_harbor.errors import ImageError
from pytest_harbor.sandbox.group import Group
from pytest_harbor.sandbox.images import Build

pytestmark = pytest.mark.docker


def test_a_failed_build_shows_its_end_and_the_command(tmp_path: Path) -> None:
    place = environment(
        tmp_path, Dockerfile=f"FROM {IMAGE}\nRUN echo about to fail; ls /no/such/thing\n"
    )
    engine = an_engine()
    with pytest.raises(ImageError) as caught:
        Group(engine, a_spec(place), an_owner()).start(soon())
    said = str(caught.value)
    assert "about to fail" in said
    assert "/no/such/thing" in said
    assert f"docker build --progress plain --file {place}/Dockerfile {place}" in said
    assert caught.value.outcome == "image_failed"
    engine.close()


def test_a_missing_folder_or_dockerfile_is_named(tmp_path: Path) -> None:
    engine = an_engine()
    for compose, words in (
        ("services: {main: {build: {context: ./none}}}", "none is not a folder"),
        ("services: {main: {build: {context: .}}}", f"no Dockerfile at {tmp_path}"),
    ):
        with pytest.raises(ImageError, match=words):
            Group(engine, a_spec(environment(tmp_path, compose)), an_owner()).start(soon())
    engine.close()


def test_forms_of_a_build(tmp_path: Path) -> None:
    compose = f"""
services:
  main:
    build:
      context: ./context
      dockerfile: ../outside.Dockerfile
      args: {{WHO: "me$$x"}}
      target: first
      additional_contexts: {{more: ./more}}
  inline:
    build:
      context: .
      dockerfile_inline: |
        FROM {IMAGE}
        RUN echo inline >/form
    command: sleep infinity
    init: true
"""
    outside = (
        f"FROM {IMAGE} AS first\nARG WHO\nCOPY a /a\nCOPY --from=more b /b\n"
        'RUN printf "%s" "$WHO" >/who\nFROM first\nRUN touch /second\n'
    )
    place = environment(
        tmp_path, compose,
        **{"outside.Dockerfile": outside, "context/a": "a", "more/b": "b"},
    )  # fmt: skip
    with a_group(a_spec(place)) as group:
        assert inside(group, "cat /a /b /who; ls /second || true") == "abme$x"
        assert inside(group, "cat /form", "inline") == "inline"


def test_a_dockerfile_outside_is_never_anothers(tmp_path: Path) -> None:
    """B76 again: the Dockerfile travels apart from the context, and is kept by time and size."""
    compose = "services: {main: {build: {context: ./context, dockerfile: ../main.Dockerfile}}}"
    engine = an_engine(tmp_path / "state")
    seen = []
    for number in "12":
        place = environment(
            tmp_path / number, compose,
            **{"main.Dockerfile": f"FROM {IMAGE}\nRUN echo {number} >/n\n", "context/same": ""},
        )  # fmt: skip
        os.utime(place / "main.Dockerfile", (10**9, 10**9))
        with a_group(a_spec(place), engine) as group:
            seen.append(inside(group, "cat /n"))
    assert seen == ["1", "2"]
    engine.close()


def a_build(place: Path, platform: str | None = None, **section: object) -> Build:
    service = {"build": {"context": str(place), **section}, "platform": platform}
    return Build.of({"name": "p", "services": {"main": service}}, "main")


def test_what_makes_another_digest(tmp_path: Path) -> None:
    place = environment(tmp_path, Dockerfile="FROM scratch\n", a="1")
    other = environment(tmp_path / "other", Dockerfile="FROM scratch\n", a="1")
    first = a_build(place).digest()
    assert a_build(other).digest() == first  # the same content at another place
    assert a_build(place, tags=["x"], cache_from=["y"]).digest() == first
    changed = [
        a_build(place, args={"A": "1"}).digest(),
        a_build(place, args={"A": "2"}).digest(),
        a_build(place, target="t").digest(),
        a_build(place, platform="linux/arm64").digest(),
        a_build(place, dockerfile_inline="FROM scratch").digest(),
        a_build(place, additional_contexts={"more": str(other)}).digest(),
        a_build(place, additional_contexts={"more": "docker-image://x"}).digest(),
    ]
    (other / "a").write_text("2")
    changed += [
        a_build(other).digest(),
        a_build(place, additional_contexts={"more": str(other)}).digest(),
    ]
    (place / "a").chmod(0o755)
    changed.append(a_build(place).digest())
    assert len({first, *changed}) == 1 + len(changed)
    assert a_build(place).digest("linux/arm64") != a_build(place).digest()
