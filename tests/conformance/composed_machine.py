"""A machine for library calls that are composed of vector instructions, and what tests of them share."""

from __future__ import annotations

import numpy as np
import pytest
from vector_machine import Array, Machine, build_machine

KB = 1024
UB = 256 * KB
SRC, OTHER, DST, FAR, TMP = 0, 16 * KB, 32 * KB, 56 * KB, 64 * KB
RUNTIME = [
    *("math_elementary", "math_sequences", "math_gamma", "math_rounding", "math_trigonometric", "math_power"),
    *("vector_elementwise", "vector_cast", "vector_compare", "vector_transpose", "vector_progression"),
    *("vector_gather", "vector_reduce", "vector_reduce_all", "vector_sort", "vector_fused"),
    *(
        "composed_demands",
        "library_rows",
        "library_softmax",
        "softmax_sequence",
        "copy",
        "cube_copy",
        "fill",
        "atomic",
    ),
]
FLOATS = ("float32", "float16")


@pytest.fixture(scope="module")
def machine(request: pytest.FixtureRequest) -> Machine:
    return build_machine("composed", RUNTIME, request.config.cache.mkdir("vector_machine"))


def drawn(seed: int, shape: int | tuple[int, ...], low: float, high: float, dtype: str) -> Array:
    return np.random.default_rng(seed).uniform(low, high, shape).astype(dtype)


def bits(value: float, dtype: str) -> int:
    width = {2: np.uint16, 4: np.uint32}[np.dtype(dtype).itemsize]
    return int(np.array(value, dtype).view(width))


def block(dtype: str) -> int:
    return 32 // np.dtype(dtype).itemsize
