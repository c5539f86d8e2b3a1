"""Real CLIs in images that have next to nothing, and the words about those that have too little."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cli_plays import cli
from episodes import Played, one_step

from pytest_harbor.episode.outcome import Outcome
from pytest_harbor.gateway import Gateway

pytestmark = [pytest.mark.docker, pytest.mark.slow]

MUSL = """
FROM debian:bookworm-slim AS parts
RUN apt-get update && apt-get install -y --no-install-recommends busybox-static musl \\
    && mkdir -p /root-of/bin /root-of/lib /root-of/etc /root-of/tmp /root-of/app /root-of/usr/bin \\
    && cp /bin/busybox /root-of/bin/ && cp -L /lib/ld-musl-*.so.1 /root-of/lib/ \\
    && for name in $(/bin/busybox --list | grep -vx busybox); do \\
           ln -sf busybox /root-of/bin/$name; done \\
    && printf 'root:x:0:0:root:/:/bin/sh\\nme:x:1000:1000:me:/home/me:/bin/sh\\n' \\
       >/root-of/etc/passwd && printf 'root:x:0:\\nme:x:1000:\\n' >/root-of/etc/group \\
    && chmod 1777 /root-of/tmp /root-of/app
FROM scratch
COPY --from=parts /root-of /
ENV PATH=/bin
WORKDIR /app
"""
"""What stands in for an Alpine: busybox and another C library, no bash, no glibc."""
BARE = """
FROM debian:bookworm-slim
RUN useradd -m me && install -d -o me /app
WORKDIR /app
"""
"""No node, no python, no curl, no git, and an agent who is not root."""

WORKS = ({"when": {"turn": 1}, "shell": "id -u >/app/who"}, {"say": "Done."})


@pytest.fixture
def gateway() -> Iterator[Gateway]:
    with Gateway() as gateway:
        yield gateway


def in_image(place: Path, agent: str, dockerfile: str, gateway: Gateway, **more: Any) -> Played:
    test = "#!/bin/sh\ngrep -qx 1000 /app/who && echo 1 >/logs/verifier/reward.txt"
    toml = '[agent]\nuser = "me"\n'
    files = {"environment/Dockerfile": dockerfile}
    task = one_step(place, toml, test=test, solve="#!/bin/sh\ntrue", **files)
    return cli(agent, task, gateway, *WORKS, **more)


@pytest.mark.parametrize("agent", ["codex", "claude-code", "opencode"])
def test_without_node_python_curl_and_root(tmp_path: Path, gateway: Gateway, agent: str) -> None:
    played = in_image(tmp_path, agent, BARE, gateway)
    assert (played.result.outcome, played.result.reward) == (Outcome.PASSED, 1), played.result.fault
    turn = played[0].turn
    assert turn is not None
    assert "started_with" not in turn.extra


@pytest.mark.parametrize("agent", ["codex", "opencode"])
def test_with_another_c_library(tmp_path: Path, gateway: Gateway, agent: str) -> None:
    played = in_image(tmp_path, agent, MUSL, gateway)
    assert (played.result.outcome, played.result.reward) == (Outcome.PASSED, 1), played.result.fault
    turn = played[0].turn
    assert turn is not None
    assert ("started_with" in turn.extra) == (agent != "codex")


def test_what_is_missing_is_named_before_the_first_turn(tmp_path: Path, gateway: Gateway) -> None:
    played = in_image(tmp_path, "claude-code", MUSL, gateway)
    assert played.result.outcome == Outcome.SETUP_FAILED
    assert "the agent claude-code needs bash in the image of main" in str(played.result.fault)
    assert not (played.folder / "model-calls.jsonl").exists()


def test_an_image_without_a_shell_is_refused(tmp_path: Path, gateway: Gateway) -> None:
    nothing = "FROM scratch\nCOPY Dockerfile /\n"
    played = in_image(tmp_path, "codex", nothing, gateway)
    assert played.result.outcome == Outcome.START_FAILED
    assert "without a shell, /bin/sh, an image cannot be main" in str(played.result.fault)


def test_a_version_that_does_not_exist_is_told_in_npms_words(
    tmp_path: Path, gateway: Gateway
) -> None:
    played = in_image(tmp_path, "opencode", BARE, gateway, **{"agent.version": "0.0.0-none"})
    assert played.result.outcome == Outcome.SETUP_FAILED
    said = str(played.result.fault)
    assert "the agent opencode cannot be installed" in said
    assert "opencode-linux-x64@0.0.0-none" in said


EDIT = """I add the line.

hello.txt
```
<<<<<<< SEARCH
hello
=======
hello
blue
>>>>>>> REPLACE
```
"""
COMMITS = "cd /app && echo blue >>hello.txt && git commit -qam blue"
ENDS = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
GIT = """
FROM debian:bookworm-slim
RUN apt-get update && apt-get install -y --no-install-recommends git
WORKDIR /app
RUN git config --global user.name Dev && git config --global user.email dev@example.com \\
    && git init -q && echo hello >hello.txt && git add . && git commit -qm hello
"""


@pytest.mark.slow_cli
@pytest.mark.parametrize(
    ("agent", "rules"),
    [
        ("mini-swe-agent", ({"when": {"turn": 1}, "shell": COMMITS}, {"shell": ENDS})),
        ("aider", ({"say": EDIT},)),
    ],
)
def test_python_clis_bring_their_python(
    tmp_path: Path, gateway: Gateway, agent: str, rules: Any
) -> None:
    """They edit and commit as the image's git user, in an image that has no Python."""
    test = (
        "cd /app && git log -1 --format=%an | grep -q ^Dev && git show HEAD:hello.txt | grep blue "
        '&& [ -z "$(git status --short)" ] && echo 1 >/logs/verifier/reward.txt'
    )
    task = one_step(tmp_path, test=test, **{"environment/Dockerfile": GIT})
    played = cli(agent, task, gateway, *rules)
    assert (played.result.outcome, played.result.reward) == (Outcome.PASSED, 1)
    assert "blue" in played.read("agent/trajectory.json")
