import pytest

from pytest_harbor.errors import SandboxError
from pytest_harbor.sandbox.engine import Engine, refuse_old


@pytest.mark.parametrize("version", ["25.0.0", "26.1.5+dfsg1", "28.2.2"])
def test_new_enough(version: str) -> None:
    refuse_old(version)


@pytest.mark.parametrize("version", ["24.0.9", "20.10.24+dfsg1", "", "dev"])
def test_too_old(version: str) -> None:
    with pytest.raises(SandboxError, match=r"too old.*script/setup") as caught:
        refuse_old(version)
    assert caught.value.outcome == "start_failed"


def test_no_engine_says_where_and_what_to_do() -> None:
    engine = Engine({"DOCKER_HOST": "unix:///nowhere/docker.sock"})
    with pytest.raises(SandboxError, match=r"unix:///nowhere/docker\.sock.*script/setup"):
        _ = engine.facts


def test_nothing_is_contacted_before_the_first_use() -> None:
    Engine({"DOCKER_HOST": "unix:///nowhere/docker.sock"}).close()
