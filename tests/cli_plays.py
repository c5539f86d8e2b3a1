"""Small tasks for real CLIs whose model follows a few rules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from episodes import Played, play

from pytest_harbor.agents.find import find_agent
from pytest_harbor.gateway import Gateway
from pytest_harbor.recipe import Layer, make_recipe


def cli(name: str, task: Path, gateway: Gateway, *rules: dict[str, Any], **recipe: Any) -> Played:
    """Play a task with a CLI whose model follows rules."""
    path = task.parent / "rules.yaml"
    path.write_text(yaml.safe_dump({"model": "scripted-1", "rules": list(rules)}))
    values = {
        "agent.name": name,
        "agent.model": "scripted",
        "model_servers.policy.provider": "script",
        "model_servers.policy.rules": str(path),
        **recipe,
    }
    layer = Layer(values, {key: f"a test: {key}" for key in values})
    return play(task, find_agent(make_recipe([layer])), recipe=values, gateway=gateway)
