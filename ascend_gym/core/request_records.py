"""Operators, their cases, and candidates."""

from __future__ import annotations

import math
import re
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from ascend_gym.core.digest import digest_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typing_extensions import Self

RECORD_VERSION = 1

_PATH_PART = re.compile(
    r"[A-Za-z0-9_.][A-Za-z0-9_.+-]*\Z"
)  # compilers and build scripts are given these names
_MAX_PATH_CHARS = 200

AttributeValue = bool | int | float | str | tuple[int, ...] | tuple[float, ...]


class Record(BaseModel):
    """Base class of all records: frozen, and without unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy with the fields in ``update`` replaced; cached properties are recomputed."""
        copied = super().model_copy(update=update, deep=deep)
        for name in copied.__dict__.keys() - type(self).model_fields.keys():
            del copied.__dict__[name]
        return copied


class Convention(str, Enum):
    """What a measured launch finds in the caches; the same on a device and in the simulator.

    COLD: the first launch of a kernel: neither code nor data anywhere but in HBM, cores not yet started.
    L2_COLD: other kernels ran before: none of its data in L2 and no code in instruction caches. On a
        device, data larger than L2 are written between launches.
    WARM: the launch follows one of the same kernel on the same tensors, with nothing in between.
    """

    COLD = "cold"
    L2_COLD = "l2-cold"
    WARM = "warm"


class DType(str, Enum):
    """Element types of tensors, by their numpy names."""

    FLOAT16 = "float16"
    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"
    INT4 = "int4"
    INT8 = "int8"
    UINT8 = "uint8"
    INT16 = "int16"
    UINT16 = "uint16"
    INT32 = "int32"
    UINT32 = "uint32"
    INT64 = "int64"
    UINT64 = "uint64"
    BOOL = "bool"
    FLOAT64 = "float64"
    COMPLEX64 = "complex64"

    @property
    def bits(self) -> int:
        """Size of one element in bits."""
        return _BITS[self]

    def size_bytes(self, count: int) -> int:
        """Return the size of ``count`` elements in bytes; two int4 elements share a byte."""
        return -(-count * self.bits // 8)

    @property
    def is_floating(self) -> bool:
        """Whether elements are floating-point numbers or pairs of them."""
        return self in (DType.FLOAT16, DType.FLOAT32, DType.BFLOAT16, DType.FLOAT64, DType.COMPLEX64)


_BITS = {
    DType.FLOAT16: 16,
    DType.FLOAT32: 32,
    DType.BFLOAT16: 16,
    DType.INT4: 4,
    DType.INT8: 8,
    DType.UINT8: 8,
    DType.INT16: 16,
    DType.UINT16: 16,
    DType.INT32: 32,
    DType.UINT32: 32,
    DType.INT64: 64,
    DType.UINT64: 64,
    DType.BOOL: 8,
    DType.FLOAT64: 64,
    DType.COMPLEX64: 64,
}


class Injection(Record):
    """A value that replaces some elements of a random input.

    Attributes:
        value: NaN, an infinity, zero, or any other number.
        share: share of the elements, rounded up to at least one; the seed determines which.
    """

    value: int | float
    share: float = Field(gt=0, le=1)


class SpecialRows(Record):
    """What some rows of a random input consist of.

    ``affine`` is the ordinary row, times ``scale``, plus ``offset``; the other kinds apply these first.
    ``equal`` repeats the first element of the row; ``ties`` repeats its first ``count`` ones in any order.
    ``one`` puts one of ``values`` at one place: the first, the last or any. ``some`` puts them at a
    ``share`` of the places. ``ends`` draws from the lowest and the highest number of the range.

    Attributes:
        kind: one of these.
        scale: see above.
        offset: see above.
        count: see ``ties``.
        values: see ``one`` and ``some``.
        share: see ``some``.
    """

    kind: Literal["affine", "equal", "ties", "one", "some", "ends"]
    scale: float = Field(default=1.0, exclude_if=lambda value: value == 1.0)
    offset: float = Field(default=0.0, exclude_if=lambda value: not value)
    count: int = Field(default=2, ge=1, exclude_if=lambda value: value == 2)
    values: tuple[int | float, ...] = Field(default=(), exclude_if=lambda value: not value)
    share: float = Field(default=1.0, gt=0, le=1, exclude_if=lambda value: value == 1.0)

    @model_validator(mode="after")
    def _has_what_it_needs(self) -> SpecialRows:
        if (self.kind in ("one", "some")) != bool(self.values):
            raise ValueError(f"'values' belongs to the kinds 'one' and 'some', and those need it; got {self}")
        return self


class ValueRange(Record):
    """How the elements of an input are generated.

    ``uniform`` draws from [low, high]; ``normal`` has mean ``low`` and standard deviation ``high``;
    ``integers`` draws whole numbers from [low, high]; ``permutation`` shuffles 0..n-1; ``fixed`` and ``file``
    are not random.

    Attributes:
        kind: one of these.
        low: see above.
        high: see above.
        distinct: maximum number of different values, so that elements tie; 0 for no limit.
        inject: values that replace some elements afterwards, in this order.
        contents: for ``fixed``: all elements in row-major order, or one value for all. Lists of tensors
            are concatenated; complex numbers alternate real and imaginary parts.
        file: for ``file``: path relative to the folder of the ``op.toml``. ``{index}`` is replaced by the
            position in a list of tensors, ``{variant}`` by 0, 1 and so on, chosen by the seed.
        rows: special kinds of rows, which the rows take in turn with the ordinary one, in random order.
        axes: that a row extends over, the last one by default; none where each element is a row.
        groups: equal parts that the first of ``axes`` is divided into, each with rows of its own.
    """

    kind: Literal["uniform", "normal", "integers", "permutation", "fixed", "file"] = "uniform"
    low: float = -1.0
    high: float = 1.0
    distinct: int = Field(default=0, ge=0, exclude_if=lambda value: not value)
    inject: tuple[Injection, ...] = Field(default=(), exclude_if=lambda value: not value)
    contents: tuple[int | float, ...] = Field(default=(), exclude_if=lambda value: not value)
    file: str = Field(default="", exclude_if=lambda value: not value)
    rows: tuple[SpecialRows, ...] = Field(default=(), exclude_if=lambda value: not value)
    axes: tuple[int, ...] = Field(default=(-1,), exclude_if=lambda value: value == (-1,))
    groups: int = Field(default=1, ge=1, exclude_if=lambda value: value == 1)

    @field_validator("contents", mode="before")
    @classmethod
    def _flatten(cls, contents: Any) -> Any:
        """Flatten nested lists, such as rows; accept a single number for all elements."""
        if isinstance(contents, int | float):
            return (contents,)
        while isinstance(contents, list) and any(isinstance(each, list) for each in contents):
            contents = [part for each in contents for part in (each if isinstance(each, list) else [each])]
        return contents

    @property
    def is_random(self) -> bool:
        """Whether elements depend on the seed."""
        return self.kind not in ("fixed", "file") or self.has_variants or bool(self.inject or self.rows)

    @property
    def has_variants(self) -> bool:
        """Whether there are several data files to choose from."""
        return "{variant}" in self.file

    def file_of(self, index: int, variant: int) -> str:
        """Return the path of a data file.

        Args:
            index: position of the tensor in a list of tensors.
            variant: number of the variant.
        """
        return self.file.replace("{index}", str(index)).replace("{variant}", str(variant))


class TensorSpec(Record):
    """One input or output of a case.

    Attributes:
        name: parameter name as in the operator definition.
        dtype: element type.
        shapes: one shape for a plain tensor, several for a list ("dynamic") parameter.
        dynamic: whether the parameter is a list of tensors.
        values: how an input is generated; ignored for outputs.
        optional_absent: an optional input that the case omits (passed as a null pointer).
        open: an output without a reference: it is not compared, and a kernel need not write it.
    """

    name: str
    dtype: DType
    shapes: tuple[tuple[int, ...], ...]
    dynamic: bool = False
    values: ValueRange = ValueRange()
    optional_absent: bool = False
    open: bool = Field(default=False, exclude_if=lambda value: not value)

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
        return sum(self.dtype.size_bytes(math.prod(shape)) for shape in self.shapes)


class Tolerance(Record):
    """Numerical agreement that a verdict requires, per output dtype.

    An element is bad if ``|real - expected| > atol + rtol * |expected|``; the output is accepted if at
    most ``max_bad_share`` of its elements are bad and no bad element exceeds its bound more than ``10 x``.
    """

    atol: float = Field(ge=0, allow_inf_nan=False)
    rtol: float = Field(ge=0, allow_inf_nan=False)
    max_bad_share: float = Field(default=0.0, ge=0, lt=1)


class FrameworkCall(Record):
    """One framework call that computes part of an operator, with the bytes that it moves.

    Attributes:
        name: called function.
        fresh_bytes: bytes of inputs that no earlier call has read, so that they come from HBM.
        read_bytes: bytes of all its inputs.
        written_bytes: bytes that it writes.
    """

    name: str
    fresh_bytes: int = Field(ge=0)
    read_bytes: int = Field(ge=0)
    written_bytes: int = Field(ge=0)


class Case(Record):
    """One concrete problem: shapes, dtypes, attributes and input values.

    Attributes:
        case_id: unique among the cases of an operator.
        inputs: input parameters in order.
        outputs: output parameters in order.
        attributes: attributes by name.
        tolerance: tolerance by output dtype.
        eager: for an operator without sources, the framework calls that compute it.
    """

    case_id: str
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    attributes: dict[str, AttributeValue] = {}
    tolerance: dict[DType, Tolerance] = {}
    eager: tuple[FrameworkCall, ...] = Field(default=(), exclude_if=lambda value: not value)

    @property
    def traffic_bytes(self) -> int:
        """Bytes of all inputs and outputs, which kernels of dense operators have to move at least."""
        return sum(tensor.size_bytes for tensor in (*self.inputs, *self.outputs))


class SourceFile(Record):
    """One source file; ``path`` is relative to the operator folder."""

    path: str
    text: str

    @field_validator("text")
    @classmethod
    def _is_utf8(cls, value: str) -> str:
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise ValueError("a source file is written as UTF-8: it has no lone surrogates") from error
        return value

    @field_validator("path")
    @classmethod
    def _stay_inside(cls, path: str) -> str:
        parts = path.split("/")
        if {".", ".."} & set(parts) or not all(map(_PATH_PART.match, parts)) or len(path) > _MAX_PATH_CHARS:
            raise ValueError(
                f"source path must stay inside the operator folder and have at most {_MAX_PATH_CHARS} "
                f"characters: letters, digits and '_.+-', neither '+' nor '-' first; got {path!r}"
            )
        return path


class Sources(Record):
    """Files of one side (host or kernel); ``main`` is the file that rewrites edit."""

    files: tuple[SourceFile, ...]
    main: str

    @model_validator(mode="after")
    def _main_exists(self) -> Sources:
        paths = [file.path for file in self.files]
        if len(set(paths)) != len(paths):
            raise ValueError(f"duplicate source paths: {paths}")
        if self.main not in paths:
            raise ValueError(f"main file {self.main!r} is not among {paths}")
        folders = {path[:end] for path in paths for end, mark in enumerate(path) if mark == "/"}
        if not folders.isdisjoint(paths):
            raise ValueError(
                f"source paths are both files and folders: {sorted(folders.intersection(paths))}"
            )
        return self

    @property
    def main_text(self) -> str:
        """Text of the main file."""
        return next(file.text for file in self.files if file.path == self.main)

    def with_main_text(self, text: str) -> Sources:
        """Return a copy with the text of the main file replaced."""
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
        """Text of the main host source, which tiling rewrites edit."""
        return self.host.main_text

    @property
    def kernel_text(self) -> str:
        """Text of the main kernel source, which kernel rewrites edit."""
        return self.kernel.main_text

    def rewritten(self, *, tiling: str | None = None, kernel: str | None = None) -> Candidate:
        """Return a copy with new main texts; ``None`` keeps the present one."""
        return Candidate(
            host=self.host if tiling is None else self.host.with_main_text(tiling),
            kernel=self.kernel if kernel is None else self.kernel.with_main_text(kernel),
            build_flags=self.build_flags,
        )


class DomainInput(Record):
    """What values of one input an operator has to be right for, beyond those of its cases.

    Attributes:
        name: of the input.
        dtype: element type that this is said of; ``None`` for every one.
        values: range in place of that of the case; ``None`` to keep it.
        rows: see ``ValueRange``.
        axes: see ``ValueRange``.
        groups: see ``ValueRange``; or the name of the attribute that says it.
    """

    name: str
    dtype: DType | None = None
    values: ValueRange | None = None
    rows: tuple[SpecialRows, ...] = ()
    axes: tuple[int, ...] = (-1,)
    groups: int | str = 1


class Domain(Record):
    """Values that an operator has to be right for; docs/own_operator.md tells how to declare them.

    Attributes:
        input: by input; the others are drawn as in the case.
        tolerance: in place of that of the case, by type of output.
        waived: mutants of the reference that the audit need not tell apart, with the reason of each.
    """

    input: tuple[DomainInput, ...] = ()
    tolerance: dict[DType, Tolerance] = {}
    waived: dict[str, str] = {}


class OpSpec(Record):
    """An operator of a suite: its identity, cases and baseline implementation.

    Attributes:
        op_id: ``suite/name``.
        op_type: CamelCase type as registered by OP_ADD.
        folder: absolute path of the operator folder on the host that loaded it.
        level: difficulty level, 1 to 3.
        category: kind of operator.
        description: one line for people and prompts.
        auto_sync: whether the operator is compiled with automatic synchronisation.
        reads_all_inputs: whether every element of every input affects the output, so that a kernel that
            leaves some unread cannot be correct.
        latency_depends_on_values: whether honest kernels do more work for some values than for others, as
            where indices choose what is read.
        shared_inputs: inputs whose values decide how much work there is, such as lengths of sequences. They
            are the same for all candidates, so that prices can be compared; those of the domain are not.
        cases: cases; the speedup is the geometric mean over them.
        hidden_cases: further cases that can be requested by id; prompts and searches do not see them.
        baseline: sources in the folder. For an operator without sources, a skeleton that represents the
            framework calls and has their price.
        reference: ``baseline`` when what these sources compute is what is expected: there is no other.
        folder_digest: digest of everything in the folder that affects a verdict.
        domain: values that it has to be right for; ``None`` where none are declared, so that they are those
            of its cases.
    """

    op_id: str
    op_type: str
    folder: str
    level: int = Field(ge=1, le=3)
    category: str
    description: str
    auto_sync: bool
    reads_all_inputs: bool = False
    latency_depends_on_values: bool = Field(default=False, exclude_if=lambda value: not value)
    shared_inputs: tuple[str, ...] = Field(default=(), exclude_if=lambda value: not value)
    cases: tuple[Case, ...] = Field(min_length=1)
    hidden_cases: tuple[Case, ...] = Field(default=(), exclude_if=lambda value: not value)
    baseline: Candidate
    reference: Literal["baseline"] | None = Field(default=None, exclude_if=lambda value: value is None)
    folder_digest: str
    domain: Domain | None = Field(default=None, exclude_if=lambda value: value is None)

    @model_validator(mode="after")
    def _unique_cases(self) -> OpSpec:
        ids = [case.case_id for case in (*self.cases, *self.hidden_cases)]
        if len(set(ids)) != len(ids):
            raise ValueError(f"{self.op_id}: duplicate case ids {ids}")
        return self

    @property
    def name(self) -> str:
        """Name without the suite."""
        return self.op_id.rpartition("/")[2]

    @property
    def has_sources(self) -> bool:
        """Whether there is an implementation to start from; if not, ``baseline`` is a skeleton."""
        return not self.cases[0].eager

    def case(self, case_id: str) -> Case:
        """Return the case with that id.

        Raises:
            KeyError: it does not exist; the message lists the ids.
        """
        for case in (*self.cases, *self.hidden_cases):
            if case.case_id == case_id:
                return case
        raise KeyError(f"{self.op_id} has no case {case_id!r}; cases: {[c.case_id for c in self.cases]}")
