"""B64: a task with a fixed host port (and name) can run twice at the same moment."""

from __future__ import annotations

from pathlib import Path

import pytest
from groups import IMAGE, a_group, a_spec, an_engine, an_owner, environment, inside

pytestmark = pytest.mark.docker

COMPOSE = f"""
services:
  main: {{image: "{IMAGE}"}}
  web:
    image: "{IMAGE}"
    container_name: the-web
    hostname: web-host
    command: sleep infinity
    init: true
    ports: ["127.0.0.1:38765:80"]
"""


def test_two_attempts_in_parallel(tmp_path: Path) -> None:
    spec_a, spec_b = (a_spec(environment(tmp_path, COMPOSE)) for _ in range(2))
    engine, owner = an_engine(), an_owner()
    with a_group(spec_a, engine, owner) as one, a_group(spec_b, engine, owner) as two:
        assert one.project != two.project
        for group in (one, two):
            assert any("127.0.0.1:38765" in warning for warning in group.warnings)
            # the fixed name is still a name inside the group
            assert inside(group, "getent hosts the-web").split()[0] == group.address("web")
    engine.close()
