"""B66: a ``$`` inside a value arrives as it is."""

from __future__ import annotations

from pathlib import Path

import pytest
from groups import a_group, a_spec, environment, inside

pytestmark = pytest.mark.docker

VALUES = {
    "LITELLM_API_KEY": "a$bc$$d",
    "BRACES": "${HOME}-${X:-y}",
    "QUOTES": 'it\'s "so"',
    "EMPTY": "",
    "LINES": "one\ntwo $three",
    "TRAILING": "dollar$",
    "UNICODE": "grüße €",
}


@pytest.mark.parametrize("compose", [None, "services: {main: {environment: {OTHER: a$$b}}}"])
def test_values_arrive_unchanged(tmp_path: Path, compose: str | None) -> None:
    place = environment(tmp_path, compose, Dockerfile="FROM debian:bookworm-slim\n")
    with a_group(a_spec(place, main_env=VALUES)) as group:
        main = group.container("main")
        assert {name: main.image_env[name] for name in VALUES} == VALUES
        assert inside(group, 'printf "%s" "$LITELLM_API_KEY"') == "a$bc$$d"
        if compose:
            assert main.image_env["OTHER"] == "a$b"


def test_a_path_with_a_dollar_sign_is_a_path(tmp_path: Path) -> None:
    place = environment(
        tmp_path / "a$HOME", "services: {main: {}}", Dockerfile="FROM debian:bookworm-slim\n"
    )
    with a_group(a_spec(place, labels={"note": "costs 5$"})) as group:
        labels = group.container("main").facts["Config"]["Labels"]
        assert labels["note"] == "costs 5$"
