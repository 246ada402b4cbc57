"""Inputs and golden outputs of a cann-ops example: its own gen_data.py, run with a fixed seed.

The script is code of the operator's author, like ``reference.py``. It runs in a process of its own, in a
temporary copy of the example folder, with numpy and random seeded; where torch is missing, an empty module
of that name lets scripts pass that import it without using it.
"""

from __future__ import annotations

import importlib.util
import math
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ascend_gym.core.digest import digest_of
from ascend_gym.core.errors import MisuseError, OperatorFormatError
from ascend_gym.core.protocols import Verdict
from ascend_gym.core.records import Case, TensorSpec
from ascend_gym.suite.cann_examples import EXAMPLE_FOLDER, ExampleInput, read_example
from ascend_gym.suite.inputs import Array, numpy_dtype
from ascend_gym.suite.verdict import judge

GEN_DATA_TIMEOUT_S = 120.0

_RUNNER = """
import random, runpy, sys
import numpy
seed = int(sys.argv[1])
random.seed(seed)
numpy.random.seed(seed)
runpy.run_path("gen_data.py", run_name="__main__")
"""

_EMPTY_TORCH = """
def __getattr__(name):
    raise AttributeError(f"torch is not installed, and gen_data.py uses torch.{name}")
"""


class ExampleOracle:
    """Oracle of a cann-ops folder: gen_data.py gives inputs and golden outputs together.

    Expectations are remembered by the content of the inputs they belong to, so ``expected`` answers for
    inputs that the same oracle handed out.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._origins = read_example(folder).inputs
        self._golden: dict[str, list[list[Array]]] = {}

    def inputs(self, case: Case, seed: int) -> list[list[Array]]:
        """Return, for each input parameter, its read-only arrays; none for an absent optional one.

        Raises:
            OperatorFormatError: gen_data.py fails, or writes other files or sizes than main.cpp reads.
        """
        with tempfile.TemporaryDirectory(prefix="ascend-gym-example-") as scratch:
            work = Path(scratch) / "example"
            shutil.copytree(self._folder / EXAMPLE_FOLDER, work)
            _run_gen_data(work, seed)
            inputs = _read_inputs(work, case, self._origins)
            self._golden[_content_digest(inputs)] = _read_golden(work, case)
        return inputs

    def expected(self, case: Case, inputs: Sequence[Sequence[Array]]) -> list[list[Array]]:
        """Return, for each output parameter, its golden arrays in the output dtype.

        Raises:
            MisuseError: ``inputs`` were not handed out by this oracle.
        """
        golden = self._golden.get(_content_digest(inputs))
        if golden is None:
            raise MisuseError(
                f"{self._folder.name}: golden outputs are known only for inputs that inputs() of this oracle "
                f"returned"
            )
        return golden

    def judge(
        self, case: Case, outputs: Sequence[Sequence[Array]], expected: Sequence[Sequence[Array]]
    ) -> Verdict:
        """Compare outputs with golden outputs."""
        return judge(case, outputs, expected)


def _content_digest(arrays: Sequence[Sequence[Array]]) -> str:
    return digest_of([[array.tobytes() for array in row] for row in arrays])


def _run_gen_data(work: Path, seed: int) -> None:
    for name in ("input", "output"):
        (work / name).mkdir(exist_ok=True)
    python_path = [os.environ["PYTHONPATH"]] if os.environ.get("PYTHONPATH") else []
    if importlib.util.find_spec("torch") is None:
        stubs = work.parent / "stubs"
        stubs.mkdir()
        (stubs / "torch.py").write_text(_EMPTY_TORCH, encoding="utf-8")
        python_path.append(str(stubs))
    try:
        done = subprocess.run(
            [sys.executable, "-c", _RUNNER, str(seed % 2**32)],
            cwd=work,
            env={"PATH": os.defpath, "PYTHONPATH": os.pathsep.join(python_path)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=GEN_DATA_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise OperatorFormatError(f"gen_data.py did not finish within {GEN_DATA_TIMEOUT_S:g} s") from None
    if done.returncode != 0:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise OperatorFormatError(f"gen_data.py failed: {lines[-1] if lines else f'exit {done.returncode}'}")


def _read_inputs(work: Path, case: Case, origins: Sequence[ExampleInput]) -> list[list[Array]]:
    by_name = {origin.name: origin for origin in origins}
    arrays: list[list[Array]] = []
    for tensor in case.inputs:
        if tensor.optional_absent:
            arrays.append([])
            continue
        origin = by_name[tensor.name]
        if origin.file is not None:
            arrays.append([_read_tensor(work / "input" / origin.file, tensor)])
        else:
            arrays.append([_from_literals(origin, tensor)])
    return arrays


def _from_literals(origin: ExampleInput, tensor: TensorSpec) -> Array:
    if len(origin.literals) != math.prod(tensor.shapes[0]):
        raise OperatorFormatError(
            f"main.cpp gives {len(origin.literals)} numbers for {tensor.name} of shape {tensor.shapes[0]}"
        )
    array = np.array(origin.literals).astype(numpy_dtype(tensor.dtype)).reshape(tensor.shapes[0])
    array.flags.writeable = False
    return array


def _read_golden(work: Path, case: Case) -> list[list[Array]]:
    files = sorted((work / "output").glob("*golden*.bin"))
    if len(files) != len(case.outputs):
        raise OperatorFormatError(
            f"gen_data.py wrote golden files {[file.name for file in files]} for {len(case.outputs)} outputs"
        )
    return [[_read_tensor(file, tensor)] for file, tensor in zip(files, case.outputs, strict=True)]


def _read_tensor(path: Path, tensor: TensorSpec) -> Array:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise OperatorFormatError(f"gen_data.py wrote no {path.parent.name}/{path.name}") from None
    if len(data) != tensor.size_bytes:
        raise OperatorFormatError(
            f"{path.parent.name}/{path.name} has {len(data)} bytes; {tensor.name} with shape "
            f"{tensor.shapes[0]} of {tensor.dtype.value} has {tensor.size_bytes}"
        )
    return np.frombuffer(data, dtype=numpy_dtype(tensor.dtype)).reshape(tensor.shapes[0])
