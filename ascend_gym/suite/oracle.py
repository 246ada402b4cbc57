"""Oracles: inputs, expectations and verdicts of an operator, from the files in its folder.

``reference.py`` is code of the operator's author and runs in the trusted process; it must define

    def reference(inputs, attributes): ...

where ``inputs`` maps parameter names to arrays (lists of arrays for list parameters; absent optional
inputs are left out), ``attributes`` is the mapping of the case, and the result maps output names to
arrays (lists for list parameters). Floating results may be of any width: give float32 for two-byte
outputs of many millions of elements (13 bits below an fp16 output, a third of the time of float64) and
float64 where sums or cancellation need it and for float32 outputs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from ascend_gym.core.digest import digest_of
from ascend_gym.core.errors import MisuseError, OperatorFormatError
from ascend_gym.core.protocols import Oracle, Verdict
from ascend_gym.core.records import Case, OpSpec, TensorSpec
from ascend_gym.suite.cann_cases import REFERENCE_NAME, case_folder
from ascend_gym.suite.cann_golden import ExampleOracle
from ascend_gym.suite.inputs import Array, case_inputs
from ascend_gym.suite.loader import folder_digest
from ascend_gym.suite.verdict import judge

Reference = Callable[[Mapping[str, Any], Mapping[str, Any]], Mapping[str, Any]]


def oracle_for(spec: OpSpec) -> Oracle:
    """Return the oracle of an operator.

    Raises:
        MisuseError: the folder changed since ``spec`` was loaded.
        OperatorFormatError: ``reference.py`` cannot be imported or defines no ``reference`` function.
    """
    folder = Path(spec.folder)
    if folder_digest(folder) != spec.folder_digest:
        raise MisuseError(f"{folder} changed since {spec.op_id} was loaded; load the operator again")
    cases = case_folder(folder)
    if cases is not None:
        return reference_oracle(cases)
    return ExampleOracle(folder)


def reference_oracle(folder: Path) -> ReferenceOracle:
    """Return the oracle of the ``reference.py`` in a folder.

    Raises:
        OperatorFormatError: it cannot be imported or defines no ``reference`` function.
    """
    return ReferenceOracle(_load_reference(folder / REFERENCE_NAME))


class ReferenceOracle:
    """Draws inputs from the case and computes expectations with a numpy reference."""

    def __init__(self, reference: Reference) -> None:
        self._reference = reference

    def inputs(self, case: Case, seed: int) -> list[list[Array]]:
        """Return, for each input parameter, its read-only arrays."""
        return case_inputs(case, seed)

    def expected(self, case: Case, inputs: Sequence[Sequence[Array]]) -> list[list[Array]]:
        """Return, for each output parameter, its expected arrays; none for an open one.

        Raises:
            OperatorFormatError: the reference left out an output or gave it another shape.
        """
        named = {
            tensor.name: list(arrays) if tensor.dynamic else arrays[0]
            for tensor, arrays in zip(case.inputs, inputs, strict=True)
            if not tensor.optional_absent
        }
        results = self._reference(named, case.attributes)
        return [
            [] if tensor.open else _output_arrays(results, tensor, case.case_id) for tensor in case.outputs
        ]

    def judge(
        self, case: Case, outputs: Sequence[Sequence[Array]], expected: Sequence[Sequence[Array]]
    ) -> Verdict:
        """Compare outputs with expectations."""
        return judge(case, outputs, expected)


def _output_arrays(results: Mapping[str, Any], tensor: TensorSpec, case_id: str) -> list[Array]:
    if tensor.name not in results:
        raise OperatorFormatError(
            f"case {case_id!r}: the reference returned {sorted(results)}, without output {tensor.name!r}"
        )
    result = results[tensor.name]
    arrays = [np.asarray(array) for array in (result if tensor.dynamic else [result])]
    shapes = tuple(array.shape for array in arrays)
    if shapes != tensor.shapes:
        raise OperatorFormatError(
            f"case {case_id!r}: the reference gave {tensor.name!r} the shapes {shapes}, "
            f"op.toml says {tensor.shapes}"
        )
    return arrays


def _load_reference(path: Path) -> Reference:
    try:
        source = path.read_bytes()
        name = f"_ascend_gym_reference_{digest_of(str(path), source)[:24]}"
        module = sys.modules.get(name) or _module_of(name, path, source)
    except (OSError, ImportError, SyntaxError, ValueError, NameError, AttributeError) as error:
        raise OperatorFormatError(f"{path}: cannot be imported: {error}") from error
    function = getattr(module, "reference", None)
    if not callable(function):
        raise OperatorFormatError(f"{path}: defines no function reference(inputs, attributes)")
    reference: Reference = function
    return reference


def _module_of(name: str, path: Path, source: bytes) -> ModuleType:
    """Run ``source`` itself: Python's bytecode cache misses a change of equal length within a second."""
    module = ModuleType(name)
    module.__file__ = str(path)
    exec(compile(source, str(path), "exec"), module.__dict__)
    sys.modules[name] = module
    return module
