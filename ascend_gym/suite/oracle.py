"""Oracles: inputs, expectations and verdicts of an operator, from the files in its folder.

``reference.py`` is code of the operator's author and runs in the trusted process; it must define

    def reference(inputs, attributes): ...

where ``inputs`` maps parameter names to arrays (lists of arrays for list parameters; absent optional
inputs are left out), ``attributes`` is the mapping of the case, and the result maps output names to
arrays (lists for list parameters). It may define

    def inputs(case, rng): ...

too, for inputs that depend on each other: a mapping of the parameters that it makes, by a
``numpy.random.Generator``; the others are drawn as the manifest says.

Floating results may be of any width: give float32 for two-byte outputs of many millions of elements (13 bits
below an fp16 output, a third of the time of float64) and float64 where sums or cancellation need it and for
float32 outputs.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from ascend_gym.core.digest import digest_of, encoded
from ascend_gym.core.errors import MisuseError, OperatorFormatError
from ascend_gym.core.protocols import Oracle, Verdict
from ascend_gym.core.records import Case, OpSpec, TensorSpec
from ascend_gym.suite.cann_cases import REFERENCE_NAME, case_folder
from ascend_gym.suite.inputs import Array, case_inputs, case_variants, numpy_dtype, read_data_file
from ascend_gym.suite.loader import folder_digest
from ascend_gym.suite.special_rows import with_special_rows
from ascend_gym.suite.verdict import judge


def oracle_for(spec: OpSpec) -> Oracle:
    """Return the oracle of an operator.

    Raises:
        MisuseError: the folder changed since ``spec`` was loaded.
        OperatorFormatError: ``reference.py`` cannot be imported or defines no ``reference`` function.
    """
    folder = Path(spec.folder)
    if folder_digest(folder) != spec.folder_digest:
        raise MisuseError(f"{folder} changed since {spec.op_id} was loaded; load the operator again")
    return reference_oracle(case_folder(folder))


def reference_oracle(folder: Path) -> ReferenceOracle:
    """Return the oracle of the ``reference.py`` in a folder.

    Raises:
        OperatorFormatError: it cannot be imported or defines no ``reference`` function.
    """
    return ReferenceOracle(_load_module(folder / REFERENCE_NAME), folder)


class ReferenceOracle:
    """Draws inputs as the case says and computes expectations with a numpy reference.

    Args:
        module: of the ``reference.py``; ``None`` where every output is a data file.
        folder: where data files lie.
    """

    def __init__(self, module: ModuleType | None, folder: Path) -> None:
        self._reference = getattr(module, "reference", None)
        self._dependent_inputs = getattr(module, "inputs", None)
        self._folder = folder

    def inputs(self, case: Case, seed: int) -> list[list[Array]]:
        """Return, for each input parameter, its read-only arrays, one of each declared shape.

        Raises:
            OperatorFormatError: ``inputs`` of the reference fails, or returns what the case does not say.
        """
        known = encoded(case)
        return [
            [
                with_special_rows(known, seed, tensor, index, array)
                for index, array in enumerate(() if tensor.optional_absent else arrays)
            ]
            for tensor, arrays in zip(case.inputs, self._ordinary_inputs(case, seed), strict=True)
        ]

    def _ordinary_inputs(self, case: Case, seed: int) -> list[list[Array]]:
        drawn = case_inputs(case, seed, self._folder)
        if self._dependent_inputs is None:
            return drawn
        entropy = int(digest_of("dependent inputs", case, seed), 16)
        rng = np.random.Generator(np.random.Philox(np.random.SeedSequence(entropy)))
        what = f"inputs(case, rng), case {case.case_id!r}"
        with _faults_named(self._folder / REFERENCE_NAME, what, self._dependent_inputs):
            made = _mapping(self._dependent_inputs(case, rng))
            unknown = made.keys() - {tensor.name for tensor in case.inputs}
            if unknown:
                raise ValueError(f"returned {sorted(unknown)}, which are no inputs of the case")
            return [
                _made_arrays(made[tensor.name], tensor) if tensor.name in made else arrays
                for tensor, arrays in zip(case.inputs, drawn, strict=True)
            ]

    def expected(self, case: Case, inputs: Sequence[Sequence[Array]]) -> list[list[Array]]:
        """Return, for each output parameter, its expected arrays; none for an open one.

        Raises:
            OperatorFormatError: the reference fails, left out an output or gave it another shape.
        """
        named = {
            tensor.name: list(arrays) if tensor.dynamic else arrays[0]
            for tensor, arrays in zip(case.inputs, inputs, strict=True)
            if not tensor.optional_absent
        }
        variant = self._variant(case, inputs)
        results: Mapping[str, Any] = {}
        if self._reference is not None:
            what = f"reference(inputs, attributes), case {case.case_id!r}"
            named_faults = _faults_named(self._folder / REFERENCE_NAME, what, self._reference)
            with named_faults, np.errstate(over="ignore", divide="ignore", invalid="ignore"):
                results = _mapping(self._reference(named, case.attributes))
        return [self._expected_arrays(case, tensor, results, variant) for tensor in case.outputs]

    def judge(
        self, case: Case, outputs: Sequence[Sequence[Array]], expected: Sequence[Sequence[Array]]
    ) -> Verdict:
        """Compare outputs with expectations."""
        return judge(case, outputs, expected)

    def _variant(self, case: Case, inputs: Sequence[Sequence[Array]]) -> int:
        """Return which variant of the data files of a case these inputs are."""
        count = case_variants(case, self._folder)
        given = list(zip(case.inputs, inputs, strict=True))
        for variant in range(count if count > 1 else 0):
            if all(_is_variant(tensor, arrays, self._folder, variant) for tensor, arrays in given):
                return variant
        if count > 1:
            raise MisuseError(
                f"case {case.case_id!r}: these inputs are none of the {count} in its data files"
            )
        return 0

    def _expected_arrays(
        self, case: Case, tensor: TensorSpec, results: Mapping[str, Any], variant: int
    ) -> list[Array]:
        if tensor.open:
            return []
        if tensor.values.kind == "file" and tensor.name not in results:
            return [
                read_data_file(tensor, index, self._folder, variant=variant, exact=False)
                for index in range(len(tensor.shapes))
            ]
        with _faults_named(self._folder / REFERENCE_NAME, f"case {case.case_id!r}", self._reference):
            return _output_arrays(results, tensor)


def _is_variant(tensor: TensorSpec, arrays: Sequence[Array], folder: Path, variant: int) -> bool:
    if not tensor.values.has_variants or tensor.optional_absent:
        return True
    return all(
        array.tobytes() == read_data_file(tensor, index, folder, variant=variant).tobytes()
        for index, array in enumerate(arrays)
    )


@contextmanager
def _faults_named(path: Path, what: str, function: Callable[..., Any] | None = None) -> Iterator[None]:
    """Turn whatever the author's code raises into a fault of the operator, with file and line.

    Args:
        path: of the author's file.
        what: was called.
        function: whose first line is named where no line of the file raised.
    """
    code = getattr(function, "__code__", None)
    first_line = code.co_firstlineno if code is not None and code.co_filename == str(path) else None
    try:
        yield
    except MemoryError:
        raise  # of this host
    except (Exception, SystemExit) as error:
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if frame.filename == str(path)] or [first_line]
        line = error.lineno if isinstance(error, SyntaxError) else lines[-1]
        place = f"{path}:{line}" if line else str(path)
        reason = str(error) if isinstance(error, _ContractError) else f"{type(error).__name__}: {error}"
        raise OperatorFormatError(f"{place}: {what}: {reason}") from error


class _ContractError(ValueError):
    """What a function of ``reference.py`` returned is not what was asked of it."""


def _mapping(result: Any) -> Mapping[str, Any]:
    if not isinstance(result, Mapping):
        raise _ContractError(f"expected a dict of arrays by name, got {type(result).__name__}")
    return result


def _made_arrays(result: Any, tensor: TensorSpec) -> list[Array]:
    """Return the arrays that ``inputs`` of a reference made for a tensor, in its type and read-only."""
    arrays = []
    for array in result if tensor.dynamic else [result]:
        with np.errstate(over="ignore", invalid="ignore"):
            arrays.append(np.ascontiguousarray(array).astype(numpy_dtype(tensor.dtype)))
        arrays[-1].flags.writeable = False
    _check_shapes(tensor, arrays)
    return arrays


def _output_arrays(results: Mapping[str, Any], tensor: TensorSpec) -> list[Array]:
    if tensor.name not in results:
        raise _ContractError(f"returned {sorted(results)}, without output {tensor.name!r}")
    result = results[tensor.name]
    arrays = [np.asarray(array) for array in (result if tensor.dynamic else [result])]
    _check_shapes(tensor, arrays)
    return arrays


def _check_shapes(tensor: TensorSpec, arrays: Sequence[Array]) -> None:
    shapes = tuple(array.shape for array in arrays)
    if shapes != tensor.shapes:
        raise _ContractError(f"returned {tensor.name!r} in the shapes {shapes}, op.toml says {tensor.shapes}")
    kinds = {array.dtype.kind for array in arrays} - set("biufcV")
    if kinds:
        raise _ContractError(f"returned {tensor.name!r} as {arrays[0].dtype}, which is no array of numbers")


def _load_module(path: Path) -> ModuleType | None:
    if not path.is_file():
        return None
    with _faults_named(path, "cannot be imported"):
        source = path.read_bytes()
        name = f"_ascend_gym_reference_{digest_of(str(path), source)[:24]}"
        module = sys.modules.get(name) or _module_of(name, path, source)
    if not callable(getattr(module, "reference", None)):
        raise OperatorFormatError(f"{path}: defines no function reference(inputs, attributes)")
    return module


def _module_of(name: str, path: Path, source: bytes) -> ModuleType:
    """Run ``source`` itself: Python's bytecode cache misses a change of equal length within a second."""
    module = ModuleType(name)
    module.__file__ = str(path)
    exec(compile(source, str(path), "exec"), module.__dict__)
    sys.modules[name] = module
    return module
