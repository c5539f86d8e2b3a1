"""Orders that make pytest do something else than run tests."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from pytest_harbor import orders
from pytest_harbor.sandbox import engine, janitor


@pytest.mark.parametrize(
    ("words", "removed"),
    [
        (["--harbor-clean"], [False]),
        (["--harbor-clean-images"], [True]),
        (["--harbor-clean", "--harbor-clean-images"], [True]),
        ([], []),
    ],
)
def test_images_go_only_when_asked(
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    removed: list[bool],
) -> None:
    asked: list[bool] = []

    def clean(_engine: object, *, images: bool) -> janitor.Swept:
        asked.append(images)
        return janitor.Swept()

    monkeypatch.setattr(janitor, "clean", clean)
    monkeypatch.setattr(engine, "Engine", lambda: SimpleNamespace(close=lambda: None))
    ended = orders.clean(pytester.parseconfig(*words))
    assert asked == removed
    assert ended == (pytest.ExitCode.OK if words else None)
