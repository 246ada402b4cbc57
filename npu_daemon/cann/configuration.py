"""Settings of the CANN backend: section ``[cann]`` of a daemon's configuration."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, field_validator

from npu_daemon.cann.sampling import StopRule

_INSTALL_FOLDERS = (Path("/usr/local/Ascend"), Path.home() / "Ascend")
_TOOLKITS = ("cann", "ascend-toolkit/latest")  # as asc-devkit 9.1 documents, and older ones


def installed_toolkit() -> Path:
    """Return where CANN installs to by default: the first such folder that exists, else the current one."""
    places = [folder / name for folder in _INSTALL_FOLDERS for name in _TOOLKITS]
    return next((place for place in places if place.is_dir()), places[0])


class CannSettings(BaseModel):
    """Settings of the CANN backend.

    Times are limited, because a job without progress for longer is taken from its worker
    (``pipeline.case_limit_s``, 800 s unless a request changes its limits).

    Attributes:
        toolkit: folder of the CANN toolkit, with ``opp`` and ``include``.
        tools: folders to search for programs before those of the toolkit.
        devices: numbers of the devices to use, as in ``aclrtSetDevice``.
        compute_unit: compilation target of operators, as in ``msopgen -c ai_core-UNIT``.
        npu_arch: the same for ``bisheng --npu-arch``, which compiles the kernel that cleans the cache.
        warm_up: launches before each measured one (``msprof op --warm-up``) where a request asks for a warm
            cache; otherwise there are none, since they would fill the cache that was just emptied.
        rounds: calls of the operator per run of the profiler.
        max_batches: maximum runs of the profiler per case; more if a request asks for more samples.
        sampling_s: wall seconds after which no further run of the profiler is started for a case.
        precision: relative half width of the median's 95 % interval at which sampling ends.
        pair_with_baseline: whether the operator's own baseline is measured alternately with each candidate.
        clock_tolerance: tolerated relative deviation of the clock below the rated one.
        single_kernel: whether only the kernel that a case launches is compiled, if the toolkit's build can.
        build_timeout_s: wall seconds for building one operator, if the request allows no more.
        start_timeout_s: wall seconds for starting the runtime and copying inputs.
        run_unread: whether to run sources that the simulator's boundary cannot judge; only if all
            clients are trusted.
        clean_bytes: size of the buffer that the cleaning kernel reads and writes; more than the L2 cache.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    toolkit: Path = Field(default_factory=installed_toolkit)
    tools: tuple[Path, ...] = ()
    devices: tuple[int, ...] = Field(default=(0,), min_length=1)
    compute_unit: str = Field(default="ascend910b", pattern=r"^[a-z0-9_]+$")
    npu_arch: str = Field(default="dav-2201", pattern=r"^[a-z0-9-]+$")
    warm_up: int = Field(default=5, ge=1, le=500)
    rounds: int = Field(default=20, ge=1, le=500)
    max_batches: int = Field(default=10, ge=1, le=100)
    sampling_s: float = Field(default=180.0, gt=0, le=300.0)
    precision: float = Field(default=0.01, gt=0, lt=1)
    pair_with_baseline: bool = True
    clock_tolerance: float = Field(default=0.02, ge=0, lt=1)
    single_kernel: bool = True
    build_timeout_s: float = Field(default=180.0, gt=0, le=200.0)
    start_timeout_s: float = Field(default=60.0, gt=0)
    run_unread: bool = False
    clean_bytes: int = Field(default=256 << 20, ge=1 << 10)

    @field_validator("devices")
    @classmethod
    def _different(cls, devices: tuple[int, ...]) -> tuple[int, ...]:
        if len(set(devices)) != len(devices) or min(devices) < 0:
            raise ValueError(f"expected different device numbers of at least 0, got {list(devices)}")
        return devices

    def stop_rule(self, repeats: int) -> StopRule:
        """Return the stopping rule for a request with at least ``repeats`` samples."""
        most = max(self.rounds * self.max_batches, repeats)
        return StopRule(max(self.rounds, repeats), most, self.precision)
