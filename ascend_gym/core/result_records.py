"""Evaluation results: diagnostics, profiles, cases, and the charge."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from enum import Enum
from functools import cached_property
from operator import attrgetter
from typing import Any

from pydantic import Field, field_validator, model_validator

from ascend_gym.core.evaluation_records import EvalRequest
from ascend_gym.core.request_records import RECORD_VERSION, Convention, Record
from ascend_gym.core.status import Status, rule_of
from ascend_gym.core.target_records import TargetSheet
from ascend_gym.core.text import shortened, well_formed

MAX_DIAGNOSTIC_CHARS = 20_000


class Phase(str, Enum):
    """Phase of the evaluation pipeline."""

    REQUEST = "request"
    BUILD_TILING = "build_tiling"
    RUN_TILING = "run_tiling"
    BUILD_KERNEL = "build_kernel"
    RUN_KERNEL = "run_kernel"
    VERIFY = "verify"
    PRICE = "price"
    GUARD = "guard"
    SERVICE = "service"


class Diagnostic(Record):
    """A message on which a person or an agent can act.

    Lone surrogates, which a compiler may quote from a source, are replaced by U+FFFD. The middle of a very
    long text, which a candidate may provoke, is dropped, because results are stored by the thousand.

    Attributes:
        phase: phase in which the problem occurred.
        message: what was expected, what was found, and what to do.
        call: the Ascend C call concerned, for example ``DataCopy(GM->UB)``.
        file: source path relative to the operator folder.
        line: one-based line in ``file``.
        block_idx: index of the block in which it occurred.
    """

    phase: Phase
    message: str
    call: str | None = None
    file: str | None = None
    line: int | None = None
    block_idx: int | None = None

    @field_validator("message", "call", "file")
    @classmethod
    def _as_utf8(cls, value: str | None) -> str | None:
        return None if value is None else shortened(well_formed(value), MAX_DIAGNOSTIC_CHARS)

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}: " if self.file and self.line else ""
        call = f"{self.call}: " if self.call else ""
        block = f" (block {self.block_idx})" if self.block_idx is not None else ""
        return f"[{self.phase.value}] {where}{call}{self.message}{block}"


class Profile(Record):
    """Time profile of one launch, with the field names of msprof.

    Times are in microseconds, averaged over the cores of a kind: ``aiv`` for vector cores, ``aic`` for cube
    cores. Ratios are relative to ``aiv_time`` or ``aic_time``. Fields of a kind of core that did not
    run are zero.
    """

    task_duration_us: float = Field(gt=0)
    block_dim: int = Field(ge=1)
    aiv_time: float = Field(ge=0)
    aiv_total_cycles: int = Field(ge=0)
    aiv_vec_time: float = Field(ge=0)
    aiv_vec_ratio: float = Field(ge=0)
    aiv_scalar_time: float = Field(ge=0)
    aiv_scalar_ratio: float = Field(ge=0)
    aiv_mte2_time: float = Field(ge=0)
    aiv_mte2_ratio: float = Field(ge=0)
    aiv_mte3_time: float = Field(ge=0)
    aiv_mte3_ratio: float = Field(ge=0)
    gm_to_ub_bytes: int = Field(ge=0)
    ub_to_gm_bytes: int = Field(ge=0)
    aiv_mte2_instructions: int = Field(ge=0)
    aiv_mte3_instructions: int = Field(ge=0)
    aiv_vec_instructions: int = Field(ge=0)
    aic_time: float = Field(default=0.0, ge=0)
    aic_total_cycles: int = Field(default=0, ge=0)
    aic_mac_time: float = Field(default=0.0, ge=0)
    aic_mac_ratio: float = Field(default=0.0, ge=0)
    aic_scalar_time: float = Field(default=0.0, ge=0)
    aic_scalar_ratio: float = Field(default=0.0, ge=0)
    aic_mte1_time: float = Field(default=0.0, ge=0)
    aic_mte1_ratio: float = Field(default=0.0, ge=0)
    aic_mte2_time: float = Field(default=0.0, ge=0)
    aic_mte2_ratio: float = Field(default=0.0, ge=0)
    aic_fixpipe_time: float = Field(default=0.0, ge=0)
    aic_fixpipe_ratio: float = Field(default=0.0, ge=0)
    gm_to_l1_bytes: int = Field(default=0, ge=0)
    l0c_to_gm_bytes: int = Field(default=0, ge=0)
    aic_mac_instructions: int = Field(default=0, ge=0)


_PROFILE_VALUES = attrgetter(*Profile.model_fields)


class Launch(Record):
    """Launch parameters that the tiling program chose for one case."""

    block_dim: int = Field(ge=1)
    tiling_key: int = Field(ge=0)
    workspace_bytes: int = Field(ge=0)
    tiling_data_bytes: int = Field(ge=0)


class Accuracy(Record):
    """Deviation of the outputs from the reference."""

    max_abs_error: float
    max_rel_error: float
    bad_share: float
    upstream_rule_passes: bool


class ScalarTimes(Record):
    """What the scalar unit of a core did, in microseconds: means over the cores of a kind that ran blocks.

    Attributes:
        fetched_instructions: machine instructions of the kernel's own code that came for the first time.
        fetch_us: what fetching them took.
        code_us: the kernel's own code: addresses, loops, conditions.
        queue_us: the library's account of queues and events.
        access_us: loads and stores of the unified buffer and of global memory.
        issue_us: handing instructions to the pipes.
        order_us: flags and barriers that the compiler inserts.
        wait_us: waiting for other pipes, or for a place in their queues.
    """

    fetched_instructions: int = Field(ge=0)
    fetch_us: float = Field(ge=0)
    code_us: float = Field(ge=0)
    queue_us: float = Field(ge=0)
    access_us: float = Field(ge=0)
    issue_us: float = Field(ge=0)
    order_us: float = Field(ge=0)
    wait_us: float = Field(ge=0)


class CoreTimes(Record):
    """What the means of a profile hide.

    Attributes:
        slowest_us: longest busy time of a core, in microseconds.
        wait_ratios: for each pipe, the share of core time in which it has work but waits for others, by the
            names of msopprof, such as ``aiv_vec_wait_ratio``.
        bank_conflict_ratios: for each vector instruction that loses some, the share of vector core time that
            it takes longer for operands in the same banks of UB.
        scalar: what the scalar units did, by kind of core (``aiv``, ``aic``), where stalls were asked for.
    """

    slowest_us: float = Field(ge=0)
    wait_ratios: dict[str, float] = Field(default_factory=dict)
    bank_conflict_ratios: dict[str, float] = Field(default_factory=dict, exclude_if=lambda value: not value)
    scalar: dict[str, ScalarTimes] = Field(default_factory=dict, exclude_if=lambda value: not value)


class Stall(Record):
    """How long a pipe of a core waits before an instruction, all times that it comes to it together.

    Attributes:
        pipe: name with the kind of core, such as ``aiv_vec``.
        at: the instruction and where it stands, such as ``Add at op_kernel/add.cpp:60``, with the line.
        waits_for: what ended last before it starts, as a rule: another pipe's instruction, or issuing it;
            where that differs from time to time, what accounts for most of the waiting.
        wait_ratio: share of the time of the core, in the part of the launch that was looked at (its first
            instructions, at most 1024 of each core).
        times: how often it waits; 0 in results of before this was counted.
        first_ratio: the part of ``wait_ratio`` that is the first time.
        by_cause: ``wait_ratio`` by what ended last, the largest first, where that is not always the same.
    """

    pipe: str
    at: str
    waits_for: str
    wait_ratio: float = Field(ge=0, le=1)
    times: int = Field(default=0, ge=0)
    first_ratio: float = Field(default=0.0, ge=0, le=1)
    by_cause: dict[str, float] = Field(default_factory=dict, exclude_if=lambda value: not value)


class CaseResult(Record):
    """Outcome of one case; the status determines which fields are set.

    ``floor_us`` is a time in microseconds that no candidate can beat on this chip, and ``cores`` tells how
    far cores differ and what they wait for; ``ub_taken_bytes`` is how much of UB the kernel's buffers take on
    the vector core where they take most. All are ``None`` where the backend does not know. ``stalls`` are the
    longest waits of a core by line of the source, the longest first, where the protocol asks for them.
    """

    case_id: str
    status: Status
    samples_us: tuple[float, ...] = ()
    launch: Launch | None = None
    profile: Profile | None = None
    accuracy: Accuracy | None = None
    floor_us: float | None = Field(default=None, gt=0, exclude_if=lambda value: value is None)
    cores: CoreTimes | None = Field(default=None, exclude_if=lambda value: value is None)
    ub_taken_bytes: int | None = Field(default=None, ge=0, exclude_if=lambda value: value is None)
    stalls: tuple[Stall, ...] = Field(default=(), exclude_if=lambda value: not value)
    diagnostics: tuple[Diagnostic, ...] = ()

    @model_validator(mode="after")
    def _status_fixes_fields(self) -> CaseResult:
        measured = self.status is Status.OK
        if measured != bool(self.samples_us) or measured != (self.profile is not None):
            raise ValueError(f"{self.case_id}: samples and profile exist exactly when the status is ok")
        if any(not math.isfinite(sample) or sample <= 0 for sample in self.samples_us):
            raise ValueError(f"{self.case_id}: latencies must be finite and positive, got {self.samples_us}")
        if not measured and not self.diagnostics:
            raise ValueError(f"{self.case_id}: status {self.status.value} needs a diagnostic")
        return self

    @property
    def latency_us(self) -> float | None:
        """Median of the samples in microseconds; ``None`` if the case did not succeed."""
        if not self.samples_us:
            return None
        ordered = sorted(self.samples_us)
        middle = len(ordered) // 2
        return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


class PhaseSeconds(Record):
    """Wall seconds of an evaluation, by phase."""

    queue: float = 0.0
    build: float = 0.0
    run: float = 0.0
    verify: float = 0.0
    price: float = 0.0
    total: float = 0.0


class DeviceInfo(Record):
    """The device that measured a result, or that would.

    Attributes:
        toolchain_digest: identity of what builds, runs and prices; results do not depend on anything else of
            the host.
        harness: version of what draws inputs and judges outputs, with those of the packages that it computes
            with; empty in results of earlier releases.
        target: the known facts about the chip; set in results if the backend has them.
    """

    backend: str
    chip: str
    toolchain_digest: str
    sandbox: str
    host: str
    harness: str = Field(default="", exclude_if=lambda value: not value)
    target: TargetSheet | None = Field(default=None, exclude_if=lambda value: value is None)


class Charge(Record):
    """Cost of an evaluation in terms of the budget."""

    evaluations: int = Field(default=0, ge=0)
    device_seconds: float = Field(default=0.0, ge=0)


class EvalResult(Record):
    """Answer to an ``EvalRequest``; it is ``ok`` if and only if every case is.

    ``convention`` says what the measured launches found in the caches.
    """

    version: int = RECORD_VERSION
    request_digest: str
    candidate_digest: str
    status: Status
    cases: tuple[CaseResult, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    seconds: PhaseSeconds = PhaseSeconds()
    device: DeviceInfo | None = None
    charge: Charge = Charge()
    cached: bool = False
    convention: Convention = Field(
        default=Convention.L2_COLD, exclude_if=lambda value: value is Convention.L2_COLD
    )

    @model_validator(mode="after")
    def _status_fixes_fields(self) -> EvalResult:
        if self.status is Status.OK and (
            not self.cases or any(case.status is not Status.OK for case in self.cases)
        ):
            raise ValueError("an ok result has cases, and all of them are ok")
        if self.status is not Status.OK and not self.all_diagnostics:
            raise ValueError(f"status {self.status.value} needs a diagnostic")
        if self.charge.evaluations and not rule_of(self.status).charged:
            raise ValueError(f"status {self.status.value} is never charged")
        return self

    @property
    def all_diagnostics(self) -> tuple[Diagnostic, ...]:
        """Diagnostics of the evaluation and of its cases, in order."""
        return self.diagnostics + tuple(d for case in self.cases for d in case.diagnostics)

    @cached_property
    def latency_us(self) -> float | None:
        """Geometric mean of the cases' latencies in microseconds; ``None`` unless ok."""
        if self.status is not Status.OK:
            return None
        return _geometric_mean([case.latency_us for case in self.cases if case.latency_us])

    @cached_property
    def floor_us(self) -> float | None:
        """Geometric mean of the cases' floors in microseconds; ``None`` unless ok and all are known."""
        floors_us = [case.floor_us for case in self.cases if case.floor_us]
        if self.status is not Status.OK or len(floors_us) < len(self.cases):
            return None
        return _geometric_mean(floors_us)

    @cached_property
    def mean_profile(self) -> Mapping[str, float] | None:
        """Arithmetic mean of each profile field over the cases; ``None`` if nothing was measured."""
        profiles = [case.profile for case in self.cases if case.profile is not None]
        if not profiles:
            return None
        columns = zip(*map(_PROFILE_VALUES, profiles), strict=True)
        means = (math.fsum(column) / len(profiles) for column in columns)
        return dict(zip(Profile.model_fields, means, strict=True))


def _geometric_mean(values: Sequence[float]) -> float:
    return math.exp(math.fsum(math.log(value) for value in values) / len(values))


def failed_result(request: EvalRequest, status: Status, diagnostic: Diagnostic, **fields: Any) -> EvalResult:
    """Return the result of a request that failed before any case ran."""
    return EvalResult(
        request_digest=request.digest,
        candidate_digest=request.candidate.digest,
        status=status,
        diagnostics=(diagnostic,),
        charge=Charge(evaluations=1 if rule_of(status).charged else 0),
        **fields,
    )
