"""``op.toml``: cases, domain, tolerances and labels of an operator folder, read strictly."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from ascend_gym.core.errors import OperatorFormatError
from ascend_gym.core.records import AttributeValue, Case, Domain, DType, TensorSpec, Tolerance, ValueRange
from ascend_gym.core.toml_file import explained, read_toml
from ascend_gym.suite.domain import check_domain
from ascend_gym.suite.value_checks import UNSIGNED, check_values

MANIFEST_NAME = "op.toml"
FORMAT = 1
_Shape = tuple[Annotated[int, Field(ge=0)], ...]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class OperatorSection(_Section):
    """The ``[operator]`` table.

    Attributes:
        type: CamelCase type as registered by ``OP_ADD``.
        level: difficulty level, 1 to 3.
        category: what kind of operator it is.
        description: one line for people and prompts.
        auto_sync: whether the operator is compiled with automatic synchronisation.
        reads_all_inputs: false for operators that pick from their inputs, such as gather.
        latency_depends_on_values: true where kernels do more work for some values than for others, as where
            indices choose what is read; every case is then measured on values of the candidate's own.
        shared_inputs: see ``OpSpec``.
        tiling: main host file relative to the folder; found by rule when left out.
        kernel: main kernel file relative to the folder; found by rule when left out.
        sources: where the sources lie when not beside the manifest: ``cann-ops:CATEGORY/OPERATOR``,
            ``ops-nn:...``.
        reference: ``baseline`` when what the operator's own sources compute is what is expected.
        sources_digest: digest of those sources or how it begins; others are refused.
    """

    type: str
    level: int = Field(ge=1, le=3)
    category: str
    description: str
    auto_sync: bool = True
    reads_all_inputs: bool = True
    latency_depends_on_values: bool = False
    shared_inputs: tuple[str, ...] = ()
    tiling: str | None = None
    kernel: str | None = None
    sources: str | None = Field(default=None, pattern=r"^[a-z0-9-]+:[a-z0-9_]+(/[a-z0-9_]+)+$")
    reference: Literal["baseline"] | None = None
    sources_digest: str | None = Field(default=None, pattern=r"^[0-9a-f]{12,64}$")


class _TensorEntry(_Section):
    name: str
    dtype: DType
    shape: _Shape | None = None
    shapes: tuple[_Shape, ...] | None = None

    @model_validator(mode="after")
    def _one_of_shape_and_shapes(self) -> _TensorEntry:
        if (self.shape is None) == (self.shapes is None):
            raise ValueError("give exactly one of 'shape' (plain tensor) and 'shapes' (list of tensors)")
        return self

    def spec(self, **fields: Any) -> TensorSpec:
        if self.shapes is not None:
            return TensorSpec(name=self.name, dtype=self.dtype, shapes=self.shapes, dynamic=True, **fields)
        return TensorSpec(name=self.name, dtype=self.dtype, shapes=(self.shape or (),), **fields)


class _InputEntry(_TensorEntry):
    values: ValueRange = ValueRange()
    optional_absent: bool = False

    @model_validator(mode="after")
    def _values_can_be_drawn(self) -> _InputEntry:
        if "values" in self.model_fields_set:
            check_values(self.values, self.dtype, self.shapes or (self.shape or (),))
        return self

    def spec(self, **fields: Any) -> TensorSpec:
        """Return the record; whole numbers that may not be negative are drawn from 0 and 1 unless said."""
        values = self.values
        if self.dtype in UNSIGNED and "values" not in self.model_fields_set:
            values = ValueRange(kind="integers", low=0, high=1)
        return super().spec(values=values, optional_absent=self.optional_absent, **fields)


class _OutputEntry(_TensorEntry):
    open: bool = False
    values: ValueRange | None = None

    @model_validator(mode="after")
    def _values_are_a_file(self) -> _OutputEntry:
        if self.values is not None:
            if self.values.kind != "file":
                raise ValueError("values: those of an output are a data file, { kind = 'file', file = ... }")
            check_values(self.values, self.dtype, self.shapes or (self.shape or (),))
        return self

    def spec(self, **fields: Any) -> TensorSpec:
        if self.values is not None:
            fields["values"] = self.values
        return super().spec(open=self.open, **fields)


class _CaseEntry(_Section):
    id: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.+-]*$", max_length=100)
    attributes: dict[str, AttributeValue] = {}
    input: tuple[_InputEntry, ...] = ()
    output: tuple[_OutputEntry, ...] = Field(min_length=1)


class Manifest(_Section):
    """The content of an ``op.toml``; ``format`` is the version of what its keys mean."""

    format: int = FORMAT
    operator: OperatorSection
    tolerance: dict[DType, Tolerance] = {}
    domain: Domain | None = None
    case: tuple[_CaseEntry, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _format_is_known(self) -> Manifest:
        if self.format != FORMAT:
            raise ValueError(f"format: this version of ascend-gym reads format {FORMAT}, got {self.format}")
        return self

    @model_validator(mode="after")
    def _names_differ(self) -> Manifest:
        for what, names in (
            ("case", [entry.id for entry in self.case]),
            *((f"input of case {entry.id!r}", [each.name for each in entry.input]) for entry in self.case),
            *((f"output of case {entry.id!r}", [each.name for each in entry.output]) for entry in self.case),
        ):
            twice = sorted({name for name in names if names.count(name) > 1})
            if twice:
                raise ValueError(f"{what}: {', '.join(twice)} occurs more than once")
        return self

    @model_validator(mode="after")
    def _floating_outputs_have_a_tolerance(self) -> Manifest:
        for entry in self.case:
            for output in entry.output:
                if output.dtype.is_floating and not output.open and output.dtype not in self.tolerance:
                    raise ValueError(
                        f"case {entry.id!r} has a {output.dtype.value} output {output.name!r}: "
                        f"add a [tolerance.{output.dtype.value}] table with atol and rtol"
                    )
        return self

    @model_validator(mode="after")
    def _domain_fits_cases(self) -> Manifest:
        if self.domain is not None:
            check_domain(self.domain, self.cases())
        return self

    @property
    def has_all_outputs(self) -> bool:
        """Whether every output is open or has a data file, so that no reference is needed."""
        return all(output.open or output.values for entry in self.case for output in entry.output)

    def cases(self) -> tuple[Case, ...]:
        """Return the cases as core records."""
        return tuple(
            Case(
                case_id=entry.id,
                inputs=tuple(tensor.spec() for tensor in entry.input),
                outputs=tuple(tensor.spec() for tensor in entry.output),
                attributes=entry.attributes,
                tolerance=self.tolerance,
            )
            for entry in self.case
        )


def read_manifest(path: Path) -> Manifest:
    """Read and check an ``op.toml``.

    Raises:
        OperatorFormatError: the file is unreadable, is not TOML, or has a missing, wrong or unknown key;
            the message names the file and the key.
    """
    try:
        content = read_toml(path)
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise OperatorFormatError(f"{path}: cannot be read as TOML: {error}") from error
    try:
        manifest = Manifest.model_validate(content)
        manifest.cases()
    except ValidationError as error:
        raise OperatorFormatError(explained(path, text, error, Manifest)) from error
    return manifest
