"""The tables of ``task.toml`` as frozen models (harbor-format 2).

A value of None means that the file does not set it; defaults that have a meaning of their own are
applied where they are used (time: :mod:`pytest_harbor.task.timeouts`). What Harbor forgives and we
warn of (unknown keys, numbers that mean nothing) has been taken out by
:mod:`pytest_harbor.task.lenient` before these models see the file.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

from pytest_harbor.task import names, templates, values

NetworkMode = Literal["public", "no-network", "allowlist"]


User = Annotated[str | int | None, BeforeValidator(values.user)]
MinReward = Annotated[float | Mapping[str, float] | None, BeforeValidator(values.min_reward)]
Env = Mapping[str, str]


class Table(BaseModel):
    """A table of the file. Subclasses say which numbers must be what, and which keys are legacy."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    numbers: ClassVar[Mapping[str, values.Number]] = {}
    legacy_keys: ClassVar[frozenset[str]] = frozenset()


class Healthcheck(Table):
    """``healthcheck`` of the environment or a step (harbor-format 2.5); times are never scaled."""

    numbers = {
        "interval_sec": values.Number.PAUSE,
        "timeout_sec": values.Number.SECONDS,
        "start_period_sec": values.Number.PAUSE,
        "start_interval_sec": values.Number.PAUSE,
        "retries": values.Number.AMOUNT,
    }

    command: str
    interval_sec: float = 5.0
    timeout_sec: float = 30.0
    start_period_sec: float = 0.0
    start_interval_sec: float = 5.0
    retries: int = 3


class McpServer(Table):
    """One of ``[[environment.mcp_servers]]`` (harbor-format 8)."""

    name: str
    transport: Literal["stdio", "sse", "streamable-http"] = "sse"
    url: str | None = None
    command: str | None = None
    args: tuple[str, ...] = ()
    headers: Env = {}

    @field_validator("transport", mode="before")
    @classmethod
    def _alias(cls, value: object) -> object:
        return "streamable-http" if value == "http" else value

    @field_validator("headers")
    @classmethod
    def _headers(cls, headers: Env) -> Env:
        for name, value in headers.items():
            names.header_name(name)
            if "\n" in value or "\r" in value:
                raise ValueError(f"{name} holds a line break; write it on one line")
            if names.is_credential(name) and not templates.is_pure_reference(value):
                raise ValueError(
                    f"{name} holds a secret in clear; write it as a reference: "
                    f'{name} = "${{VARIABLE}}" or "Bearer ${{VARIABLE}}"'
                )
        return headers

    @model_validator(mode="after")
    def _fits_transport(self) -> McpServer:
        if self.transport == "stdio":
            if not self.command:
                raise ValueError("has transport 'stdio' but no command; add the command to run")
            if self.headers:
                raise ValueError("has headers, which transport 'stdio' cannot send; remove them")
        elif not self.url:
            raise ValueError(f"has transport {self.transport!r} but no url; add its address")
        return self


class CollectHook(Table):
    """One of ``[[verifier.collect]]``: a command that is run before artifacts are taken."""

    numbers = {"timeout_sec": values.Number.SECONDS}

    command: str
    service: str = "main"
    timeout_sec: float = 60.0
    user: User = None

    @field_validator("service")
    @classmethod
    def _service(cls, name: str) -> str:
        return names.service_name(name)


class Artifact(Table):
    """Something to keep from a container after a step (harbor-format 2.8)."""

    source: str
    destination: str | None = None
    exclude: tuple[str, ...] = ()
    service: str = "main"

    @field_validator("source")
    @classmethod
    def _source(cls, source: str) -> str:
        if not source:
            raise ValueError("is empty; name a path in the container")
        if ".." in PurePosixPath(source).parts:
            raise ValueError(f"{source!r} holds '..'; name the path itself")
        return source

    @field_validator("destination")
    @classmethod
    def _destination(cls, path: str | None) -> str | None:
        if not path:
            return None
        if path.startswith("/") or "\\" in path or ".." in PurePosixPath(path).parts:
            raise ValueError(f"{path!r} must be relative, with '/' and no '..'")
        if str(PurePosixPath(path)) == "manifest.json":
            raise ValueError("'manifest.json' is the runner's own file; choose another name")
        return path

    @field_validator("service")
    @classmethod
    def _service(cls, name: str) -> str:
        return names.service_name(name)

    @model_validator(mode="after")
    def _absolute_elsewhere(self) -> Artifact:
        if self.service != "main" and not self.source.startswith("/"):
            raise ValueError(
                f"source {self.source!r} of service {self.service!r} must be an absolute path"
            )
        return self


Artifacts = tuple[Annotated[Artifact, BeforeValidator(values.artifact)], ...]


class NetworkRules(Table):
    """The two network keys, of a phase (None: as the environment has it) or the environment."""

    network_mode: NetworkMode | None = None
    allowed_hosts: tuple[str, ...] | None = None

    @field_validator("allowed_hosts")
    @classmethod
    def _hosts(cls, hosts: tuple[str, ...] | None) -> tuple[str, ...] | None:
        return None if hosts is None else tuple(names.allowed_host(host) for host in hosts)

    @model_validator(mode="after")
    def _hosts_need_allowlist(self) -> NetworkRules:
        if self.allowed_hosts is not None and self.network_mode != "allowlist":
            raise ValueError('allowed_hosts needs network_mode = "allowlist" beside it')
        return self


class AgentConfig(NetworkRules):
    """``[agent]`` and ``[steps.agent]`` (harbor-format 2.3)."""

    numbers = {"timeout_sec": values.Number.SECONDS}

    timeout_sec: float | None = None
    user: User = None


class Tpu(Table):
    """``[environment.tpu]``."""

    type: str
    topology: str

    @field_validator("topology")
    @classmethod
    def _topology(cls, value: str) -> str:
        if not re.fullmatch(r"[1-9][0-9]*(x[1-9][0-9]*)+", value):
            raise ValueError(f"{value!r} is not a topology such as '2x4'")
        return value


class EnvironmentConfig(NetworkRules):
    """``[environment]`` and ``[verifier.environment]`` (harbor-format 2.5)."""

    numbers = {
        "build_timeout_sec": values.Number.SECONDS,
        "cpus": values.Number.AMOUNT,
        "memory_mb": values.Number.AMOUNT,
        "storage_mb": values.Number.COUNT,
        "gpus": values.Number.COUNT,
    }
    legacy_keys = frozenset({"memory", "storage", "allow_internet"})

    build_timeout_sec: float | None = None
    docker_image: str | None = None
    os: Literal["linux", "windows"] = "linux"
    cpus: int | float | None = None
    memory_mb: int | None = None
    storage_mb: int | None = None
    gpus: int | None = None
    gpu_types: tuple[str, ...] | None = None
    tpu: Tpu | None = None
    mcp_servers: tuple[McpServer, ...] = ()
    env: Env = {}
    skills_dir: str | None = None
    healthcheck: Healthcheck | None = None
    workdir: str | None = None
    network_mode: NetworkMode = "public"

    @model_validator(mode="before")
    @classmethod
    def _migrate(cls, raw: Any) -> Any:
        """Turn the deprecated keys into those of today."""
        if not isinstance(raw, dict):
            return raw
        raw = dict(raw)
        for old in ("memory", "storage"):
            if old in raw:
                values.migrate_size(raw, old)
        if "allow_internet" in raw:
            allowed = raw.pop("allow_internet")
            if not isinstance(allowed, bool):
                raise ValueError(f"allow_internet must be true or false, is {allowed!r}")
            if raw.get("network_mode") is None and raw.get("allowed_hosts") is None:
                raw["network_mode"] = "public" if allowed else "no-network"
        return raw

    @field_validator("os", mode="before")
    @classmethod
    def _os(cls, value: object) -> object:
        return value.lower() if isinstance(value, str) else value

    @field_validator("cpus", mode="plain")
    @classmethod
    def _cpus(cls, value: object) -> int | float | None:
        if value is None:
            return None
        number = values.number(value)
        if math.isinf(number):
            raise ValueError("must be a finite number")
        return int(number) if number.is_integer() else number


class VerifierConfig(NetworkRules):
    """``[verifier]`` and ``[steps.verifier]`` (harbor-format 2.4).

    ``timeout_sec`` is None when unset, so that a step inherits the task's (sharp edge 5).
    """

    numbers = {"timeout_sec": values.Number.SECONDS}

    timeout_sec: float | None = None
    env: Env = {}
    user: User = None
    environment_mode: Literal["shared", "separate"] | None = None
    environment: EnvironmentConfig | None = None
    collect: tuple[CollectHook, ...] = ()

    @model_validator(mode="after")
    def _mode_fits(self) -> VerifierConfig:
        if self.environment_mode == "shared" and self.environment is not None:
            raise ValueError(
                'environment_mode = "shared" contradicts the environment table; remove one'
            )
        return self


class SolutionConfig(Table):
    """``[solution]``: for the oracle only."""

    env: Env = {}


class Author(Table):
    """One of ``[task].authors``."""

    name: str
    email: str | None = None


class PackageConfig(Table):
    """``[task]``: the task as a package (harbor-format 2.2)."""

    name: str
    version: Annotated[str, Field(min_length=1)] | None = None
    description: str = ""
    authors: tuple[Author, ...] = ()
    keywords: tuple[str, ...] = ()

    @field_validator("name")
    @classmethod
    def _name(cls, name: str) -> str:
        return names.package_name(name)


class StepConfig(Table):
    """One of ``[[steps]]`` (harbor-format 2.7)."""

    name: str
    agent: AgentConfig = AgentConfig()
    verifier: VerifierConfig = VerifierConfig()
    min_reward: MinReward = None
    healthcheck: Healthcheck | None = None
    artifacts: Artifacts = ()

    @field_validator("name")
    @classmethod
    def _name(cls, name: str) -> str:
        return names.step_name(name)


class TaskConfig(Table):
    """The whole file (harbor-format 2.1)."""

    legacy_keys = frozenset({"version"})

    schema_version: str = "1.4"
    source: str | None = None
    multi_step_reward_strategy: Literal["mean", "final"] | None = None
    artifacts: Artifacts = ()
    steps: tuple[StepConfig, ...] = ()
    task: PackageConfig | None = None
    metadata: Mapping[str, Any] = {}
    agent: AgentConfig = AgentConfig()
    verifier: VerifierConfig = VerifierConfig()
    environment: EnvironmentConfig = EnvironmentConfig()
    solution: SolutionConfig = SolutionConfig()

    @model_validator(mode="before")
    @classmethod
    def _migrate(cls, raw: Any) -> Any:
        """Take the legacy key ``version`` for the schema's, where that is absent."""
        if isinstance(raw, dict) and "version" in raw and "schema_version" not in raw:
            version = raw["version"]
            if not isinstance(version, str):
                raise ValueError(f'version must be a string: version = "{version}"')
            raw = raw | {"schema_version": version}
        return raw

    @field_validator("steps")
    @classmethod
    def _unlike_names(cls, steps: tuple[StepConfig, ...]) -> tuple[StepConfig, ...]:
        pair = names.twins(step.name for step in steps)
        if pair is not None:
            raise ValueError(
                f"{pair[0]!r} and {pair[1]!r} are one folder on some file systems; rename one"
            )
        return steps
