"""What is in order in a task folder and still probably not meant: warnings, never errors."""

from __future__ import annotations

import os
from pathlib import Path

from pytest_harbor.errors import TaskError
from pytest_harbor.task.files import inside, show
from pytest_harbor.task.findings import Findings
from pytest_harbor.task.schema import StepConfig, TaskConfig

COMPOSE_FILE = "docker-compose.yaml"
"""The only name under which a task's Compose file is read (harbor-format 1)."""

_OTHER_COMPOSE_NAMES = ("docker-compose.yml", "compose.yaml", "compose.yml")


def note_oddities(found: Findings, config: TaskConfig, environment: Path | None) -> None:
    """Add a warning for each oddity of a task that loads."""
    if environment is not None:
        _compose_under_another_name(found, environment)
        _links_that_lead_out(found, environment)
    if environment is None or not (environment / COMPOSE_FILE).is_file():
        _services_without_compose(found, config)
    _undeclared_steps(found, config)
    _same_mcp_server(found, config)


def _compose_under_another_name(found: Findings, environment: Path) -> None:
    """Harbor ignores such a file without a word (sharp edge 31)."""
    for name in _OTHER_COMPOSE_NAMES:
        if (environment / name).is_file():
            found.warnings.append(
                f"environment/{name} is not read, only {COMPOSE_FILE} is; rename or remove it"
            )


def _links_that_lead_out(found: Findings, environment: Path) -> None:
    """A build context keeps links as they are, so they are no error there as in what we upload."""
    for parent, folders, files in os.walk(environment):
        for entry in (Path(parent, name) for name in sorted(folders + files)):
            try:
                if entry.is_symlink():
                    inside(entry, found.task)
            except TaskError as error:
                found.warnings.append(str(error))


def _services_without_compose(found: Findings, config: TaskConfig) -> None:
    """An operator's overlay may bring the service, so this is no error here."""
    tables: tuple[TaskConfig | StepConfig, ...] = (config, *config.steps)
    services = {artifact.service for table in tables for artifact in table.artifacts}
    services |= {hook.service for table in tables for hook in table.verifier.collect}
    for service in sorted(services - {"main"}):
        found.warnings.append(
            f"task.toml names the service {service!r}, but there is no "
            f"environment/{COMPOSE_FILE} that defines it; add one"
        )


def _undeclared_steps(found: Findings, config: TaskConfig) -> None:
    folder = found.task / "steps"
    declared = {step.name for step in config.steps}
    for entry in sorted(folder.iterdir()) if folder.is_dir() else ():
        if (entry / "instruction.md").is_file() and entry.name not in declared:
            found.warnings.append(
                f"{show(entry, found.task)}/ is never run; declare it in task.toml "
                f'([[steps]] name = "{entry.name}") or remove it'
            )


def _same_mcp_server(found: Findings, config: TaskConfig) -> None:
    """The name is the key by which servers are merged (harbor-format 8)."""
    names = [server.name for server in config.environment.mcp_servers]
    for name in sorted({name for name in names if names.count(name) > 1}):
        found.warnings.append(
            f"task.toml declares the MCP server {name!r} more than once, and the last counts; "
            "rename one"
        )
