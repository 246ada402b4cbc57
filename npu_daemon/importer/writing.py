"""Writes an example as an ``op.toml`` with data files, in several variants of the data."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import ml_dtypes
import numpy as np

from ascend_gym.core.records import AttributeValue, Case, DType, TensorSpec, Tolerance
from ascend_gym.core.remove_tree import remove_tree
from ascend_gym.suite.cann_sources import checkout_root
from ascend_gym.suite.imported import EXAMPLE_FOLDER
from ascend_gym.suite.inputs import Array
from ascend_gym.suite.manifest import FORMAT, MANIFEST_NAME
from npu_daemon.importer.examples import RecordedExample, read_definition, read_example, record_example
from npu_daemon.importer.golden import Arrays, example_data, run_gen_data
from npu_daemon.importer.record import recorder_program

Entries = Mapping[str, Sequence[str]]

VARIANTS = 4
_LEVEL = 2  # cann-ops folders carry no difficulty level: the middle one


def write_example(folder: Path, target: Path, variants: int = VARIANTS) -> RecordedExample:
    """Write the example of an operator folder of cann-ops as a manifest with its data.

    Args:
        folder: operator folder.
        target: folder for ``op.toml`` and ``data``; created if missing.
        variants: number of sets of data, with the seeds 0, 1 and so on.

    Returns:
        The example.

    Raises:
        OperatorFormatError: the folder contains something that is not understood, or one of its programs
            fails; the message says what.
        InfrastructureError: the compiler's package is not installed.
    """
    definition = read_definition(folder)
    program = recorder_program(folder / EXAMPLE_FOLDER / "main.cpp")
    scratch = Path(tempfile.mkdtemp(prefix="ascend-gym-example-"))
    try:
        for variant in range(variants):
            shutil.copytree(folder / EXAMPLE_FOLDER, scratch / str(variant), symlinks=True)
        recordings = [record_example(work, program) for work in run_gen_data(scratch, variants)]
        example = read_example(folder, definition, recordings[0])
        data = [example_data(example, recording) for recording in recordings]
    finally:
        remove_tree(scratch)
    before, after = ([each[side] for each in data] for side in (0, 1))
    entries = {
        "input": _written_tensors(target / "data", "inputs", example.case.inputs, before),
        "output": _written_tensors(target / "data", "outputs", example.case.outputs, after),
    }
    text = manifest_text(_operator_table(folder, example), example.case.tolerance, [(example.case, entries)])
    target.mkdir(parents=True, exist_ok=True)
    (target / MANIFEST_NAME).write_text(text, encoding="utf-8")
    return example


def _written_tensors(
    data: Path, side: str, tensors: Sequence[TensorSpec], variants: Sequence[Arrays]
) -> list[str]:
    """Write the data of tensors and return their manifest entries.

    Inputs and outputs have folders of their own (``side``): a tensor changed in place is one of each.
    """
    return [
        entry_of(tensor, write_arrays(data, side, tensor, [arrays[number] for arrays in variants]))
        for number, tensor in enumerate(tensors)
    ]


def write_arrays(data: Path, side: str, tensor: TensorSpec, variants: Sequence[Sequence[Array]]) -> str:
    """Write the arrays of a tensor; return the pattern of their file names, empty without arrays.

    Args:
        data: folder ``data`` beside the manifest, or one below it.
        side: ``inputs`` or ``outputs``.
        tensor: the parameter.
        variants: its arrays in each set of values.
    """
    if not variants[0]:
        return ""
    same = all(_equal(arrays, variants[0]) for arrays in variants[1:])
    name = ("{variant}/" if not same else "") + tensor.name + ("_{index}" if tensor.dynamic else "")
    pattern = f"{side}/{name}.npy"
    for variant, arrays in enumerate(variants[:1] if same else variants):
        for index, array in enumerate(arrays):
            path = data / pattern.format(variant=variant, index=index)
            path.parent.mkdir(parents=True, exist_ok=True)
            np.save(path, storable(array))
    return f"{'data' if data.name == 'data' else f'data/{data.name}'}/{pattern}"


def storable(array: Array) -> Array:
    """Return the elements as a type that ``.npy`` files know: bfloat16 as uint16, int4 as int8."""
    if array.dtype == ml_dtypes.bfloat16:
        return array.view(np.uint16)
    return array.astype(np.int8) if array.dtype == ml_dtypes.int4 else array


def _equal(left: Sequence[Array], right: Sequence[Array]) -> bool:
    return all(a.tobytes() == b.tobytes() for a, b in zip(left, right, strict=True))


def _operator_table(folder: Path, example: RecordedExample) -> dict[str, AttributeValue]:
    op_type = example.definition.op_type
    table: dict[str, AttributeValue] = {
        "type": op_type,
        "level": _LEVEL,
        "category": folder.parent.name,
        "description": f"{op_type} of a cann-ops checkout, as its aclnn example runs it",
        "reads_all_inputs": False,  # nothing in an example says whether its outputs depend on all of them
    }
    root = checkout_root(folder)
    if root is not None and folder.is_relative_to(root / "src"):
        table["sources"] = f"cann-ops:{folder.relative_to(root / 'src').as_posix()}"
    return table


def manifest_text(
    operator: Mapping[str, AttributeValue],
    tolerances: Mapping[DType, Tolerance],
    cases: Sequence[tuple[Case, Entries]],
    notes: Sequence[str] = (),
) -> str:
    """Return the text of an ``op.toml``.

    Args:
        operator: keys of its ``[operator]`` table.
        tolerances: by output type.
        cases: each with the entries of its inputs and outputs (``entry_of``).
        notes: what the importer left out and why, as comments.
    """
    lines = [f"# {' '.join(note.split())}" for note in notes]
    lines += [
        f"format = {FORMAT}",
        "\n[operator]",
        *(f"{key} = {_value(value)}" for key, value in operator.items()),
    ]
    for dtype, tolerance in tolerances.items():
        lines.append(f"\n[tolerance.{dtype.value}]")
        lines += [f"{key} = {_value(value)}" for key, value in tolerance.model_dump().items()]
    for case, entries in cases:
        attributes = ", ".join(f"{name} = {_value(value)}" for name, value in case.attributes.items())
        lines += ["\n[[case]]", f"id = {_value(case.case_id)}", f"attributes = {{ {attributes} }}"]
        for key, tensors in entries.items():
            lines += [f"{key} = [", *(f"  {{ {tensor} }}," for tensor in tensors), "]"]
    return "\n".join([*lines, ""])


def entry_of(tensor: TensorSpec, file: str) -> str:
    """Return the entry of a tensor in a manifest.

    Args:
        tensor: the parameter.
        file: pattern of the files with its values, empty without any.
    """
    shapes = ", ".join(str(list(shape)) for shape in tensor.shapes)
    parts = [
        f"name = {_value(tensor.name)}",
        f"dtype = {_value(tensor.dtype.value)}",
        f"shapes = [{shapes}]" if tensor.dynamic else f"shape = {shapes}",
    ]
    parts += ["optional_absent = true"] if tensor.optional_absent else []
    parts += ["open = true"] if tensor.open else []
    parts += [f"values = {{ kind = 'file', file = {_value(file)} }}"] if file else []
    return ", ".join(parts)


def _value(value: AttributeValue) -> str:
    """Return a value in TOML syntax; floats keep a point, an exponent or a name, as in Python."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return repr(value) if isinstance(value, int | float) else f"[{', '.join(map(_value, value))}]"
