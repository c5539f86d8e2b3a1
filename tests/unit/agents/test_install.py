"""What the helper that installs CLIs is told of this machine, and what not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_harbor.agents import install as installing
from pytest_harbor.agents.card import Install
from pytest_harbor.errors import AgentError, SandboxError
from pytest_harbor.sandbox.engine import Engine
from pytest_harbor.sandbox.tools import Filling
from pytest_harbor.task.timeouts import Deadline

HOST = {
    "PIP_INDEX_URL": "https://pypi.mine/simple",
    "npm_config_registry": "https://npm.mine",
    "HTTPS_PROXY": "http://proxy:3128",
    "no_proxy": "localhost",
    "PIP_FIND_LINKS": "/opt/wheels",
    "npm_config_prefix": "/usr",
    "PIP_CONFIG_FILE": "~/pip.conf",
    "OPENAI_API_KEY": "canary",
    "AWS_SECRET": "canary",
}


@pytest.fixture
def filled(monkeypatch: pytest.MonkeyPatch) -> list[Filling]:
    seen: list[Filling] = []

    def fill_once(_engine: Any, filling: Filling, _deadline: Any) -> str:
        seen.append(filling)
        return "volume"

    monkeypatch.setattr(installing, "fill_once", fill_once)
    return seen


def install(wanted: Install, host: dict[str, str]) -> str:
    return installing.install("mine", wanted, Engine({}), host, Deadline.never())


def test_registries_and_proxies_are_passed_on_and_nothing_else(filled: list[Filling]) -> None:
    assert install(Install(npm=("mine@1",)), HOST) == "volume"
    kept = ("PIP_INDEX_URL", "npm_config_registry", "HTTPS_PROXY", "no_proxy")
    assert dict(filled[0].env) == {name: HOST[name] for name in kept}
    assert filled[0].files == ()


def test_the_operators_certificates_go_along(filled: list[Filling], tmp_path: Path) -> None:
    bundle = tmp_path / "ca.pem"
    bundle.write_text("certificates")
    install(Install(npm=("mine@1",)), {"SSL_CERT_FILE": str(bundle), "PIP_CERT": "/no/such"})
    (entry,) = filled[0].files
    assert entry.source == b"certificates"
    named = {"PIP_CERT", "NODE_EXTRA_CA_CERTS", "npm_config_cafile", "SSL_CERT_FILE"}
    assert {filled[0].env[name] for name in named} == {entry.path}


def test_what_is_installed_names_the_volume_and_how_it_is_reached_does_not(
    filled: list[Filling],
) -> None:
    install(Install(npm=("mine@1",)), HOST)
    install(Install(npm=("mine@1",)), {})
    install(Install(npm=("mine@2",)), {})
    install(Install(pip=("mine==1",)), {})
    first, again, newer, other = (each.volume("linux/amd64") for each in filled)
    assert first == again
    assert len({first, newer, other, filled[0].volume("linux/arm64")}) == 4
    assert "python3" not in filled[0].script
    assert "npm" not in filled[3].script


def test_packages_are_words_of_a_command(filled: list[Filling]) -> None:
    install(Install(npm=("mine@1; touch /pwned",)), {})
    assert "'mine@1; touch /pwned'" in filled[0].script


def test_a_failure_has_the_tools_words(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> str:
        raise SandboxError("npm error 404 Not Found")

    monkeypatch.setattr(installing, "fill_once", fails)
    with pytest.raises(AgentError, match=r"the agent mine cannot be installed: npm error 404"):
        install(Install(npm=("mine@1",)), {})
