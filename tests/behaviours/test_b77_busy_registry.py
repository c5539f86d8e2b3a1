"""B77: a registry that is busy for a moment costs time, not the run."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_compose import calls, wrapped_compose
from groups import a_group, a_spec, environment, never_built, soon

from pytest_harbor.errors import ImageError
from pytest_harbor.sandbox import images
from pytest_harbor.sandbox.engine import Engine
from pytest_harbor.task.timeouts import Deadline

BUSY = "429 Too Many Requests - toomanyrequests: You have reached your pull rate limit"
FAILS_TWICE = f"""
if [ "$word" = build ] && [ "$(grep -c ^build {{log}})" -le 2 ]; then
    echo "ERROR: failed to solve: {BUSY}"
    exit 1
fi
"""


@pytest.mark.docker
def test_a_build_goes_on_after_two_refusals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(images, "_PAUSES", (0.01, 0.01, 0.01))
    engine = Engine(wrapped_compose(tmp_path, FAILS_TWICE.replace("{log}", f"{tmp_path}/calls")))
    place = environment(tmp_path, Dockerfile=never_built())
    with a_group(a_spec(place), engine):
        pass
    with a_group(a_spec(place), engine):  # the record is kept: nothing is asked again
        pass
    assert calls(tmp_path).count("build") == 3
    engine.close()


def test_only_what_may_pass_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images, "_PAUSES", (0.0, 0.0))
    tries: list[str] = []

    def attempt(words: str) -> None:
        tries.append(words)
        raise ImageError(words)

    for words in (BUSY, "RUN make: exit code 2"):
        with pytest.raises(ImageError, match=words[:10]):
            images.patiently(lambda words=words: attempt(words), soon())  # type: ignore[misc]
    assert tries == [BUSY] * 3 + ["RUN make: exit code 2"]


def test_waiting_does_not_outlast_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    def attempt() -> None:
        raise ImageError(BUSY)

    with pytest.raises(ImageError, match="429"):
        images.patiently(attempt, Deadline.after(0.5, "test"))
