"""Cases of an operator of a library, from its own tests and examples.

In this order: csv and json files below tests/st, aclnn examples, which run once, graph examples and tests of
the tiling function, which are read. Each source yields proposals; what a row says in a way that is not
understood is told with its file and line.
"""

from __future__ import annotations

import ast
import csv
import dataclasses
import json
import math
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ascend_gym.core.errors import OperatorFormatError
from ascend_gym.core.records import AttributeValue, DType
from ascend_gym.core.remove_tree import remove_tree
from ascend_gym.suite.cann_opdef import AttributeDef, OperatorDef, ParameterDef
from npu_daemon.importer.binding import bind
from npu_daemon.importer.library_texts import Draft, Row, faked_contexts, graph_example, tiling_tests
from npu_daemon.importer.record import CallArgument, record_call, recorder_program

Shapes = tuple[tuple[int, ...], ...]
Note = Callable[[str], None]

MAX_CASE_BYTES = 12 << 20  # of all tensors of a case, which is also written to disk
_GOOD_BYTES = (256 << 10, 3 << 20)  # outside, launches or memory weigh most
_MAX_ROWS = 400  # of one file
_DTYPES = {
    "float16": DType.FLOAT16, "fp16": DType.FLOAT16, "half": DType.FLOAT16,
    "float32": DType.FLOAT32, "float": DType.FLOAT32, "fp32": DType.FLOAT32,
    "bfloat16": DType.BFLOAT16, "bf16": DType.BFLOAT16,
    "float64": DType.FLOAT64, "double": DType.FLOAT64, "fp64": DType.FLOAT64,
    "int8": DType.INT8, "uint8": DType.UINT8, "int16": DType.INT16, "uint16": DType.UINT16,
    "int32": DType.INT32,
    "uint32": DType.UINT32, "int64": DType.INT64, "uint64": DType.UINT64, "bool": DType.BOOL,
    "int4": DType.INT4,
    "complex64": DType.COMPLEX64,
}  # fmt: skip
_PLAIN_FORMATS = frozenset({"ND", "NCHW", "NHWC", "NCDHW", "NDHWC", "NCL", "NC", "HWCN", "DHWCN"})


@dataclass(frozen=True)
class ProposedTensor:
    """A tensor of a proposal: ``None`` for absent or unknown shapes; ``low`` and ``high`` of its values."""

    shapes: Shapes | None
    dtype: DType | None
    low: float | None = None
    high: float | None = None
    values: tuple[Any, ...] = ()


@dataclass(frozen=True)
class CaseDraft:
    """A case that the operator's tests propose, in the order of its definition.

    Attributes:
        where: file and line.
        inputs: one for each input parameter.
        outputs: one for each output parameter; empty when the tests do not say.
        attributes: by name.
        tolerances: relative bound and share of bad elements by output, where said.
        atol: absolute bound, where said.
    """

    where: str
    inputs: tuple[ProposedTensor, ...]
    outputs: tuple[ProposedTensor, ...]
    attributes: dict[str, AttributeValue]
    tolerances: tuple[tuple[float, float], ...] = ()
    atol: float = 0.0
    formats: tuple[str, ...] = field(default=())

    @property
    def size_bytes(self) -> int:
        """Bytes of all tensors."""
        tensors = [
            each
            for each in (*self.inputs, *self.outputs)
            if each.shapes is not None and each.dtype is not None
        ]
        return sum(sum(map(math.prod, each.shapes or ())) * _element_bytes(each.dtype) for each in tensors)

    @property
    def column(self) -> tuple[DType | None, ...]:
        """Types of its inputs."""
        return tuple(each.dtype for each in self.inputs)


def _element_bytes(dtype: DType | None) -> int:
    from ascend_gym.suite.inputs import numpy_dtype

    return int(numpy_dtype(dtype).itemsize) if dtype is not None else 0


def proposals(
    folder: Path, definition: OperatorDef, note: Note, *, with_outputs: bool = False
) -> list[CaseDraft]:
    """Return the cases that the tests of an operator propose and the 910B supports, the best first.

    The sources are asked in order until one has any.

    Args:
        folder: of the operator.
        definition: of the operator.
        note: called with what is not understood.
        with_outputs: whether only cases that say the shapes of all required outputs count.
    """
    for source in (_from_csv, _from_json, _from_examples, _from_graph_examples, _from_tiling_tests):
        found = [
            each
            for each in source(folder, definition, note)
            if _fits(each, definition, note) and (not with_outputs or _says_outputs(each, definition))
        ]
        if found:
            return _ordered(found)
    return []


def _says_outputs(proposal: CaseDraft, definition: OperatorDef) -> bool:
    return bool(proposal.outputs) and all(
        said.shapes is not None or parameter.optional
        for parameter, said in zip(definition.outputs, proposal.outputs, strict=True)
    )


def _ordered(found: Sequence[CaseDraft]) -> list[CaseDraft]:
    """Return different proposals: one of each choice of types, then one of each shape, good sizes first."""
    low, high = _GOOD_BYTES

    def distance(each: CaseDraft) -> float:
        size = max(each.size_bytes, 1)
        return max(math.log(low / size), math.log(size / high), 0.0)

    ranked = sorted(found, key=lambda each: round(distance(each), 1))
    seen_columns: dict[tuple[Any, ...], int] = {}
    order = []
    for number, each in enumerate(ranked):
        turn = seen_columns.get(each.column, 0)
        seen_columns[each.column] = turn + 1
        order.append((turn, number, each))
    distinct: dict[Any, CaseDraft] = {}
    for _, _, each in sorted(order, key=lambda row: row[:2]):
        distinct.setdefault((each.column, tuple(t.shapes for t in each.inputs), str(each.attributes)), each)
    return list(distinct.values())


def _fits(proposal: CaseDraft, definition: OperatorDef, note: Note) -> bool:
    special = [each for each in proposal.formats if each not in _PLAIN_FORMATS]
    if special:
        note(f"{proposal.where}: has the format {special[0]}, which cases cannot hold")
        return False
    if proposal.size_bytes > MAX_CASE_BYTES:
        note(f"{proposal.where}: has {proposal.size_bytes >> 20} MiB, cases at most {MAX_CASE_BYTES >> 20}")
        return False
    unset = [
        each.name for each in definition.attributes if each.required and each.name not in proposal.attributes
    ]
    if unset:
        note(f"{proposal.where}: does not say the attributes {unset}, which have no default")
        return False
    columns = max((len(each.dtypes) for each in definition.inputs), default=0)
    for column in range(columns):
        if all(
            tensor.dtype is None
            or not parameter.dtypes
            or parameter.dtypes[min(column, len(parameter.dtypes) - 1)] == tensor.dtype
            for parameter, tensor in zip(definition.inputs, proposal.inputs, strict=True)
        ):
            return True
    if columns:
        given = ", ".join("none" if each is None else each.value for each in proposal.column)
        note(f"{proposal.where}: its types ({given}) are in no column of the definition for this chip")
    return columns == 0


def output_dtypes(definition: OperatorDef, proposal: CaseDraft) -> list[DType | None]:
    """Return the types of the outputs in the column of the definition that a proposal's inputs are in.

    Of several such columns it is the first whose outputs have the types that the proposal says, if one does.
    """
    columns = max((len(each.dtypes) for each in definition.inputs), default=0)
    said = [each.dtype for each in proposal.outputs]
    fitting = []
    for column in range(max(columns, 1)):  # types that follow others are said by the case alone
        if all(
            tensor.dtype is None
            or not parameter.dtypes
            or parameter.dtypes[min(column, len(parameter.dtypes) - 1)] == tensor.dtype
            for parameter, tensor in zip(definition.inputs, proposal.inputs, strict=True)
        ):
            own = [
                parameter.dtypes[min(column, len(parameter.dtypes) - 1)] if parameter.dtypes else None
                for parameter in definition.outputs
            ]
            fitting.append(own)
    if not fitting:
        return [None for _ in definition.outputs]
    if len(said) != len(definition.outputs):
        return fitting[0]
    agreeing = [
        own
        for own in fitting
        if all(None in (mine, theirs) or mine == theirs for mine, theirs in zip(own, said, strict=True))
    ]
    chosen = (agreeing or fitting)[0]
    return [mine if mine is not None else theirs for mine, theirs in zip(chosen, said, strict=True)]


# --- csv ---


def _from_csv(folder: Path, definition: OperatorDef, note: Note) -> Iterator[CaseDraft]:
    for path in sorted((folder / "tests" / "st").glob("**/*.csv")):
        where = path.relative_to(folder).as_posix()
        try:
            text = path.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            note(f"{where}: cannot be read: {error}")
            continue
        reader = csv.DictReader(text.splitlines())
        if "input_shapes" not in (reader.fieldnames or ()):
            continue
        try:
            for number, row in enumerate(reader):
                if number >= _MAX_ROWS:
                    break
                line = f"{where}:{reader.line_num}"
                try:
                    proposal = _csv_row(row, definition, line)
                except (ValueError, SyntaxError, TypeError, KeyError, MemoryError, RecursionError) as error:
                    note(f"{line}: {type(error).__name__}: {error}")
                    continue
                if proposal is not None:
                    yield proposal
        except csv.Error as error:
            note(f"{where}:{reader.line_num}: {error}")


def _csv_row(row: dict[str, str], definition: OperatorDef, where: str) -> CaseDraft | None:
    chips = row.get("soc_series") or ""
    if (row.get("is_enabled") or "1").strip().lower() in ("0", "false") or (
        chips.strip("() ") and "910B" not in chips
    ):
        return None
    shapes, dtypes = _cell(row, "input_ori_shapes") or _cell(row, "input_shapes"), _cell(row, "input_dtypes")
    if _cell(row, "input_shapes") is not None:
        shapes = _cell(row, "input_shapes")
    ranges = _cell(row, "input_data_ranges") or ()
    inputs = _tensors(definition.inputs, shapes, dtypes, ranges, "input")
    outputs = (
        _tensors(definition.outputs, _cell(row, "output_shapes"), _cell(row, "output_dtypes"), (), "output")
        if row.get("output_shapes") and row.get("output_dtypes")
        else ()
    )
    given = _cell(row, "attributes") or {}
    if not isinstance(given, dict):
        raise ValueError(f"attributes: expected a dictionary, got {row['attributes'][:60]!r}")
    bounds = _cell(row, "precision_tolerances") or ()
    tolerances = tuple(
        (float(each[0]), float(each[1]))
        for each in bounds
        if isinstance(each, tuple) and len(each) == 2 and all(isinstance(one, (int, float)) for one in each)
    )
    atol = row.get("absolute_precision") or ""
    formats = tuple(
        str(each)
        for each in _flat((_cell(row, "input_formats") or (), _cell(row, "output_formats") or ()))
        if each
    )
    return CaseDraft(
        where,
        inputs,
        outputs,
        attributes_of(definition.attributes, given),
        tolerances,
        float(atol) if _is_number(atol) else 0.0,
        formats,
    )


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, (tuple, list)):
        for each in value:
            yield from _flat(each)
    else:
        yield value


def _cell(row: dict[str, str], name: str) -> Any:
    text = re.sub(r"-?\b(?:inf|nan)\b", "None", (row.get(name) or "").strip())
    return ast.literal_eval(text) if text else None


def _tensors(
    parameters: Sequence[ParameterDef], shapes: Any, dtypes: Any, ranges: Any, what: str
) -> tuple[ProposedTensor, ...]:
    """Return the tensors of one side; what the lists leave out at the end is an absent optional.

    Raises:
        ValueError: the lists do not fit the parameters.
    """
    shapes, dtypes = tuple(shapes or ()), dtypes if isinstance(dtypes, (tuple, list)) else (dtypes,)
    if len(shapes) > len(parameters):
        raise ValueError(f"{len(shapes)} {what}s, the definition has {len(parameters)}")
    found = []
    for number, parameter in enumerate(parameters):
        shape = shapes[number] if number < len(shapes) else None
        if shape is None or number >= len(dtypes) or dtypes[number] is None:
            if shape is not None or not (parameter.optional or what == "output"):
                raise ValueError(f"{what} {parameter.name} has no shape or type")
            found.append(ProposedTensor(None, None))
            continue
        span = ranges[number] if isinstance(ranges, (tuple, list)) and number < len(ranges) else None
        while isinstance(span, (tuple, list)) and span and isinstance(span[0], (tuple, list)):
            span = span[0]
        low, high = (span[0], span[1]) if isinstance(span, (tuple, list)) and len(span) == 2 else (None, None)
        name = next(iter(_flat(dtypes[number])))
        if name not in _DTYPES:
            raise ValueError(f"{what} {parameter.name} has the type {name!r}, which cases cannot hold")
        lists = (
            tuple(shape)
            if parameter.dynamic and (not shape or isinstance(shape[0], (tuple, list)))
            else (shape,)
        )
        if any(not all(isinstance(extent, int) and extent >= 0 for extent in each) for each in lists):
            raise ValueError(f"{what} {parameter.name}: shape {shape!r}")
        found.append(
            ProposedTensor(tuple(tuple(each) for each in lists), _DTYPES[name], _number(low), _number(high))
        )
    return tuple(found)


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) and math.isfinite(value) else None


def attributes_of(definitions: Sequence[AttributeDef], given: dict[str, Any]) -> dict[str, AttributeValue]:
    """Return the attributes of the definition that are given, in its types."""
    known = {_plain(name): value for name, value in given.items()}
    found: dict[str, AttributeValue] = {}
    for each in definitions:
        value = given.get(each.name, known.get(_plain(each.name)))
        if value is None:
            continue
        found[each.name] = _converted(value, each.type)
    return found


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


def _converted(value: Any, kind: str) -> AttributeValue:
    if kind.startswith("List"):
        inner = kind.removeprefix("List")
        items = value if isinstance(value, (tuple, list)) else (value,)
        return [_converted(each, inner) for each in items]  # type: ignore[return-value]
    if kind == "Float":
        return float(value)
    if kind == "Int":
        return int(value)
    if kind == "Bool":
        return bool(value)
    return str(value) if kind == "String" else value


# --- json of atk ---


def _from_json(folder: Path, definition: OperatorDef, note: Note) -> Iterator[CaseDraft]:
    for path in sorted((folder / "tests" / "st").glob("**/atk_*.json")):
        where = path.relative_to(folder).as_posix()
        try:
            cases = json.loads(path.read_text(encoding="utf-8-sig"))
        except (OSError, ValueError, RecursionError) as error:
            note(f"{where}: cannot be read as JSON: {error}")
            continue
        for number, case in enumerate((cases if isinstance(cases, list) else [cases])[:_MAX_ROWS]):
            try:
                yield _json_case(case, definition, f"{where}: case {number}")
            except (ValueError, TypeError, KeyError, AttributeError) as error:
                note(f"{where}: case {number}: {error}")


def _json_case(case: dict[str, Any], definition: OperatorDef, where: str) -> CaseDraft:
    tensors: list[tuple[list[dict[str, Any]], str]] = []
    given: dict[str, Any] = {}
    for each in case["inputs"]:
        group = each if isinstance(each, list) else [each]
        kind = group[0].get("type")
        if kind in ("tensor", "tensors", "tensor_list"):
            tensors.append((group, str(group[0].get("name"))))
        else:
            values = [one.get("range_values") for one in group]  # of an attr_tuple one an element
            given[str(group[0].get("name"))] = values[0] if len(values) == 1 else values
    required = [each for each in definition.inputs if not each.optional]
    if len(tensors) not in (len(definition.inputs), len(required)):
        raise ValueError(f"{len(tensors)} tensors, the definition has {len(definition.inputs)} inputs")
    wanted = definition.inputs if len(tensors) == len(definition.inputs) else required
    by_name = dict(zip([each.name for each in wanted], (group for group, _ in tensors), strict=True))
    inputs = tuple(
        _json_tensor(by_name[each.name], each.name) if each.name in by_name else ProposedTensor(None, None)
        for each in definition.inputs
    )
    lists = {_plain(each.name) for each in definition.attributes if each.type.startswith("List")}
    attributes = {
        name: value[0] if isinstance(value, list) and value and _plain(name) not in lists else value
        for name, value in given.items()
        if not isinstance(value, dict)
    }
    found = attributes_of(definition.attributes, attributes)
    unbound = [each for each in definition.attributes if each.required and each.name not in found]
    if len(unbound) == 1 and len(attributes) == 1:
        found[unbound[0].name] = _converted(next(iter(attributes.values())), unbound[0].type)
    return CaseDraft(where, inputs, (), found)


def _json_tensor(group: Sequence[dict[str, Any]], name: str) -> ProposedTensor:
    first = group[0]
    dtype = _DTYPES.get(str(first.get("dtype")))
    if dtype is None:
        raise ValueError(f"input {name} has the type {first.get('dtype')!r}, which cases cannot hold")
    span = first.get("range_values")
    if isinstance(span, list) and span and isinstance(span[0], list):
        span = span[0]
    low, high = (
        (_number(span[0]), _number(span[1])) if isinstance(span, list) and len(span) == 2 else (None, None)
    )
    shapes = tuple(tuple(int(extent) for extent in each["shape"]) for each in group)
    return ProposedTensor(shapes, dtype, low, high)


# --- aclnn examples ---


def _from_examples(folder: Path, definition: OperatorDef, note: Note) -> Iterator[CaseDraft]:
    for path in sorted((folder / "examples").glob("**/test_aclnn_*.cpp"))[:4]:
        if "arch35" in path.as_posix():
            continue
        where = path.relative_to(folder).as_posix()
        scratch = Path(tempfile.mkdtemp(prefix="ascend-gym-example-"))
        try:
            (scratch / "output").mkdir()
            call = record_call(recorder_program(path), scratch)
            arguments = [each for each in call.arguments if each.kind != "result"]
            yield recorded_case(definition, arguments, call.function, where)
        except (OperatorFormatError, ValueError, OSError) as error:
            said = re.sub(r"\s+", " ", str(error)).removeprefix(str(path)).removeprefix(f"{folder}/")
            note(f"{where}: {said}")
        finally:
            remove_tree(scratch)


def recorded_case(
    definition: OperatorDef, arguments: Sequence[CallArgument], function: str, where: str
) -> CaseDraft:
    """Return the case of a recorded call.

    Raises:
        OperatorFormatError: its arguments do not fit the definition.
    """
    try:
        binding = bind(definition, arguments, function, may_drop=True)
    except OperatorFormatError:
        if not function.startswith("aclnnInplace"):
            raise
        arguments = [*arguments, arguments[0]]  # the result, which replaces the first argument
        binding = bind(definition, arguments, function, may_drop=True)
    values = {
        name: arguments[position].value
        for name, position in binding.attributes.items()
        if arguments[position].value is not None
    }
    given = [None if position is None else arguments[position] for position in binding.inputs]
    inputs = [ProposedTensor(None, None) if each is None else _recorded_tensor(each) for each in given]
    constants = [each is not None and each.kind not in ("tensor", "list", "absent") for each in given]
    return CaseDraft(
        where,
        _cast_constants(definition, inputs, constants),
        tuple(_recorded_tensor(arguments[position]) for position in binding.outputs),
        attributes_of(definition.attributes, values),
    )


def _cast_constants(
    definition: OperatorDef, inputs: Sequence[ProposedTensor], constants: Sequence[bool]
) -> tuple[ProposedTensor, ...]:
    """Return inputs whose numbers have the types of the definition's first column that tensors are in.

    An aclnn function casts scalars and arrays of numbers to what its operator takes.
    """
    for column in range(max((len(each.dtypes) for each in definition.inputs), default=0)):
        types = [
            parameter.dtypes[min(column, len(parameter.dtypes) - 1)] if parameter.dtypes else tensor.dtype
            for parameter, tensor in zip(definition.inputs, inputs, strict=True)
        ]
        rows = list(zip(inputs, types, constants, strict=True))
        if all(tensor.dtype in (None, own) for tensor, own, constant in rows if not constant):
            return tuple(
                dataclasses.replace(tensor, dtype=own or tensor.dtype) if constant else tensor
                for tensor, own, constant in rows
            )
    return tuple(inputs)


def _recorded_tensor(argument: CallArgument) -> ProposedTensor:
    if argument.kind == "absent":
        return ProposedTensor(None, None)
    if argument.kind in ("tensor", "list"):
        return ProposedTensor(tuple(each.shape for each in argument.tensors), argument.tensors[0].dtype)
    if argument.kind in ("scalar", "scalars"):
        return ProposedTensor(((len(argument.tensors),),), argument.tensors[0].dtype, 1.0, 2.0)
    values = argument.value if isinstance(argument.value, list) else [argument.value]
    dtype = {"ints": DType.INT64, "int": DType.INT64, "bools": DType.BOOL, "bool": DType.BOOL}.get(
        argument.kind, DType.FLOAT32
    )
    return ProposedTensor(((len(values),),), dtype, values=tuple(values))


# --- programs that are read ---


def _from_graph_examples(folder: Path, definition: OperatorDef, note: Note) -> Iterator[CaseDraft]:
    for path in sorted((folder / "examples").glob("**/test_geir_*.cpp")):
        where = path.relative_to(folder).as_posix()
        if "arch35" in where:
            continue
        try:
            yield _read_draft(graph_example(path), definition, where)
        except (ValueError, OSError) as error:
            note(f"{where}: {error}")


def _from_tiling_tests(folder: Path, definition: OperatorDef, note: Note) -> Iterator[CaseDraft]:
    for path in sorted((folder / "tests" / "ut" / "op_host").glob("**/test_*tiling*.cpp")):
        where = path.relative_to(folder).as_posix()
        if "arch35" in where:
            continue
        for draft in (*tiling_tests(path), *faked_contexts(path)):
            try:
                yield _read_draft(draft, definition, where)
            except ValueError as error:
                note(f"{where}:{draft[3]}: {error}")


def _read_draft(draft: Draft, definition: OperatorDef, where: str) -> CaseDraft:
    """Return the case of tensors that are named, or in the order of the definition.

    Raises:
        ValueError: they do not fit the definition.
    """
    inputs, outputs, given, line = draft
    return CaseDraft(
        f"{where}:{line}",
        _read_tensors(definition.inputs, inputs, "input"),
        _read_tensors(definition.outputs, outputs, "output") if outputs else (),
        attributes_of(definition.attributes, given),
    )


def _read_tensors(
    parameters: Sequence[ParameterDef], rows: Sequence[Row], what: str
) -> tuple[ProposedTensor, ...]:
    by_name: dict[str, list[tuple[Any, str]]] = {}
    for place, (name, shape, kind) in enumerate(rows):
        if name is None and place >= len(parameters) and not parameters[-1].dynamic:
            raise ValueError(f"{len(rows)} {what}s, the definition has {len(parameters)}")
        if isinstance(name, int) and name >= len(parameters):
            raise ValueError(f"{what} {name}, the definition has {len(parameters)}")
        at = name if isinstance(name, int) else min(place, len(parameters) - 1)
        own = name if isinstance(name, str) else parameters[at].name
        by_name.setdefault(own, []).append((shape, kind))
    unknown = sorted(set(by_name) - {each.name for each in parameters})
    if unknown:
        raise ValueError(f"{what}s {unknown} are not those of the definition")
    chosen = [by_name.get(each.name) for each in parameters]
    shapes = tuple(
        None if own is None else tuple(shape for shape, _ in own) if parameter.dynamic else own[0][0]
        for parameter, own in zip(parameters, chosen, strict=True)
    )
    return _tensors(parameters, shapes, tuple(own[0][1] if own else None for own in chosen), (), what)
