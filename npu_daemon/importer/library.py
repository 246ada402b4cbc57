"""Writes an operator of a library by domain as an ``op.toml`` with data files.

Its definition names parameters and types, its tests propose cases (``library_cases``), and its ``golden.py``
says what is right: it runs once for each of two sets of values, confined as the programs of cann-ops are. An
operator without a reference gets ``reference = "baseline"``: what its own sources compute is what is
expected.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import math
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from pydantic import ValidationError

from ascend_gym.core.errors import OperatorFormatError
from ascend_gym.core.records import Case, DType, TensorSpec, Tolerance
from ascend_gym.core.remove_tree import remove_tree
from ascend_gym.core.toml_file import reason_of
from ascend_gym.suite.cann_opdef import OperatorDef, defines_operator, expand_macros, read_opdef
from ascend_gym.suite.domain_library import LibraryOperator, read_library_operator
from ascend_gym.suite.inputs import Array, numpy_dtype
from ascend_gym.suite.sources import read_source
from npu_daemon.importer.library_cases import CaseDraft, ProposedTensor, output_dtypes, proposals
from npu_daemon.importer.output_shapes import OutputShapes
from npu_daemon.importer.record import python_folders, run_confined
from npu_daemon.importer.writing import Entries, entry_of, manifest_text, storable, write_arrays

NO_REFERENCE = "no reference: "
"""How the first comment of a manifest begins that expects what the operator's own sources compute."""

VARIANTS = 2
MAX_CASES = 3
_TRIED = 8  # proposals at a time, which one run of golden.py answers
_TRIED_AT_MOST = 64
_GOLDEN_TIMEOUT_S = 120.0
_RUNNER = Path(__file__).with_name("golden_runner.py")
_FUNCTION = re.compile(r"^__golden__", re.MULTILINE)
_TOLERANCES = {  # one unit in the last place of a type, or what float32 keeps of a long sum
    DType.FLOAT16: Tolerance(atol=1e-3, rtol=2.0**-10, max_bad_share=0.001),
    DType.BFLOAT16: Tolerance(atol=1e-3, rtol=2.0**-7, max_bad_share=0.001),
    DType.FLOAT32: Tolerance(atol=1e-5, rtol=1e-4, max_bad_share=0.001),
    DType.FLOAT64: Tolerance(atol=1e-9, rtol=1e-9),
    DType.COMPLEX64: Tolerance(atol=1e-5, rtol=1e-4, max_bad_share=0.001),
}
_ROUNDED = (DType.INT8, DType.UINT8, DType.INT4)

Sets = list[list[list[Array]]]  # of variants, of parameters, of tensors


@dataclass(frozen=True)
class _Found:
    """A case with its data: inputs and expected outputs of each variant, no outputs without a reference."""

    case: Case
    proposal: CaseDraft
    inputs: Sets
    outputs: Sets


def write_library_operator(folder: Path, root: Path, target: Path) -> None:
    """Write an operator of a library as a manifest with its data.

    Args:
        folder: of the operator.
        root: of the checkout.
        target: folder for ``op.toml`` and ``data``; created if missing.

    Raises:
        OperatorFormatError: it cannot be imported; the message says why.
        InfrastructureError: the compiler's package is not installed.
    """
    operator = read_library_operator(folder, root)
    definition = _definition(operator)
    notes: list[str] = []
    proposed = proposals(operator.folder, definition, notes.append)
    if not proposed:
        told = f"; {notes[0]}" if notes else ""
        raise OperatorFormatError(
            f"{folder}: no case: its tests and examples say none that the 910B supports{told}"
        )
    shapes = OutputShapes(operator, definition, notes.append)
    script = operator.folder / "tests" / "assets" / "golden.py"
    found: list[_Found] = []
    lacking = "its authors left no golden.py"
    if any((operator.folder / "tests").rglob("gen_data.py")):
        lacking += "; its gen_data.py is not read"
    if script.is_file():
        try:
            for batch in _batches(proposed):
                batch = [shapes.completed(each, _input_sets(each)[0]) for each in batch]
                found += _with_golden(script, operator, definition, batch, shapes, notes.append, len(found))
                if len(found) >= MAX_CASES:
                    break
            lacking = notes[-1] if not found and notes else lacking
        except OperatorFormatError as error:
            lacking = str(error)
            notes.append(lacking)
    baseline = not found
    if baseline:
        said = proposals(operator.folder, definition, notes.append, with_outputs=True)
        for batch in _batches(said or proposed):
            if not said:
                batch = [shapes.completed(each, _input_sets(each)[0]) for each in batch]
            found += _without_golden(definition, batch, notes.append, len(found))
            if len(found) >= MAX_CASES:
                break
    found = found[:MAX_CASES]
    if not found:
        raise OperatorFormatError(f"{folder}: no case can be made: {notes[-1] if notes else lacking}")
    operator_table: dict[str, Any] = {
        "type": operator.op_type,
        "level": 2,
        "category": operator.folder.parent.name,
        "description": f"{operator.op_type} of {root.name}, at cases of its own tests",
        "reads_all_inputs": False,
    }
    if baseline:
        operator_table["reference"] = "baseline"
    cases = []
    for each in found:
        at = target / "data" / each.case.case_id
        entries: Entries = {
            "input": _entries(at, "inputs", each.case.inputs, each.inputs),
            "output": _entries(at, "outputs", each.case.outputs, each.outputs),
        }
        cases.append((each.case, entries))
    kept = list(dict.fromkeys([*([f"{NO_REFERENCE}{lacking}"] if baseline else []), *notes]))
    target.mkdir(parents=True, exist_ok=True)
    (target / "op.toml").write_text(
        manifest_text(operator_table, _tolerances(found), cases, kept[:40]), encoding="utf-8"
    )


def _batches(proposed: Sequence[CaseDraft]) -> Iterator[Sequence[CaseDraft]]:
    for begin in range(0, min(len(proposed), _TRIED_AT_MOST), _TRIED):
        yield proposed[begin : begin + _TRIED]


def _entries(at: Path, side: str, tensors: Sequence[TensorSpec], sets: Sets) -> list[str]:
    rows = []
    for number, tensor in enumerate(tensors):
        arrays = [variant[number] for variant in sets]
        file = write_arrays(at, side, tensor, arrays) if arrays else ""
        rows.append(entry_of(tensor, file))
    return rows


def _definition(operator: LibraryOperator) -> OperatorDef:
    paths = sorted((operator.folder / "op_host").glob("*_def*"))
    texts = [read_source(path) for path in paths if path.suffix in (".cpp", ".h", ".hpp")]
    spelled = [text for text in texts if defines_operator(text)]
    text = "\n".join(spelled) or expand_macros(texts)
    return read_opdef(text, f"{operator.folder}/op_host", operator.op_type)


def _drawn(tensor: ProposedTensor, rng: np.random.Generator) -> list[Array]:
    """Return values of a proposed input, one array for each shape."""
    if tensor.shapes is None or tensor.dtype is None:
        return []
    dtype = tensor.dtype
    if tensor.values:
        return [np.array(tensor.values).astype(numpy_dtype(dtype)).reshape(tensor.shapes[0])]
    low = -1.0 if tensor.low is None else tensor.low
    high = 1.0 if tensor.high is None else tensor.high
    if tensor.low is None and not dtype.is_floating:
        low, high = 0.0, 1.0 if dtype is DType.BOOL else 3.0
    low, high = min(low, high), max(low, high)
    if dtype.is_floating or dtype is DType.COMPLEX64:  # a range may be that of another type of the row
        part = np.float32 if dtype is DType.COMPLEX64 else numpy_dtype(dtype)
        limit = min(float(ml_dtypes.finfo(part).max), 2.0**1022)  # type: ignore[no-untyped-call]
        low, high = max(low, -limit), min(high, limit)
    arrays = []
    for shape in tensor.shapes:
        if dtype is DType.COMPLEX64:
            drawn: Array = (rng.uniform(low, high, shape) + 1j * rng.uniform(low, high, shape)).astype(
                np.complex64
            )
        elif dtype.is_floating:
            drawn = rng.uniform(low, high, shape).astype(numpy_dtype(dtype))
        elif dtype is DType.BOOL:
            drawn = rng.integers(0, 2, shape).astype(np.bool_)
        else:
            limits = (-8, 7) if dtype is DType.INT4 else _limits(numpy_dtype(dtype))
            bounds = max(int(low), limits[0]), min(int(high), limits[1])
            drawn = rng.integers(bounds[0], max(bounds[1], bounds[0]), shape, endpoint=True).astype(
                numpy_dtype(dtype)
            )
        arrays.append(drawn)
    return arrays


def _limits(dtype: np.dtype[Any]) -> tuple[int, int]:
    info = np.iinfo(dtype)
    return max(int(info.min), -(1 << 62)), min(int(info.max), 1 << 62)


def _input_sets(proposal: CaseDraft) -> Sets:
    rngs = [np.random.default_rng(variant) for variant in range(VARIANTS)]
    return [[_drawn(tensor, rng) for tensor in proposal.inputs] for rng in rngs]


def _with_golden(
    script: Path,
    operator: LibraryOperator,
    definition: OperatorDef,
    proposed: Sequence[CaseDraft],
    shapes: OutputShapes,
    note: Any,
    first: int,
) -> list[_Found]:
    """Return the cases for which golden.py gives outputs that fit the definition, numbered from ``first``."""
    text = script.read_text(encoding="utf-8", errors="replace")
    if not _FUNCTION.search(text):
        raise OperatorFormatError("tests/assets/golden.py: no __golden__ table")
    for module in ("torch", "tensorflow"):
        if (
            re.search(rf"^\s*(?:import|from) {module}\b", text, re.MULTILINE)
            and importlib.util.find_spec(module) is None
        ):
            only = re.search(rf"^(?:import|from) {module}\b", text, re.MULTILINE)
            if only:
                raise OperatorFormatError(f"its golden.py needs {module} (pip install {module})")
    scratch = Path(tempfile.mkdtemp(prefix="ascend-gym-golden-"))
    try:
        sets = [_input_sets(each) for each in proposed]
        calls = [
            _call(scratch, f"{number}-{variant}", definition, each, arrays)
            for number, each in enumerate(proposed)
            for variant, arrays in enumerate(sets[number])
        ]
        (scratch / "calls.json").write_text(json.dumps(calls), encoding="utf-8")
        rows = _run_golden(script, operator, scratch)
        found: list[_Found] = []
        for number, each in enumerate(proposed):
            own = rows[number * VARIANTS : (number + 1) * VARIANTS]
            try:
                found.append(_answered(definition, each, shapes, sets[number], own, first + len(found)))
            except (OperatorFormatError, ValidationError, ValueError) as error:
                said = reason_of(error) if isinstance(error, ValidationError) else str(error)
                note(f"{each.where}: {said}")
        return found
    finally:
        remove_tree(scratch)


def _call(
    scratch: Path, name: str, definition: OperatorDef, proposal: CaseDraft, arrays: list[list[Array]]
) -> dict[str, Any]:
    """Write the inputs of one call of golden.py; return the call."""
    folder = scratch / name
    folder.mkdir()
    files: list[Any] = []
    for number, (parameter, row) in enumerate(zip(definition.inputs, arrays, strict=True)):
        paths = [str(folder / f"input{number}_{index}.npy") for index in range(len(row))]
        for path, array in zip(paths, row, strict=True):
            np.save(path, storable(array))
        files.append(None if not paths else paths if parameter.dynamic else paths[0])
    dtypes = [None if each.dtype is None else each.dtype.value for each in proposal.inputs]
    out = [None if each is None else each.value for each in output_dtypes(definition, proposal)]
    shapes = [
        None if each.shapes is None else each.shapes if parameter.dynamic else each.shapes[0]
        for parameter, each in zip(definition.inputs, proposal.inputs, strict=True)
    ]
    out_shapes = [None if each.shapes is None else each.shapes[0] for each in proposal.outputs]
    context = {
        "input_dtypes": dtypes, "output_dtypes": out, "input_shapes": shapes, "input_ori_shapes": shapes,
        "output_shapes": out_shapes, "output_ori_shapes": out_shapes,
        "input_formats": ["ND"] * len(dtypes), "input_ori_formats": ["ND"] * len(dtypes),
        "output_formats": ["ND"] * len(out), "output_ori_formats": ["ND"] * len(out),
        "short_soc_version": "Ascend910B", "full_soc_version": "Ascend910B2", "testcase_name": name,
        "attributes": proposal.attributes,
        "input_data_ranges": [
            None if each.low is None else [each.low, each.high] for each in proposal.inputs
        ],
    }  # fmt: skip
    return {
        "inputs": files,
        "dtypes": dtypes,
        "attributes": proposal.attributes,
        "context": context,
        "target": str(folder),
    }


def _run_golden(script: Path, operator: LibraryOperator, scratch: Path) -> list[dict[str, Any]]:
    done = run_confined(
        [sys.executable, str(_RUNNER), str(script), operator.folder.name, str(scratch / "calls.json")],
        cwd=scratch,
        wall_s=_GOLDEN_TIMEOUT_S,
        readable=[*python_folders(), operator.folder.parent, _RUNNER],  # it may call that of a sibling
        env={
            "PATH": os.defpath,
            "PYTHONPATH": os.pathsep.join(each for each in sys.path if each),
            "OMP_NUM_THREADS": "1",
        },
    )
    rows = []
    for line in done.stdout.decode("utf-8", "replace").splitlines():
        try:
            rows.append(json.loads(line))
        except ValueError:
            continue
    if rows and "fatal" in rows[0]:
        missing = re.search(r"No module named '(\w+)", rows[0]["fatal"])
        raise OperatorFormatError(
            f"its golden.py needs {missing[1]} (pip install {missing[1]})"
            if missing
            else f"tests/assets/golden.py: {rows[0]['fatal']}"
        )
    if not rows:
        how = "did not finish in time" if done.timed_out else "ended without an answer"
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise OperatorFormatError(f"tests/assets/golden.py {how}: {said[-1] if said else done.returncode}")
    return rows


def _answered(
    definition: OperatorDef,
    proposal: CaseDraft,
    inferred: OutputShapes,
    inputs: Sets,
    rows: Sequence[dict[str, Any]],
    number: int,
) -> _Found:
    """Return the case of a proposal with what golden.py answered.

    Raises:
        OperatorFormatError: it raised, or its outputs do not fit.
    """
    for row in rows:
        if "error" in row:
            line = f":{row['line']}" if row.get("line") else ""
            raise OperatorFormatError(f"tests/assets/{row.get('file', 'golden.py')}{line}: {row['error']}")
    if len(rows) < VARIANTS:
        raise OperatorFormatError("tests/assets/golden.py did not finish in time")
    outputs = [_outputs(definition, proposal, row["outputs"]) for row in rows]
    for variant, row in enumerate(rows):
        for place, file in enumerate(row["inputs"] or ()):
            if file is not None and place < len(inputs[variant]) and inputs[variant][place]:
                own = inputs[variant][place]
                changed = [np.load(each) for each in (file if isinstance(file, list) else [file])]
                if [each.size for each in changed] != [each.size for each in own]:
                    raise OperatorFormatError(
                        f"__input__ of golden.py gives {definition.inputs[place].name} "
                        f"the shape {[each.shape for each in changed]}"
                    )
                inputs[variant][place] = [
                    each.reshape(before.shape).astype(before.dtype)
                    for each, before in zip(changed, own, strict=True)
                ]
    tensors = []
    for place, (parameter, dtype) in enumerate(
        zip(definition.outputs, output_dtypes(definition, proposal), strict=True)
    ):
        arrays = outputs[0][place]
        said = proposal.outputs[place] if place < len(proposal.outputs) else None
        if not arrays:
            if said is None or said.shapes is None or dtype is None:
                if parameter.optional:
                    continue
                raise OperatorFormatError(
                    f"golden.py gives no output {parameter.name}, and nothing says its shape"
                )
            tensors.append(
                TensorSpec(
                    name=parameter.name, dtype=dtype, shapes=said.shapes, dynamic=parameter.dynamic, open=True
                )
            )
            continue
        if dtype is None:
            raise OperatorFormatError(f"output {parameter.name} has a type that cases cannot hold")
        several = dtype.is_floating and sum(each.size for each in arrays) > 1
        if several and not any(np.isfinite(each).any() for each in arrays):
            raise OperatorFormatError(f"golden.py gives {parameter.name} without one finite value")
        shapes = tuple(array.shape for array in arrays)
        if said is not None and said.shapes is not None and said.shapes != shapes:
            if [math.prod(each) for each in said.shapes] != [array.size for array in arrays]:
                own_function = inferred.completed(dataclasses.replace(proposal, outputs=()), inputs[0])
                if not own_function.outputs or own_function.outputs[place].shapes != shapes:
                    raise OperatorFormatError(
                        f"golden.py gives {parameter.name} the shape {shapes}, the case says {said.shapes}"
                    )
                said = own_function.outputs[place]  # a row of the tests is wrong
            shapes = said.shapes or shapes
            for answer in outputs:
                answer[place] = [
                    array.reshape(shape) for array, shape in zip(answer[place], shapes, strict=True)
                ]
        tensors.append(TensorSpec(name=parameter.name, dtype=dtype, shapes=shapes, dynamic=parameter.dynamic))
    case = _case(definition, proposal, tuple(tensors), number)
    given = {each.name for each in tensors}
    kept = [
        [row[place] for place, each in enumerate(definition.outputs) if each.name in given] for row in outputs
    ]
    return _Found(case, proposal, inputs, kept)


def _outputs(definition: OperatorDef, proposal: CaseDraft, rows: Sequence[Any]) -> list[list[Array]]:
    """Return the arrays of each output of the definition; of fewer answers the rest stays open.

    Raises:
        OperatorFormatError: golden.py gives more, or something that is no output.
    """
    if (
        len(definition.outputs) == 1
        and definition.outputs[0].dynamic
        and all(row and len(row) == 1 for row in rows)
        and len(rows) > 1
    ):
        rows = [[each for row in rows for each in row]]
    if len(rows) > len(definition.outputs):
        raise OperatorFormatError(
            f"golden.py gives {len(rows)} outputs, the definition has {len(definition.outputs)}"
        )
    arrays = [[np.load(each["file"]) for each in row] if row else [] for row in rows]
    found = arrays + [[] for _ in definition.outputs[len(arrays) :]]
    for place, dtype in enumerate(output_dtypes(definition, proposal)):
        if dtype is not None and not dtype.is_floating and dtype is not DType.COMPLEX64:
            found[place] = [np.asarray(array).astype(numpy_dtype(dtype)) for array in found[place]]
    return found


def _case(definition: OperatorDef, proposal: CaseDraft, outputs: tuple[TensorSpec, ...], number: int) -> Case:
    given = [each.dtype.value for each in proposal.inputs if each.dtype is not None]
    shape = next((each.shapes[0] for each in proposal.inputs if each.shapes), ())
    name = "_".join(filter(None, [given[0] if given else "case", "x".join(map(str, shape)) or "scalar"]))
    attributes = {**_defaults(definition), **proposal.attributes}
    return Case(
        case_id=f"{name}_{number}"[:100],
        inputs=tuple(
            TensorSpec(
                name=parameter.name,
                dtype=tensor.dtype
                or next((each for each in parameter.dtypes if each is not None), DType.FLOAT32),
                shapes=tensor.shapes if tensor.shapes is not None else ((1,),),
                dynamic=parameter.dynamic,
                optional_absent=tensor.shapes is None,
            )
            for parameter, tensor in zip(definition.inputs, proposal.inputs, strict=True)
        ),
        outputs=outputs,
        attributes=attributes,
    )


def _defaults(definition: OperatorDef) -> dict[str, Any]:
    """Attributes that a case leaves out have the defaults of the definition, which the host side knows."""
    return {}


def _without_golden(
    definition: OperatorDef, proposed: Sequence[CaseDraft], note: Any, first: int
) -> list[_Found]:
    """Return cases whose outputs are those of the operator's own sources; their shapes have to be said."""
    found: list[_Found] = []
    for each in proposed:
        if not each.outputs:
            each = _same_shapes(definition, each)
        dtypes = output_dtypes(definition, each)
        given = {
            parameter.name: tensor
            for parameter, tensor in zip(definition.inputs, each.inputs, strict=True)
            if tensor.shapes is not None
        }
        try:
            tensors = []
            for parameter, said, dtype in zip(definition.outputs, each.outputs, dtypes, strict=True):
                if said.shapes is None and parameter.name in given:  # the result replaces that input
                    said = given[parameter.name]
                    dtype = dtype or said.dtype
                if said.shapes is None and parameter.optional:
                    continue
                if said.shapes is None or dtype is None:
                    raise OperatorFormatError(f"nothing says the shape or type of output {parameter.name}")
                tensors.append(
                    TensorSpec(
                        name=parameter.name, dtype=dtype, shapes=said.shapes, dynamic=parameter.dynamic
                    )
                )
            case = _case(definition, each, tuple(tensors), first + len(found))
        except (OperatorFormatError, ValidationError, ValueError) as error:
            note(f"{each.where}: {reason_of(error) if isinstance(error, ValidationError) else error}")
            continue
        found.append(_Found(case, each, _input_sets(each), []))
    return found


def _same_shapes(definition: OperatorDef, proposal: CaseDraft) -> CaseDraft:
    """Return a proposal whose outputs have the shapes of the first input: of an operator element by element.

    Only where all inputs that are given have one shape, or lists of the same ones.
    """
    shapes = {each.shapes for each in proposal.inputs if each.shapes is not None}
    lists = {each for each in shapes if each != ((1,),)} or shapes
    if len(lists) != 1:
        return CaseDraft(
            proposal.where,
            proposal.inputs,
            tuple(ProposedTensor(None, None) for _ in definition.outputs),
            proposal.attributes,
        )
    return CaseDraft(
        proposal.where,
        proposal.inputs,
        tuple(ProposedTensor(next(iter(lists)), None) for _ in definition.outputs),
        proposal.attributes,
    )


def _tolerances(found: Sequence[_Found]) -> dict[DType, Tolerance]:
    """Return the bounds of each output type: those of the cases, at least one unit in the last place."""
    bounds: dict[DType, Tolerance] = {}
    for each in found:
        floating = any(tensor.dtype.is_floating for tensor in each.case.inputs)
        for place, output in enumerate(each.case.outputs):
            if output.dtype in _ROUNDED and floating:
                bounds[output.dtype] = Tolerance(atol=1.0, rtol=0.0)
            if output.dtype not in _TOLERANCES:
                continue
            base = bounds.get(output.dtype, _TOLERANCES[output.dtype])
            said = each.proposal.tolerances
            rtol, share = said[min(place, len(said) - 1)] if said else (0.0, 0.0)
            bounds[output.dtype] = Tolerance(
                atol=max(base.atol, min(each.proposal.atol, 0.01)),
                rtol=max(base.rtol, min(rtol, 0.02)),
                max_bad_share=max(base.max_bad_share, min(share, 0.01)),
            )
    return bounds
