"""What an operator may set: each setting on the command line, in the environment and in the ini.

``--harbor-agent``, ``PYTEST_HARBOR_AGENT`` and ``harbor_agent`` are one setting; the first of them
that is given wins. Settings that are recipe keys become recipe layers, so that they lie over
harbor.yaml and every value knows where it was written.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest

from pytest_harbor.recipe import Layer, read_layer, recipe_files
from pytest_harbor.until_step import step_layers

ENVIRONMENT = "PYTEST_HARBOR_"
_YES = ("1", "true", "yes", "on")
_NO = ("0", "false", "no", "off", "")


@dataclass(frozen=True)
class Setting:
    """One thing that may be set, under its three names."""

    name: str
    help: str
    kind: Literal["text", "path", "count", "flag"] = "text"
    metavar: str | None = None
    key: str | None = None
    """The recipe key that it sets, if it is one."""
    everywhere: bool = True
    """Whether it has twins in the ini and the environment; an order to this run has none."""

    @property
    def option(self) -> str:
        """Its name on the command line."""
        return f"--harbor-{self.name}"

    @property
    def dest(self) -> str:
        """Its name in an ini file, and where pytest keeps the option."""
        return f"harbor_{self.name.replace('-', '_')}"

    @property
    def variable(self) -> str:
        """Its name in the environment."""
        return f"PYTEST_{self.dest.upper()}"


SETTINGS = (
    Setting("agent", "who works on the tasks: oracle, nop, command, ...", key="agent.name"),
    Setting("model", "the model that the agent uses", key="agent.model"),
    Setting("sandbox", "where main runs: docker, or harbor:PROVIDER", key="sandbox.name"),
    Setting(
        "recipe",
        "a recipe file, read instead of the harbor.yaml of the datasets",
        kind="path",
        metavar="FILE",
    ),
    Setting(
        "attempts",
        "episodes per task; with more than one, each is a test of its own: task[attempt2]",
        kind="count",
        metavar="K",
        key="attempts",
    ),
    Setting("until-step", "stop after this step", metavar="STEP", key="until_step"),
    Setting("jobs-dir", "where run folders go (default: jobs)", kind="path", metavar="DIR"),
    Setting("job-name", "the run's folder in there (default: the time of the start)"),
    Setting(
        "html", "where the report goes (default: report.html in the run's folder)", kind="path"
    ),
    Setting(
        "record",
        "keep what model servers are asked and answer, for a replay",
        kind="path",
        metavar="DIR",
    ),
    Setting(
        "replay",
        "answer model calls from what was recorded there: no key, no network",
        kind="path",
        metavar="DIR",
    ),
    Setting(
        "resume-sessions",
        "let each step go on with the agent's session of the step before",
        kind="flag",
        key="agent.resume_sessions",
    ),
    Setting(
        "private-verifier",
        "keep what verifiers wrote out of the HTML report and the junit file",
        kind="flag",
    ),
    Setting("keep", "leave the Compose groups running, for a look inside", kind="flag", key="keep"),
    Setting("strict", "what is a warning about a task is an error", kind="flag", key="strict"),
    Setting(
        "clean",
        "remove what killed runs left in Docker, run nothing",
        kind="flag",
        everywhere=False,
    ),
    Setting(
        "clean-images",
        "the same, and remove the images that were built and the agents that were installed",
        kind="flag",
        everywhere=False,
    ),
    Setting(
        "show-recipe",
        "print each recipe value and where it was written, run nothing",
        kind="flag",
        everywhere=False,
    ),
)
_BY_NAME = {setting.name: setting for setting in SETTINGS}
_INI_TYPES: dict[str, Literal["string", "bool", "int"]] = {
    "text": "string",
    "path": "string",
    "count": "int",
    "flag": "bool",
}


@dataclass(frozen=True)
class Given:
    """A value that somebody set, and where."""

    value: Any
    source: str


def add_options(parser: pytest.Parser) -> None:
    """Register every setting with pytest."""
    group = parser.getgroup("harbor", "Harbor: agent benchmarks as tests")
    for setting in SETTINGS:
        _add_option(group, setting)
        if setting.everywhere:
            kind = _INI_TYPES[setting.kind]
            parser.addini(setting.dest, f"{setting.option}: {setting.help}", kind, default=None)


def _add_option(group: pytest.OptionGroup, setting: Setting) -> None:
    common: dict[str, Any] = {"dest": setting.dest, "default": None, "help": setting.help}
    if setting.kind == "flag":
        group.addoption(setting.option, action="store_const", const=True, **common)
    else:
        metavar = setting.metavar or setting.name.upper()
        parse = int if setting.kind == "count" else str
        group.addoption(setting.option, metavar=metavar, type=parse, **common)


def given(config: pytest.Config, name: str) -> Given | None:
    """What was set under a name, by the strongest of command line, environment and ini."""
    found = (read(config, _BY_NAME[name]) for read in (_on_command_line, _in_environment, _in_ini))
    return next((one for one in found if one is not None), None)


def recipe_layers(config: pytest.Config, task_folder: Path) -> list[Layer]:
    """The recipe layers that hold for a task: its files, ini, environment, command line.

    Raises:
        RecipeError: a recipe file cannot be read.
    """
    instead = given(config, "recipe")
    files = [instead.value] if instead else recipe_files(task_folder, config.rootpath)
    layers = [read_layer(path) for path in files]
    return [*layers, *setting_layers(config), *step_layers(config, task_folder)]


def setting_layers(config: pytest.Config) -> list[Layer]:
    """The recipe keys that ini, environment and command line set, a layer each."""
    return [_layer(config, read) for read in (_in_ini, _in_environment, _on_command_line)]


def _layer(config: pytest.Config, read: Callable[[pytest.Config, Setting], Given | None]) -> Layer:
    found = {s.key: one for s in SETTINGS if s.key and (one := read(config, s)) is not None}
    return Layer(
        values={key: one.value for key, one in found.items()},
        sources={key: one.source for key, one in found.items()},
    )


def check_settings(config: pytest.Config) -> None:
    """Refuse, before anything is collected, a setting that cannot be meant.

    Raises:
        pytest.UsageError: a value is not of its kind, or an environment variable is misspelt.
    """
    for setting in SETTINGS:
        one = given(config, setting.name)
        if one is not None and setting.kind == "count" and one.value < 1:
            raise pytest.UsageError(f"{one.source}: must be 1 or more, not {one.value}")
    recipe = given(config, "recipe")
    if recipe is not None and not recipe.value.is_file():
        raise pytest.UsageError(f"{recipe.source}: there is no recipe file {recipe.value}")
    replay = given(config, "replay")
    if replay is not None and not replay.value.is_dir():
        raise pytest.UsageError(f"{replay.source}: nothing was recorded in {replay.value}")
    if replay is not None and (record := given(config, "record")) is not None:
        raise pytest.UsageError(f"{replay.source} and {record.source}: record, or replay")
    problems = list(_misspelt(name for name in os.environ if name.startswith(ENVIRONMENT)))
    if problems:
        raise pytest.UsageError(*problems)


def _misspelt(names: Iterator[str]) -> Iterator[str]:
    known = [setting.variable for setting in SETTINGS if setting.everywhere]
    for name in names:
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.9)
        if near and name not in known:
            yield f"the environment variable {name} is not known; did you mean {near[0]}?"


def _on_command_line(config: pytest.Config, setting: Setting) -> Given | None:
    value = config.getoption(setting.dest)
    if value is None:
        return None
    if setting.kind == "path":
        value = config.invocation_params.dir / value
    return Given(value, setting.option)


def _in_environment(config: pytest.Config, setting: Setting) -> Given | None:
    text = os.environ.get(setting.variable)
    if not text or not setting.everywhere:
        return None
    return Given(_parse(config, setting, text), setting.variable)


def _parse(config: pytest.Config, setting: Setting, text: str) -> Any:
    if setting.kind == "text":
        return text
    if setting.kind == "path":
        return config.invocation_params.dir / text
    if setting.kind == "count" and text.strip().isdigit():
        return int(text)
    if setting.kind == "flag" and text.lower() in (*_YES, *_NO):
        return text.lower() in _YES
    wanted = "a number" if setting.kind == "count" else "yes or no"
    raise pytest.UsageError(f"{setting.variable}: {wanted} is expected, not {text!r}")


def _in_ini(config: pytest.Config, setting: Setting) -> Given | None:
    if not setting.everywhere:
        return None
    ini = config.inipath or config.rootpath / "pytest.ini"
    try:
        value = config.getini(setting.dest)
    except (TypeError, ValueError, pytest.UsageError) as error:
        raise pytest.UsageError(f"{setting.dest} in {ini.name}: {error}") from None
    if value is None or value == "":
        return None
    if setting.kind == "path":
        value = ini.parent / value
    return Given(value, f"{setting.dest} in {ini.name}")
