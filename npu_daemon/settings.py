"""Settings of a daemon and limits of requests; precedence: command line, environment, TOML file, defaults."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from ascend_gym.core.config import DAEMON_SETTING_PREFIX, cache_root
from ascend_gym.core.digest import digest_of
from ascend_gym.core.errors import MisuseError
from ascend_gym.core.records import MeasureProtocol
from ascend_gym.core.toml_file import first_problem, read_toml
from npu_daemon.broker.fair_queue import Quota
from npu_daemon.cache_folder import DEFAULT_LIMIT_GIB
from npu_daemon.cann.configuration import CannSettings
from npu_daemon.security import CurvePolicy

_GIB = 2**30

DEFAULT_ADDRESS = "tcp://127.0.0.1:5710"
_ANY_PORT = ":*"
_PAIR = ("secret_key", "allowed_clients")  # may come from different sources
_CANN = "cann"
_LISTS = frozenset({"operators", "reference_folders", "reference_digests", "cann_devices", "cann_tools"})


class RequestLimits(BaseModel):
    """Maximum values in the protocol of a request.

    Attributes:
        max_timeout_s: limit in seconds, for a build and for a run.
        max_memory_gib: limit in GiB, for the memory of a candidate's process and for the bytes it may write.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_timeout_s: float = Field(default=600.0, gt=0)
    max_memory_gib: float = Field(default=16.0, gt=0)

    def check(self, protocol: MeasureProtocol) -> None:
        """Check the limits of a request's protocol.

        Raises:
            MisuseError: it exceeds a limit.
        """
        memory_bytes = int(self.max_memory_gib * _GIB)
        for name, limit in (
            ("build_timeout_s", self.max_timeout_s),
            ("run_timeout_s", self.max_timeout_s),
            ("memory_limit_bytes", memory_bytes),
            ("output_limit_bytes", memory_bytes),
        ):
            asked = getattr(protocol, name)
            if asked > limit:
                raise MisuseError(
                    f"the request asks for {name} {asked:g}, this daemon gives at most {limit:g}: ask for "
                    "less, or have its owner set max_timeout_s and max_memory_gib in section [limits]"
                )


class TenantQuota(BaseModel):
    """Quota of a tenant.

    Attributes:
        max_running: jobs on workers at a time; ``None`` for the number of workers.
        max_queued: waiting jobs; beyond that the daemon reports that it is busy.
        max_queued_mib: total size of the requests of waiting jobs; likewise.
        max_device_seconds: total device time that may be charged; ``None`` for no limit.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_running: int | None = Field(default=None, ge=1)
    max_queued: int = Field(default=10_000, ge=1)
    max_queued_mib: float = Field(default=1024.0, gt=0)
    max_device_seconds: float | None = Field(default=None, gt=0)

    def quota(self) -> Quota:
        """Return the quota as the broker's record."""
        return Quota(self.max_running, self.max_queued, self.max_queued_mib, self.max_device_seconds)


class DaemonSettings(BaseModel):
    """Settings of ``npu-daemon serve``.

    Attributes:
        bind: address for clients.
        backend: ``simulator``, ``cann``, ``replay`` or ``module:Class``.
        chip: default chip.
        workers: processes that build and run; 0 for one per core, up to 4.
        devices: how many of them may run a candidate at a time; 0 for all.
        cache_dir: folder for builds, inputs and results.
        cache_limit_gib: limit of inputs, builds and results together; the least recently used are removed.
        min_free_mib: no evaluation begins while less is free where workers write; clients wait.
        recording: result store for the replay backend.
        reference_folders: folders below which clients may name operators of their own, whose ``reference.py``
            is then executed in the trusted process.
        reference_digests: folder digests of such operators, in any folder.
        journal: file of accepted jobs; by default one below ``cache_dir`` for this address.
        keep_jobs: whether to have a journal.
        max_device_seconds: limit of the total device time.
        secret_key, allowed_clients, operators: see ``CurvePolicy``.
        metrics: ``HOST:PORT`` for Prometheus.
        log_format: text or JSON lines.
        log_level: minimum level to log.
        quota, tenants: quotas of tenants: the default, and by name.
        limits: limits of each request.
        cann: settings of the CANN backend.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    bind: str = DEFAULT_ADDRESS
    backend: str = "simulator"
    chip: str = "910B2"
    workers: int = Field(default=0, ge=0)
    devices: int = Field(default=0, ge=0)
    cache_dir: Path = Field(default_factory=cache_root)
    cache_limit_gib: float = Field(default=DEFAULT_LIMIT_GIB, gt=0)
    min_free_mib: float = Field(default=256.0, ge=0)
    recording: Path | None = None
    reference_folders: tuple[Path, ...] = ()
    reference_digests: tuple[Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")], ...] = ()
    journal: Path | None = None
    keep_jobs: bool = True
    max_device_seconds: float | None = Field(default=None, gt=0)
    secret_key: Path | None = None
    allowed_clients: Path | None = None
    operators: tuple[str, ...] = ()
    metrics: str | None = None
    log_format: Literal["text", "json"] = "text"
    log_level: Literal["debug", "info", "warning"] = "info"
    quota: TenantQuota = TenantQuota()
    tenants: dict[str, TenantQuota] = Field(default_factory=dict)
    limits: RequestLimits = RequestLimits()
    cann: CannSettings = CannSettings()

    @model_validator(mode="after")
    def _both_keys_or_none(self) -> DaemonSettings:
        if (self.secret_key is None) != (self.allowed_clients is None):
            raise ValueError("secret_key and allowed_clients go together")
        return self

    @property
    def worker_count(self) -> int:
        """Number of worker processes."""
        return self.workers or min(4, os.cpu_count() or 1)

    @property
    def device_count(self) -> int:
        """Number of workers that may run a candidate at a time."""
        if self.backend == _CANN:
            return min(self.devices or len(self.cann.devices), len(self.cann.devices))
        return self.devices or self.worker_count

    @property
    def cache_limit_bytes(self) -> int:
        """Limit of the cache in bytes."""
        return int(self.cache_limit_gib * _GIB)

    @property
    def journal_path(self) -> Path | None:
        """File of accepted jobs; ``None`` for no journal."""
        if not self.keep_jobs:
            return None
        if self.journal is not None:
            return self.journal
        if self.bind.endswith(_ANY_PORT):  # clients could not find the next daemon at the same address
            return None
        return self.cache_dir / "jobs" / f"{digest_of('journal', self.bind)[:16]}.sqlite"

    @property
    def policy(self) -> CurvePolicy | None:
        """Access policy; ``None`` admits everyone who can reach the address."""
        if self.secret_key is None or self.allowed_clients is None:
            return None
        return CurvePolicy(self.secret_key, self.allowed_clients, self.operators)


def daemon_settings(
    options: Mapping[str, Any], environment: Mapping[str, str], config: Path | None
) -> DaemonSettings:
    """Return the settings of a daemon.

    Args:
        options: command-line options; ``None`` means not given.
        environment: values of environment variables by setting.
        config: TOML file.

    Raises:
        MisuseError: the file cannot be read, or a setting is unknown or invalid.
    """
    try:
        from_file = read_toml(config) if config is not None else {}
    except (OSError, ValueError) as error:
        raise MisuseError(f"{config} cannot be read: {error}") from error
    from_environment = _from_environment(environment)
    given = {name: value for name, value in options.items() if value is not None}
    for source, values in ((str(config), from_file), ("environment", from_environment), ("options", given)):
        _validated(source, {name: value for name, value in values.items() if name not in _PAIR})
    return _validated("settings", _merged(from_file, from_environment, given))


def _merged(*sources: Mapping[str, Any]) -> dict[str, Any]:
    """Merge settings of several sources, later ones first; section ``cann`` is merged key by key."""
    merged = {name: value for source in sources for name, value in source.items()}
    sections = [source[_CANN] for source in sources if _CANN in source]
    return {
        **merged,
        **({_CANN: {name: value for each in sections for name, value in each.items()}} if sections else {}),
    }


def _from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    """Parse the values of environment variables: lists are comma-separated, ``cann_*`` form a section."""
    values: dict[str, Any] = {}
    section: dict[str, Any] = {}
    for name, value in environment.items():
        own = name.removeprefix(f"{_CANN}_")
        target = values if own == name else section
        target[own] = [item for item in value.split(",") if item] if name in _LISTS else value
    return {**values, **({_CANN: section} if section else {})}


def _validated(source: str, values: Mapping[str, Any]) -> DaemonSettings:
    """Validate the settings of one source; the error message names the source."""
    try:
        return DaemonSettings.model_validate(values)
    except ValidationError as error:
        name, reason = first_problem(error, DaemonSettings)
        if source == "environment":
            name = f"{DAEMON_SETTING_PREFIX}{name.replace('.', '_').upper()}"
        raise MisuseError(f"{source}: {name}: {reason}") from error
