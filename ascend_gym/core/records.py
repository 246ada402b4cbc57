"""Frozen records that travel between agents, environment, daemon and store.

Two families: what is asked (``OpSpec``, ``Case``, ``Candidate``, ``MeasureProtocol``, ``EvalRequest``)
and what is answered (``Diagnostic``, ``Profile``, ``CaseResult``, ``EvalResult``, ``DeviceInfo``,
``Lease``, ``Charge``). A record that breaks its own rules cannot be built.
"""

from __future__ import annotations

import math
from enum import Enum
from functools import cached_property
from pathlib import PurePosixPath
from statistics import fmean
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from ascend_gym.core.digest import digest_of
from ascend_gym.core.status import Status, rule_of
from ascend_gym.core.text import well_formed

RECORD_VERSION = 1

AttributeValue = bool | int | float | str | tuple[int, ...] | tuple[float, ...]


class Record(BaseModel):
    """Base of all records: frozen, and closed to unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")


class DType(str, Enum):
    """Element types of tensors, by their numpy names."""

    FLOAT16 = "float16"
    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"
    INT8 = "int8"
    UINT8 = "uint8"
    INT16 = "int16"
    UINT16 = "uint16"
    INT32 = "int32"
    UINT32 = "uint32"
    INT64 = "int64"
    UINT64 = "uint64"
    BOOL = "bool"

    @property
    def itemsize_bytes(self) -> int:
        """Size of one element in bytes."""
        return _ITEMSIZE_BYTES[self]

    @property
    def is_floating(self) -> bool:
        """Whether elements are floating-point numbers."""
        return self in (DType.FLOAT16, DType.FLOAT32, DType.BFLOAT16)


_ITEMSIZE_BYTES = {
    DType.FLOAT16: 2,
    DType.FLOAT32: 4,
    DType.BFLOAT16: 2,
    DType.INT8: 1,
    DType.UINT8: 1,
    DType.INT16: 2,
    DType.UINT16: 2,
    DType.INT32: 4,
    DType.UINT32: 4,
    DType.INT64: 8,
    DType.UINT64: 8,
    DType.BOOL: 1,
}


class ValueRange(Record):
    """How the elements of an input are drawn.

    ``uniform`` draws from [low, high]; ``normal`` has mean ``low`` and standard deviation ``high``;
    ``integers`` draws whole numbers from [low, high]; ``permutation`` shuffles 0..n-1.
    """

    kind: Literal["uniform", "normal", "integers", "permutation"] = "uniform"
    low: float = -1.0
    high: float = 1.0


class TensorSpec(Record):
    """One input or output of a case.

    Attributes:
        name: parameter name as in the operator definition.
        dtype: element type.
        shapes: one shape for a plain tensor, several for a list ("dynamic") parameter.
        dynamic: whether the parameter is a list of tensors.
        values: how an input is filled; ignored for outputs.
        optional_absent: an optional input that the case leaves out (passed as a null pointer).
    """

    name: str
    dtype: DType
    shapes: tuple[tuple[int, ...], ...]
    dynamic: bool = False
    values: ValueRange = ValueRange()
    optional_absent: bool = False

    @model_validator(mode="after")
    def _check_shapes(self) -> TensorSpec:
        if not self.dynamic and len(self.shapes) != 1:
            raise ValueError(f"{self.name}: a plain tensor has exactly one shape, got {self.shapes}")
        if any(extent < 0 for shape in self.shapes for extent in shape):
            raise ValueError(f"{self.name}: negative extent in {self.shapes}")
        return self

    @property
    def size_bytes(self) -> int:
        """Bytes of all tensors of this parameter."""
        if self.optional_absent:
            return 0
        return sum(math.prod(shape) for shape in self.shapes) * self.dtype.itemsize_bytes


class Tolerance(Record):
    """Numerical agreement that a verdict asks for, per output dtype.

    An element is bad when ``|real - expected| > atol + rtol * |expected|``; the output is accepted when at
    most ``max_bad_share`` of its elements are bad and no bad element is off by more than ``10 x`` its bound.
    """

    atol: float = Field(ge=0)
    rtol: float = Field(ge=0)
    max_bad_share: float = Field(default=0.0, ge=0, lt=1)


class Case(Record):
    """One concrete problem: shapes, dtypes, attributes and how inputs are drawn."""

    case_id: str
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    attributes: dict[str, AttributeValue] = {}
    tolerance: dict[DType, Tolerance] = {}

    @property
    def traffic_bytes(self) -> int:
        """Bytes of all inputs and outputs: what a kernel must move at least for dense operators."""
        return sum(tensor.size_bytes for tensor in (*self.inputs, *self.outputs))


class SourceFile(Record):
    """One source file; ``path`` is relative to the operator folder."""

    path: str
    text: str

    @field_validator("path", "text")
    @classmethod
    def _is_utf8(cls, value: str) -> str:
        if value != well_formed(value):
            raise ValueError("a source file is written as UTF-8: it has no lone surrogates")
        return value

    @field_validator("path")
    @classmethod
    def _stay_inside(cls, path: str) -> str:
        parts = PurePosixPath(path).parts
        if not parts or path.startswith("/") or ".." in parts or "\\" in path or "\0" in path:
            raise ValueError(f"source path must stay inside the operator folder, got {path!r}")
        return path


class Sources(Record):
    """The files of one side (host or kernel); ``main`` is the file that rewrites act on."""

    files: tuple[SourceFile, ...]
    main: str

    @model_validator(mode="after")
    def _main_exists(self) -> Sources:
        paths = [file.path for file in self.files]
        if len(set(paths)) != len(paths):
            raise ValueError(f"duplicate source paths: {paths}")
        if self.main not in paths:
            raise ValueError(f"main file {self.main!r} is not among {paths}")
        return self

    @property
    def main_text(self) -> str:
        """Text of the main file."""
        return next(file.text for file in self.files if file.path == self.main)

    def with_main_text(self, text: str) -> Sources:
        """Return a copy whose main file has another text."""
        files = tuple(
            SourceFile(path=file.path, text=text) if file.path == self.main else file for file in self.files
        )
        return Sources(files=files, main=self.main)


class Candidate(Record):
    """A complete operator implementation <T, K>: host tiling sources and device kernel sources."""

    host: Sources
    kernel: Sources
    build_flags: tuple[str, ...] = ()

    @cached_property
    def digest(self) -> str:
        """Identity of the candidate: the digest of every source and flag."""
        return digest_of("candidate", self)

    @property
    def texts(self) -> dict[str, str]:
        """Text of every source file by path, host files first."""
        return {file.path: file.text for side in (self.host, self.kernel) for file in side.files}

    @property
    def tiling_text(self) -> str:
        """Main host source: what a tiling rewrite replaces."""
        return self.host.main_text

    @property
    def kernel_text(self) -> str:
        """Main kernel source: what a kernel rewrite replaces."""
        return self.kernel.main_text

    def rewritten(self, *, tiling: str | None = None, kernel: str | None = None) -> Candidate:
        """Return a copy with another tiling and / or kernel main text; ``None`` keeps the old one."""
        return Candidate(
            host=self.host if tiling is None else self.host.with_main_text(tiling),
            kernel=self.kernel if kernel is None else self.kernel.with_main_text(kernel),
            build_flags=self.build_flags,
        )


class OpSpec(Record):
    """An operator of a suite: its identity, its cases and its baseline implementation.

    Attributes:
        op_id: ``suite/name``.
        op_type: CamelCase type as registered by OP_ADD.
        folder: absolute path of the operator folder on the host that loaded it.
        level: difficulty level, 1 to 3.
        category: what kind of operator it is.
        description: one line for people and prompts.
        auto_sync: whether the operator is compiled with automatic synchronisation.
        reads_all_inputs: whether every element of every input bears on the output, so that a kernel that
            leaves some unread cannot have computed it.
        cases: the cases; the speedup is the geometric mean over them.
        baseline: the sources in the folder.
        folder_digest: digest of everything in the folder that changes a verdict.
    """

    op_id: str
    op_type: str
    folder: str
    level: int = Field(ge=1, le=3)
    category: str
    description: str
    auto_sync: bool
    reads_all_inputs: bool = False
    cases: tuple[Case, ...] = Field(min_length=1)
    baseline: Candidate
    folder_digest: str

    @model_validator(mode="after")
    def _unique_cases(self) -> OpSpec:
        ids = [case.case_id for case in self.cases]
        if len(set(ids)) != len(ids):
            raise ValueError(f"{self.op_id}: duplicate case ids {ids}")
        return self

    @property
    def name(self) -> str:
        """Name without the suite."""
        return self.op_id.rpartition("/")[2]

    def case(self, case_id: str) -> Case:
        """Return the case of that id.

        Raises:
            KeyError: there is no such case; the message lists the ids.
        """
        for case in self.cases:
            if case.case_id == case_id:
                return case
        raise KeyError(f"{self.op_id} has no case {case_id!r}; cases: {[c.case_id for c in self.cases]}")


class MeasureProtocol(Record):
    """How an evaluation is carried out; part of the identity of its result."""

    chip: str = "910B2"
    input_seed: int = 0
    repeats: int = Field(default=1, ge=1)
    build_timeout_s: float = Field(default=60.0, gt=0)
    run_timeout_s: float = Field(default=20.0, gt=0)
    memory_limit_bytes: int = Field(default=4 * 2**30, gt=0)
    output_limit_bytes: int = Field(default=2 * 2**30, gt=0)


class EvalRequest(Record):
    """What a client asks of a daemon.

    Attributes:
        op_id: operator, resolved on the daemon's host.
        op_folder: absolute operator folder on the daemon's host, for operators outside installed suites.
        folder_digest: the client's view of the folder; a daemon that sees another one refuses.
        candidate: what to evaluate.
        case_ids: which cases; empty means all.
        protocol: how.
        use_cache: whether an equal earlier result may be returned.
    """

    version: int = RECORD_VERSION
    op_id: str
    op_folder: str | None = None
    folder_digest: str
    candidate: Candidate
    case_ids: tuple[str, ...] = ()
    protocol: MeasureProtocol = MeasureProtocol()
    use_cache: bool = True

    @cached_property
    def digest(self) -> str:
        """Identity of the question (without the toolchain, which the daemon adds)."""
        return digest_of(
            "request",
            self.version,
            self.op_id,
            self.folder_digest,
            self.candidate.digest,
            self.case_ids,
            self.protocol,
        )


class Phase(str, Enum):
    """Where in the pipeline something happened."""

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
    """One message that a person or an agent can act on.

    Lone surrogates, which a compiler may quote from a source, are replaced by U+FFFD.

    Attributes:
        phase: where it happened.
        message: what was expected, what came, what to do.
        call: the Ascend C call concerned, for example ``DataCopy(GM->UB)``.
        file: source path relative to the operator folder.
        line: one-based line in ``file``.
        block_idx: the block (core) on which it happened.
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
        return None if value is None else well_formed(value)

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}: " if self.file and self.line else ""
        call = f"{self.call}: " if self.call else ""
        block = f" (block {self.block_idx})" if self.block_idx is not None else ""
        return f"[{self.phase.value}] {where}{call}{self.message}{block}"


class Profile(Record):
    """Where the time of one launch went, in the field names of msprof.

    Times are in microseconds and averaged over the blocks; a ratio is that time over ``aiv_time``.
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


class Launch(Record):
    """What the tiling program decided for one case."""

    block_dim: int = Field(ge=1)
    tiling_key: int = Field(ge=0)
    workspace_bytes: int = Field(ge=0)
    tiling_data_bytes: int = Field(ge=0)


class Accuracy(Record):
    """How far the outputs are from the reference."""

    max_abs_error: float
    max_rel_error: float
    bad_share: float
    upstream_rule_passes: bool


class CaseResult(Record):
    """Outcome of one case; the status fixes which fields exist."""

    case_id: str
    status: Status
    samples_us: tuple[float, ...] = ()
    launch: Launch | None = None
    profile: Profile | None = None
    accuracy: Accuracy | None = None
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
        """Median of the samples in microseconds, or ``None`` if the case did not succeed."""
        if not self.samples_us:
            return None
        ordered = sorted(self.samples_us)
        middle = len(ordered) // 2
        return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


class PhaseSeconds(Record):
    """Wall seconds that an evaluation took, by phase."""

    queue: float = 0.0
    build: float = 0.0
    run: float = 0.0
    verify: float = 0.0
    price: float = 0.0
    total: float = 0.0


class DeviceInfo(Record):
    """What measured a result."""

    backend: str
    chip: str
    toolchain_digest: str
    sandbox: str
    host: str


class Charge(Record):
    """What an evaluation costs the budget."""

    evaluations: int = Field(default=0, ge=0)
    device_seconds: float = Field(default=0.0, ge=0)


class Lease(Record):
    """A job handed to a worker, until ``deadline_s`` on the broker's monotonic clock."""

    request_id: str
    attempt: int = Field(ge=1)
    worker_id: str
    deadline_s: float


class EvalResult(Record):
    """The answer to an ``EvalRequest``; ``ok`` exactly when every case is."""

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

    @property
    def latency_us(self) -> float | None:
        """Geometric mean over the cases of their latencies in microseconds; ``None`` unless ok."""
        if self.status is not Status.OK:
            return None
        logs = [math.log(case.latency_us) for case in self.cases if case.latency_us]
        return math.exp(math.fsum(logs) / len(logs))

    @property
    def mean_profile(self) -> dict[str, float] | None:
        """Each field of the profile, averaged over the cases; ``None`` when nothing was measured."""
        profiles = [case.profile for case in self.cases if case.profile is not None]
        if not profiles:
            return None
        return {name: fmean(getattr(each, name) for each in profiles) for name in Profile.model_fields}


def failed_result(request: EvalRequest, status: Status, diagnostic: Diagnostic, **fields: Any) -> EvalResult:
    """Build the result of a request that ended before any case could."""
    return EvalResult(
        request_digest=request.digest,
        candidate_digest=request.candidate.digest,
        status=status,
        diagnostics=(diagnostic,),
        charge=Charge(evaluations=1 if rule_of(status).charged else 0),
        **fields,
    )
