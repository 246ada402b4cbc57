"""Settings of the CANN backend: section ``[cann]`` of a daemon's configuration."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, field_validator

from npu_daemon.cann.sampling import StopRule

DEFAULT_TOOLKIT = Path("/usr/local/Ascend/ascend-toolkit/latest")


class CannSettings(BaseModel):
    """What the CANN backend is told.

    Times are limited, because a job that makes no progress for longer is taken from its worker
    (``pipeline.case_limit_s``, 460 s where a request does not say otherwise).

    Attributes:
        toolkit: folder of the CANN toolkit, the one that holds ``opp`` and ``include``.
        tools: folders searched for programs before those of the toolkit.
        devices: numbers of the devices to use, as ``aclrtSetDevice`` takes them.
        compute_unit: what operators are compiled for, as ``msopgen -c ai_core-UNIT`` takes it.
        npu_arch: the same for ``bisheng --npu-arch``, which compiles the kernel that cleans the cache.
        warm_up: launches before each measured one (``msprof op --warm-up``), for the clock to rise.
        rounds: calls of the operator in one run of the profiler.
        max_batches: runs of the profiler for one case, at most; more if a request asks for more samples.
        sampling_s: wall seconds after which no further run of the profiler is begun for a case.
        precision: half width of the 95 % interval of the median, relative to it, at which sampling ends.
        pair_with_baseline: whether the operator's own baseline is measured in turn with each candidate.
        clock_tolerance: share by which the clock may be below the rated one.
        build_timeout_s: wall seconds of building one operator, where a request allows no more.
        start_timeout_s: what starting the runtime and copying inputs may take, in wall seconds.
        run_unread: whether to run sources that the simulator's boundary cannot read; only where all
            clients are trusted.
        clean_bytes: size of the buffer that the cleaning kernel reads and writes; more than the L2 cache.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    toolkit: Path = DEFAULT_TOOLKIT
    tools: tuple[Path, ...] = ()
    devices: tuple[int, ...] = Field(default=(0,), min_length=1)
    compute_unit: str = Field(default="ascend910b", pattern=r"^[a-z0-9_]+$")
    npu_arch: str = Field(default="dav-2201", pattern=r"^[a-z0-9-]+$")
    warm_up: int = Field(default=5, ge=0, le=500)
    rounds: int = Field(default=20, ge=1, le=500)
    max_batches: int = Field(default=10, ge=1, le=100)
    sampling_s: float = Field(default=180.0, gt=0, le=300.0)
    precision: float = Field(default=0.01, gt=0, lt=1)
    pair_with_baseline: bool = True
    clock_tolerance: float = Field(default=0.02, ge=0, lt=1)
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
        """Return when enough has been sampled for a request that wants ``repeats`` samples at least."""
        most = max(self.rounds * self.max_batches, repeats)
        return StopRule(max(self.rounds, repeats), most, self.precision)
