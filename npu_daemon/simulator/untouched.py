"""Elements of outputs that no instruction wrote, as an explanation of a wrong result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ascend_gym.core.protocols import Failure
from ascend_gym.core.records import Case, Diagnostic, Phase, TensorSpec
from ascend_gym.suite.inputs import Array


def never_written(
    case: Case, price_of: Callable[[], dict[str, Any] | Failure], outputs: Sequence[Sequence[Array]]
) -> tuple[Diagnostic, ...]:
    """Name the outputs of which some elements were written by no instruction.

    Args:
        case: describes the outputs.
        price_of: returns what the pricing program says of the run; called only if some element is as memory
            is before the first run.
        outputs: what the run left.
    """
    if not any(_holds_untouched(array) for arrays in outputs for array in arrays):
        return ()
    price = price_of()
    if isinstance(price, Failure):
        return ()
    missing, first = price["unwritten"], price["first_unwritten"]
    return tuple(
        _described(tensor, missing[tensor.name], first[tensor.name])
        for tensor in case.outputs
        if tensor.name in missing
    )


def holds_nan(array: Array) -> bool:
    """Say whether an array has an element that is no number, as what was never written is."""
    floats = array.dtype.kind in "fc" or array.dtype.name == "bfloat16"
    return floats and bool(np.isnan(array).any())


def _holds_untouched(array: Array) -> bool:
    words = np.ascontiguousarray(array).reshape(-1).view(f"u{array.itemsize}")
    return bool((words == np.iinfo(words.dtype).max).any())


def _described(tensor: TensorSpec, missing_bytes: int, first_byte: int) -> Diagnostic:
    bits = tensor.dtype.bits
    where = ""
    if not tensor.dynamic:
        first = np.unravel_index(first_byte * 8 // bits, tensor.shapes[0])
        where = f", the first at {[int(axis) for axis in first]}"
    message = (
        f"{-(-missing_bytes * 8 // bits)} elements of {tensor.name} were never written by any "
        f"instruction{where}: do blocks, tiles and the last, shorter tile together cover the whole output?"
    )
    return Diagnostic(phase=Phase.RUN_KERNEL, message=message)
