"""Evaluation requests: candidate, operator (by name or sent as data), and measurement protocol."""

from __future__ import annotations

import base64
import binascii
import math
from functools import cached_property
from typing import Annotated

from pydantic import Field, field_validator, model_validator

from ascend_gym.core.digest import digest_of
from ascend_gym.core.request_records import (
    RECORD_VERSION,
    Candidate,
    Case,
    Convention,
    DType,
    Record,
    TensorSpec,
)

GIVEN_SUITE = "given"
MAX_TIMEOUT_S = 86_400.0
MAX_BYTES = 2**40
MAX_OPEN_BYTES = 2**28


class GivenArray(Record):
    """Elements of one tensor: little-endian bytes in base64, possibly of a wider type than the tensor's."""

    dtype: DType
    data: str

    @field_validator("data")
    @classmethod
    def _is_base64(cls, data: str) -> str:
        try:
            base64.b64decode(data, validate=True)
        except (binascii.Error, ValueError) as error:
            raise ValueError(f"the elements of a given tensor are sent in base64: {error}") from error
        return data

    @property
    def raw(self) -> bytes:
        """The decoded bytes."""
        return base64.b64decode(self.data)


class GivenCase(Record):
    """A case with its data: the arrays of each parameter; empty for parameters that are absent or open."""

    case: Case
    inputs: tuple[tuple[GivenArray, ...], ...]
    expected: tuple[tuple[GivenArray, ...], ...]

    @model_validator(mode="after")
    def _sizes_fit(self) -> GivenCase:
        for tensors, groups in ((self.case.inputs, self.inputs), (self.case.outputs, self.expected)):
            if len(tensors) != len(groups):
                raise ValueError(f"{self.case.case_id}: data of {len(groups)} parameters for {len(tensors)}")
            for tensor, arrays in zip(tensors, groups, strict=True):
                self._check(tensor, arrays)
        if any(
            array.dtype is not tensor.dtype
            for tensor, arrays in zip(self.case.inputs, self.inputs, strict=True)
            for array in arrays
        ):
            raise ValueError(f"{self.case.case_id}: inputs are given in the types of the case")
        return self

    def _check(self, tensor: TensorSpec, arrays: tuple[GivenArray, ...]) -> None:
        if tensor.open and tensor.size_bytes > MAX_OPEN_BYTES:
            raise ValueError(f"{self.case.case_id}: {tensor.name} has more than {MAX_OPEN_BYTES} bytes")
        shapes = () if tensor.optional_absent or tensor.open else tensor.shapes
        wanted = [math.prod(shape) for shape in shapes]
        wanted_bytes = [tensor.dtype.size_bytes(count) for count in wanted]
        found_bytes = [len(array.raw) for array in arrays]
        if found_bytes != wanted_bytes:
            expected = f"expected {wanted} elements, {wanted_bytes} bytes, of {tensor.name}"
            raise ValueError(f"{self.case.case_id}: {expected}, got {found_bytes} bytes")


class GivenOperator(Record):
    """An operator sent as data because the daemon does not have it; only the candidate is executed."""

    op_type: str
    auto_sync: bool
    reads_all_inputs: bool = False
    cases: tuple[GivenCase, ...] = Field(min_length=1)

    @cached_property
    def digest(self) -> str:
        """Identity of the operator and its data."""
        return digest_of("given operator", self)


class MeasureProtocol(Record):
    """How an evaluation is carried out; part of the identity of its result.

    Attributes:
        chip: chip to measure or simulate.
        input_seed: seed of the input data.
        repeats: number of samples per latency.
        noise: relative spread of simulated samples, for research on noisy rewards; 0 for exact samples.
        noise_seed: seed of that noise.
        build_timeout_s: limit of each build.
        run_timeout_s: limit of the run of one case.
        memory_limit_bytes: memory of a candidate's process.
        output_limit_bytes: bytes that such a process may write.
        convention: what each launch finds in the caches. The default is what a kernel meets in a model,
            between others, and a kernel is not paid for data that it left in L2 itself.
        stalls: whether to find out what pipes wait for by line of the source, which takes a second run.
    """

    chip: str = "910B2"
    input_seed: int = 0
    repeats: int = Field(default=1, ge=1, le=10_000)
    noise: float = Field(default=0.0, ge=0, le=1)
    noise_seed: int = 0
    build_timeout_s: float = Field(default=60.0, gt=0, le=MAX_TIMEOUT_S)
    run_timeout_s: float = Field(default=20.0, gt=0, le=MAX_TIMEOUT_S)
    memory_limit_bytes: int = Field(default=4 * 2**30, gt=0, le=MAX_BYTES)
    output_limit_bytes: int = Field(default=2 * 2**30, gt=0, le=MAX_BYTES)
    convention: Convention = Field(
        default=Convention.L2_COLD, exclude_if=lambda value: value is Convention.L2_COLD
    )
    stalls: bool = Field(default=False, exclude_if=lambda value: not value)


Name = Annotated[str, Field(max_length=1000)]
"""A name or a digest: what a daemon logs, compares and repeats has a length."""


class EvalRequest(Record):
    """A client's request for an evaluation.

    Attributes:
        op_id: operator, resolved on the daemon's host.
        op_folder: absolute operator folder on the daemon's host, for operators outside installed suites.
        folder_digest: the client's digest of the folder; a daemon whose folder has another digest refuses.
        given: the operator as data, named ``given/NAME``; ``folder_digest`` is then that of the data.
        candidate: candidate to evaluate.
        case_ids: cases to evaluate; empty means all.
        protocol: how to measure.
        use_cache: whether the result may come from the cache, or from an equal request in flight.
        priority: order among the requests of one tenant, highest first; does not change the result.
    """

    version: int = RECORD_VERSION
    op_id: Name
    op_folder: str | None = Field(default=None, max_length=4096)
    folder_digest: Name
    candidate: Candidate
    case_ids: tuple[Name, ...] = ()
    protocol: MeasureProtocol = MeasureProtocol()
    use_cache: bool = True
    priority: int = Field(default=0, ge=-100, le=100)
    given: GivenOperator | None = Field(default=None, exclude_if=lambda value: value is None)

    @model_validator(mode="after")
    def _given_is_what_is_asked(self) -> EvalRequest:
        if self.op_id.startswith(f"{GIVEN_SUITE}/") != (self.given is not None):
            raise ValueError(
                f"{self.op_id}: operators of the name {GIVEN_SUITE}/... are sent as data, and others not"
            )
        if self.given is not None and (self.op_folder, self.folder_digest) != (None, self.given.digest):
            raise ValueError(f"{self.op_id}: folder_digest is that of the data, and there is no folder")
        return self

    @cached_property
    def digest(self) -> str:
        """Identity of the request, without the toolchain, which the daemon adds."""
        return digest_of(
            "request",
            self.version,
            self.op_id,
            self.folder_digest,
            self.candidate.digest,
            self.case_ids,
            self.protocol,
        )
