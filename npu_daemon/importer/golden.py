"""Inputs and golden outputs of a cann-ops example, from the files of its gen_data.py and main.cpp.

``main.cpp`` determines which file belongs to which tensor (see ``record``), and ``run.sh`` which golden file
an output file is compared with.
"""

from __future__ import annotations

import importlib.util
import math
import os
import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ascend_gym.core.errors import OperatorFormatError
from ascend_gym.core.records import Case, DType, TensorSpec
from ascend_gym.suite.inputs import Array, numpy_dtype
from npu_daemon.importer.examples import RecordedExample, Recording, call_arguments
from npu_daemon.importer.layers import layer_of
from npu_daemon.importer.record import CallArgument, RecordedTensor, python_folders, run_confined
from npu_daemon.importer.references import reference_outputs

GEN_DATA_TIMEOUT_S = 120.0

_RUNNER = """
import os, random, runpy, sys
import numpy
if sys.argv[1] == "torch":
    import torch

def size_bytes(folder):
    return sum(os.path.getsize(os.path.join(at, name)) for at, _, names in os.walk(folder) for name in names)

def generate(seed, arguments):
    os.chdir(str(seed))
    random.seed(seed)
    numpy.random.seed(seed)
    if sys.argv[1] == "torch":
        torch.manual_seed(seed)
    sys.argv = ["gen_data.py", *arguments]
    runpy.run_path("gen_data.py", run_name="__main__")

for seed in range(int(sys.argv[2])):
    if seed >= 2 and size_bytes("0") > int(sys.argv[3]):
        break
    child = os.fork()
    if child == 0:
        generate(seed, sys.argv[4:])
        sys.stdout.flush()
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code != 0:
        sys.exit(code if code > 0 else 1)
    open(f"{seed}.done", "w").close()
"""

_EMPTY_TORCH = """
def __getattr__(name):
    raise AttributeError(f"torch is not installed, and gen_data.py uses torch.{name}")
"""

# Output of ``npu-smi info -m`` for one chip: some scripts choose their golden output by the chip's name.
_CHIP_LIST = """#!/bin/sh
echo "NPU ID  Chip ID  Chip Logic ID  Chip Name"
echo "0       0        0              Ascend 910B2"
"""

_LARGE_BYTES = 64 << 20  # of one variant: of larger ones there are two
_CALL = re.compile(r"python3? gen_data\.py([^\n`;&|$]*)$", re.MULTILINE)
_MISSING_MODULE = re.compile(r"No module named '(\w+)")
_USES_TORCH = "torch is not installed"

_COMPARISON = re.compile(r"verify_\w+\.py\s+([^`\n)]*)")
_FILE = re.compile(r"[\w./-]+\.bin")
Arrays = list[list[Array]]


def run_gen_data(scratch: Path, variants: int) -> list[Path]:
    """Run the ``gen_data.py`` of each variant, a copy of the example folder below ``scratch``.

    The script is untrusted code like ``main.cpp`` and is confined like it, with numpy, random and torch
    seeded. Each run is a fork of one interpreter that has loaded torch. Where torch is missing, an
    empty module of that name satisfies scripts that import it without using it. Scripts that ask
    ``npu-smi`` for the chip get 910B2.

    Args:
        scratch: folder with the copies, named 0, 1, 2 and so on, which are also the seeds.
        variants: number of variants. If the data are large, only two are run.

    Returns:
        The copies that have data.

    Raises:
        OperatorFormatError: a script fails; the message says what it needs.
    """
    first = scratch / "0"
    for variant in range(variants):
        for name in ("input", "output"):
            (scratch / str(variant) / name).mkdir(exist_ok=True)
    uses_torch = "torch" in (first / "gen_data.py").read_text(encoding="utf-8", errors="replace")
    has_torch = importlib.util.find_spec("torch") is not None
    stubs = _stubs(scratch / "stubs", with_torch=not has_torch)
    python_path = [each for each in sys.path if each] + ([] if has_torch else [str(stubs)])
    module = "torch" if uses_torch and has_torch else ""
    limits = [str(variants), str(_LARGE_BYTES)]
    done = run_confined(
        [sys.executable, "-c", _RUNNER, module, *limits, *_arguments(first)],
        cwd=scratch,
        wall_s=GEN_DATA_TIMEOUT_S * variants,
        readable=python_folders(),
        programs=[stubs],
        env={"PATH": f"{stubs}:{os.defpath}", "PYTHONPATH": os.pathsep.join(python_path)},
    )
    if done.timed_out:
        raise OperatorFormatError(f"gen_data.py did not finish within {GEN_DATA_TIMEOUT_S * variants:g} s")
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip()
        raise OperatorFormatError(_complaint(said, done.returncode))
    return [scratch / str(variant) for variant in range(variants) if (scratch / f"{variant}.done").is_file()]


def _stubs(folder: Path, *, with_torch: bool) -> Path:
    """Fill a folder with substitutes for what scripts expect and this machine lacks."""
    folder.mkdir()
    (folder / "npu-smi").write_text(_CHIP_LIST, encoding="utf-8")
    (folder / "npu-smi").chmod(0o755)
    if with_torch:
        (folder / "torch.py").write_text(_EMPTY_TORCH, encoding="utf-8")
    return folder


def _arguments(work: Path) -> list[str]:
    """Return the arguments with which run.sh calls gen_data.py."""
    script = work / "run.sh"
    text = script.read_text(encoding="utf-8", errors="replace") if script.is_file() else ""
    call = _CALL.search(text)
    return shlex.split(call.group(1)) if call else []


def _complaint(said: str, returncode: int | None) -> str:
    missing = _MISSING_MODULE.search(said)
    module = "torch" if _USES_TORCH in said else missing.group(1) if missing else None
    if module is not None:
        return f"its gen_data.py needs {module} (pip install {module})"
    lines = said.splitlines()
    return f"gen_data.py failed: {lines[-1] if lines else f'exit {returncode}'}"


def example_data(example: RecordedExample, recording: Recording) -> tuple[Arrays, Arrays]:
    """Return the inputs and expected outputs of one variant.

    Absent optional inputs and open outputs have no arrays.

    Returns:
        For each input parameter, then for each output parameter, its arrays in the shapes of the case.

    Raises:
        OperatorFormatError: the files of gen_data.py and main.cpp contradict each other.
    """
    arguments = call_arguments(recording.call, example.definition.op_type)
    inputs = _inputs(recording.tensors, example.case, example, arguments)
    golden = _golden_files(recording)
    return inputs, _expected(example.case, example, arguments, golden, inputs)


def _inputs(
    record_dir: Path, case: Case, example: RecordedExample, arguments: Sequence[CallArgument]
) -> list[list[Array]]:
    arrays: list[list[Array]] = []
    layer = layer_of(example.definition.op_type)
    for tensor, position in zip(case.inputs, example.binding.inputs, strict=True):
        if position is None:
            arrays.append([])
            continue
        argument = arguments[position]
        if argument.kind in ("tensor", "list"):
            read = [
                layer.array(tensor.name, _recorded_array(record_dir, each, tensor.name))
                for each in argument.tensors
            ]
            if tuple(array.shape for array in read) != tensor.shapes:
                raise OperatorFormatError(f"main.cpp gives {tensor.name} other shapes once its inputs exist")
            arrays.append([_read_only(array.astype(numpy_dtype(tensor.dtype))) for array in read])
        else:
            arrays.append([_constant(record_dir, argument, tensor)])
    return arrays


def _recorded_array(record_dir: Path, tensor: RecordedTensor, name: str) -> Array:
    data = (record_dir / tensor.file).read_bytes()
    dtype = numpy_dtype(tensor.dtype)
    if len(data) != math.prod(tensor.shape) * dtype.itemsize:
        raise OperatorFormatError(
            f"main.cpp holds {len(data)} bytes for {name} of shape {tensor.shape} and type {dtype.name}"
        )
    return np.frombuffer(data, dtype=dtype).reshape(tensor.shape)


def _constant(record_dir: Path, argument: CallArgument, tensor: TensorSpec) -> Array:
    scalars = [_recorded_array(record_dir, each, tensor.name)[0] for each in argument.tensors]
    values = scalars if argument.value is None else argument.value
    return _read_only(np.array(values).astype(numpy_dtype(tensor.dtype)).reshape(tensor.shapes[0]))


def _read_only(array: Array) -> Array:
    array.flags.writeable = False
    return array


def _golden_files(recording: Recording) -> dict[int, bytes]:
    """Return the contents of the golden file of each tensor, by the tensor's number."""
    generated = {name: data for name, data in recording.generated.items() if name.endswith(".bin")}
    written = {name: data for name, data in recording.written.items() if name.endswith(".bin")}
    if not generated:
        raise OperatorFormatError("gen_data.py wrote no golden file into output/")
    if not written:
        raise OperatorFormatError("main.cpp wrote no file into output/")
    pairs = _compared(recording.work) or _only_pair(written, generated)
    golden = {}
    for output, reference in pairs:
        if output in written and reference in generated and written[output]:
            golden[written[output][0]] = generated[reference]
    return golden


def _compared(work: Path) -> list[tuple[str, str]]:
    """Return the file pairs that run.sh compares, as (output of main.cpp, golden), trying the usual orders.

    Several pairs in one call are given as all outputs followed by all golden files, or alternating.
    """
    script = work / "run.sh"
    text = script.read_text(encoding="utf-8", errors="replace") if script.is_file() else ""
    pairs = []
    for files in (_FILE.findall(call) for call in _COMPARISON.findall(text)):
        names = [Path(file).name for file in files]
        half = len(names) // 2
        pairs += [
            *zip(names[:half], names[half:], strict=False),
            *zip(names[half:], names[:half], strict=False),
            *zip(names[::2], names[1::2], strict=False),
        ]
    return pairs


def _only_pair(written: dict[str, bytes], generated: dict[str, bytes]) -> list[tuple[str, str]]:
    golden = [name for name in generated if "golden" in name] or list(generated)
    return list(zip(sorted(written), sorted(golden), strict=True)) if len(written) == len(golden) else []


def _expected(
    case: Case,
    example: RecordedExample,
    arguments: Sequence[CallArgument],
    golden: dict[int, bytes],
    inputs: Sequence[list[Array]],
) -> list[list[Array]]:
    """Return the arrays of each output from gen_data.py, else from a reference; none for an open output."""
    op_type, layer = example.definition.op_type, layer_of(example.definition.op_type)
    named = {tensor.name: arrays for tensor, arrays in zip(case.inputs, inputs, strict=True)}
    computed = reference_outputs(op_type, named, case.attributes)
    rows: list[list[Array]] = []
    for tensor, position in zip(case.outputs, example.binding.outputs, strict=True):
        items = arguments[position].tensors
        if tensor.open:
            rows.append([])
        elif all(item.number in golden for item in items):
            arrays = [
                _golden_array(golden[item.number], tensor.name, item.dtype, _read_shape(item.shape, shape))
                for item, shape in zip(items, tensor.shapes, strict=True)
            ]
            rows.append([layer.array(tensor.name, array) for array in arrays])
        elif tensor.name in computed:
            rows.append(
                [
                    array.reshape(shape)
                    for array, shape in zip(computed[tensor.name], tensor.shapes, strict=True)
                ]
            )
        else:
            raise OperatorFormatError(
                f"gen_data.py gives golden outputs for {len(golden)} tensors, none for output {tensor.name}"
            )
    return rows


def _read_shape(given: tuple[int, ...], read: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of a golden array: that of the call, unless the example reads only part of it."""
    return given if math.prod(given) == math.prod(read) else read


def _golden_array(data: bytes, name: str, given: DType, shape: tuple[int, ...]) -> Array:
    """Return golden data as an array of the call's dtype, or of a wider one if its size implies that."""
    count = math.prod(shape)
    own = numpy_dtype(given)
    wider = ("float32", "float64") if given.is_floating else ("int32", "int64")
    for dtype in (own, *(np.dtype(each) for each in wider)):
        if len(data) == count * dtype.itemsize:
            return np.frombuffer(data, dtype=dtype).reshape(shape)
    raise OperatorFormatError(
        f"the golden file of {name} has {len(data)} bytes; shape {shape} of {given.value} "
        f"has {count * own.itemsize}"
    )
