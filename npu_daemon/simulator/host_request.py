"""The request file that tells ``host_tiling`` about one call (its form: include/host/asim/host/request.h)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ascend_gym.core.records import Case, TensorSpec
from npu_daemon.simulator.host_schema import (
    HOST_TYPES,
    Attribute,
    DefinitionError,
    HostParameter,
    OperatorDefinition,
    Slot,
    match_attributes,
    match_column,
    match_outputs,
    match_tensors,
)

_NOTHING = "-"
_ELEMENT_TYPES: dict[str, tuple[type, ...]] = {
    "bool": (bool,),
    "int": (int,),
    "float": (float, int),
    "string": (str,),
}


@dataclass(frozen=True)
class ChipGeometry:
    """Figures of a chip that tiling functions ask for.

    Attributes:
        soc_version: full name, for example ``Ascend910B2``.
        aic_cores: number of cube cores.
        aiv_cores: number of vector cores.
        ub_bytes: unified buffer of a vector core, before anything is kept from it.
        l1_bytes: L1 buffer of a cube core.
        l0a_bytes: L0A buffer.
        l0b_bytes: L0B buffer.
        l0c_bytes: L0C buffer.
        l2_bytes: shared level-two cache.
        l2_bytes_per_cycle: bandwidth of the cache per core, ``None`` when unknown.
        hbm_bytes_per_cycle: bandwidth of global memory per core, ``None`` when unknown.
        core_num: what ``GetCoreNum`` answers; the number of vector cores unless it is said.
    """

    soc_version: str
    aic_cores: int
    aiv_cores: int
    ub_bytes: int
    l1_bytes: int
    l0a_bytes: int
    l0b_bytes: int
    l0c_bytes: int
    l2_bytes: int
    l2_bytes_per_cycle: int | None = None
    hbm_bytes_per_cycle: int | None = None
    core_num: int | None = None


def request_lines(
    definition: OperatorDefinition,
    case: Case,
    chip: ChipGeometry,
    input_files: Sequence[Sequence[Path]] = (),
) -> list[str]:
    """Return the lines of the request file for ``case``.

    Args:
        definition: the operator as its host code declares it.
        case: shapes, types and attributes.
        chip: sizes and core counts that the tiling program can ask for.
        input_files: files of the inputs whose values it may read, one list for each input.

    Raises:
        DefinitionError: the case does not fit the definition.
    """
    column = match_column(definition, case)
    files = {tensor.name: paths for tensor, paths in zip(case.inputs, input_files, strict=False)}
    inputs = match_tensors(definition.inputs, case.inputs, "inputs")
    outputs = match_outputs(definition, case)
    lines = [f"op {definition.op_type}", *_chip_lines(chip), "deterministic 0"]
    for parameter, slot, tensor in zip(definition.inputs, column.inputs, inputs, strict=True):
        lines += ["input", *_tensor_lines(parameter, slot, tensor, files)]
    for parameter, slot, tensor in zip(definition.outputs, column.outputs, outputs, strict=True):
        lines += ["output", *_tensor_lines(parameter, slot, tensor, {})]
    lines += [_attribute_line(attribute, value) for attribute, value in match_attributes(definition, case)]
    return lines


def value_files(
    definition: OperatorDefinition, case: Case, input_files: Sequence[Sequence[Path]]
) -> list[Path]:
    """Return the input files that a tiling function may look into: those of value-dependent inputs."""
    files = {tensor.name: paths for tensor, paths in zip(case.inputs, input_files, strict=False)}
    inputs = match_tensors(definition.inputs, case.inputs, "inputs")
    return [
        path
        for parameter, tensor in zip(definition.inputs, inputs, strict=True)
        if parameter.value_dependent and tensor is not None
        for path in files.get(tensor.name, ())
    ]


def _chip_lines(chip: ChipGeometry) -> Iterator[str]:
    """Yield the figures of the chip; memories are numbered as in the C++ enumeration LocalMemType."""
    yield f"soc {chip.soc_version}"
    yield f"cores {chip.aic_cores} {chip.aiv_cores} {chip.core_num or chip.aiv_cores}"
    sizes = (chip.l0a_bytes, chip.l0b_bytes, chip.l0c_bytes, chip.l1_bytes, chip.l2_bytes, chip.ub_bytes)
    for index, size in enumerate(sizes):
        yield f"memory {index} {size}"
    for index, bandwidth in ((4, chip.l2_bytes_per_cycle), (6, chip.hbm_bytes_per_cycle)):
        if bandwidth is not None:
            yield f"bandwidth {index} {bandwidth}"


def _tensor_lines(
    parameter: HostParameter, slot: Slot, tensor: TensorSpec | None, files: Mapping[str, Sequence[Path]]
) -> Iterator[str]:
    if tensor is None:
        return
    known = files.get(tensor.name, ()) if parameter.value_dependent else ()
    for index, shape in enumerate(tensor.shapes):
        values = _hexadecimal(str(known[index])) if index < len(known) else _NOTHING
        extents = _counted(str(extent) for extent in shape)
        yield f"tensor {HOST_TYPES[tensor.dtype]} {slot.format} {values} {extents}"


def _attribute_line(attribute: Attribute, value: Any) -> str:
    element_type = attribute.type.removeprefix("list_").removeprefix("list_")
    depth = attribute.type.count("list_")
    if not _has_type(value, element_type, depth):
        raise DefinitionError(
            f"attribute {attribute.name!r} is of type {attribute.type}, the case gives {value!r}"
        )
    return f"attribute {attribute.type} {_encode(value, element_type, depth)}"


def _has_type(value: Any, element_type: str, depth: int) -> bool:
    if depth > 0:
        return isinstance(value, (list, tuple)) and all(
            _has_type(element, element_type, depth - 1) for element in value
        )
    if isinstance(value, bool) and element_type != "bool":
        return False
    return isinstance(value, _ELEMENT_TYPES[element_type])


def _encode(value: Any, element_type: str, depth: int) -> str:
    if depth > 0:
        return _counted(_encode(element, element_type, depth - 1) for element in value)
    if element_type == "string":
        return _hexadecimal(value)
    return repr(float(value)) if element_type == "float" else str(int(value))


def _counted(words: Iterable[str]) -> str:
    listed = list(words)
    return " ".join([str(len(listed)), *listed])


def _hexadecimal(text: str) -> str:
    return text.encode("utf-8").hex() or _NOTHING
