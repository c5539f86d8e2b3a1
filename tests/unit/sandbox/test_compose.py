from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from pytest_harbor.errors import SandboxError
from pytest_harbor.sandbox.compose import Completed, Compose, ComposeError, find_command, limit
from pytest_harbor.task.timeouts import Deadline


def plugin(folder: Path, script: str) -> dict[str, str]:
    """An environment whose Compose plugin is a shell script."""
    place = folder / "config" / "cli-plugins"
    place.mkdir(parents=True)
    (place / "docker-compose").write_text(f"#!/bin/sh\n{script}\n")
    (place / "docker-compose").chmod(0o755)
    return {"DOCKER_CONFIG": str(place.parent), "PATH": "/usr/bin:/bin", "HOME": "/home/me"}


def soon(seconds: float = 10) -> Deadline:
    return Deadline.after(seconds, "my limit")


def test_the_operators_own_plugin_comes_first(tmp_path: Path) -> None:
    environment = plugin(tmp_path, "true")
    assert find_command(environment) == (f"{tmp_path}/config/cli-plugins/docker-compose",)


def test_without_compose_it_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pytest_harbor.sandbox.compose._PLUGIN_FOLDERS", ())
    with pytest.raises(SandboxError, match=r"not installed.*script/setup"):
        find_command({"HOME": str(tmp_path), "PATH": str(tmp_path)})
    client = tmp_path / "docker"
    client.write_text("#!/bin/sh\n")
    client.chmod(0o755)
    found = find_command({"HOME": str(tmp_path), "PATH": str(tmp_path)})
    assert found == (str(client), "compose")


def test_config_sees_the_given_variables_and_nothing_else(tmp_path: Path) -> None:
    environment = plugin(tmp_path, f"/usr/bin/env >{tmp_path}/env; echo {{}}")
    environment |= {"SECRET": "s", "HTTP_PROXY": "http://user:pass@p", "DOCKER_HOST": "unix:///x"}
    Compose(environment).config("p", tmp_path, [], {"GIVEN": "1"}, soon())
    seen = (tmp_path / "env").read_text().splitlines()
    names = {line.partition("=")[0] for line in seen} - {"PWD", "SHLVL", "_", "OLDPWD"}
    assert names == {"GIVEN", "GOGC", "GOMEMLIMIT"}


def test_up_sees_what_the_client_needs_and_no_task_can_change_it(tmp_path: Path) -> None:
    environment = plugin(tmp_path, f"/usr/bin/env >{tmp_path}/env")
    environment |= {"SECRET": "s", "HTTPS_PROXY": "p", "COMPOSE_FILE": "x", "DOCKER_HOST": "h"}
    variables = {"GIVEN": "1", "DOCKER_HOST": "evil", "PATH": "/evil"}
    Compose(environment).up("p", tmp_path, tmp_path / "f", variables, soon())
    seen = dict(line.split("=", 1) for line in (tmp_path / "env").read_text().splitlines())
    assert seen["DOCKER_HOST"] == "h"
    assert seen["PATH"] == "/usr/bin:/bin"
    assert seen["HTTPS_PROXY"] == "p"
    assert seen["GIVEN"] == "1"
    assert not {"SECRET", "COMPOSE_FILE"} & set(seen)


def test_no_env_file_is_ever_found(tmp_path: Path) -> None:
    environment = plugin(tmp_path, f'echo "$@" >{tmp_path}/args; echo {{}}')
    Compose(environment).config("proj", tmp_path, [Path("a"), Path("b")], {}, soon())
    said = (tmp_path / "args").read_text()
    assert "--env-file /dev/null" in said
    assert f"--project-name proj --project-directory {tmp_path}" in said
    assert "--file a --file b config" in said


def test_unset_variables_are_read_from_its_warnings(tmp_path: Path) -> None:
    warning = (
        'time="2026-01-01T00:00:00Z" level=warning '
        'msg="The \\"{}\\" variable is not set. Defaulting to a blank string."'
    )
    lines = "\n".join(warning.format(name) for name in ("A", "B_2", "A"))
    environment = plugin(tmp_path, f"cat >&2 <<'END'\n{lines}\nEND\necho '{json.dumps({'x': 1})}'")
    resolved = Compose(environment).config("p", tmp_path, [], {}, soon())
    assert resolved.unset == ("A", "B_2")
    assert resolved.model == {"x": 1}


def test_a_refusal_is_in_its_own_words(tmp_path: Path) -> None:
    environment = plugin(tmp_path, "echo 'services.main Additional property x' >&2; exit 15")
    with pytest.raises(ComposeError, match="Additional property x"):
        Compose(environment).config("p", tmp_path, [], {}, soon())


def test_it_is_killed_at_the_deadline(tmp_path: Path) -> None:
    environment = plugin(tmp_path, "echo pulling >&2; exec sleep 30")
    began = time.monotonic()
    with pytest.raises(SandboxError, match=r"up did not end in time \(my limit.*pulling") as caught:
        Compose(environment).up("p", tmp_path, tmp_path / "f", {}, soon(0.3))
    assert time.monotonic() - began < 3
    assert caught.value.outcome == "start_failed"


def test_no_limit_is_still_a_limit() -> None:
    assert limit(Deadline.never()) == 600
    assert limit(soon(5)) <= 5


@pytest.mark.parametrize(
    ("stderr", "complaint"),
    [
        (" Network p_default  Created\n Container p-main-1  Creating\nError: no\n", "Error: no"),
        ('time="x" level=warning msg="obsolete"\nboom\n', "boom"),
        (" Container a  Started\n", "exit code 1, and no message"),
    ],
)
def test_progress_is_no_complaint(stderr: str, complaint: str) -> None:
    assert Completed(1, b"", stderr).complaint == complaint
