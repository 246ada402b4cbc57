"""The Matmul object against numpy: tails, transposes, layouts, bias, types, and what it traces."""

from __future__ import annotations

from collections import Counter
from dataclasses import astuple, dataclass, replace
from math import ceil
from typing import Any

import numpy as np
import pytest
from vector_machine import Array, Machine, MachineFault, build_machine, dtype_of

ALL, BLOCKS, SEQUENTIAL, PARTIAL_SUMS, BATCHES, TWICE = range(6)
ATOMIC_ADD, ATOMIC_MAX = 1, 2
_FLAGS = ["SetFlag", "WaitFlag"]  # of a buffer that is full
TYPES = [
    ("float16", "float32"),
    ("float16", "float16"),
    ("bfloat16", "float32"),
    ("float32", "float32"),
    ("int8", "int32"),
]


@dataclass(frozen=True)
class Problem:
    """A multiplication; 0 as an extent of the part stands for the whole, offsets count elements."""

    mode: int = ALL
    m: int = 33
    n: int = 50
    k: int = 70
    single_m: int = 0
    single_n: int = 0
    single_k: int = 0
    base_m: int = 16
    base_n: int = 32
    base_k: int = 32
    n_first: bool = False
    transposed_a: bool = False
    transposed_b: bool = False
    offset_a: int = 0
    offset_b: int = 0
    offset_c: int = 0
    atomic: int = 0
    quant: int = 0
    hf32: int = 0
    depth_a: int = 1
    depth_b: int = 1
    step_ka: int = 1
    step_kb: int = 1
    batches: int = 1
    quant_by_column: bool = False

    def numbers(self) -> tuple[int, ...]:
        whole = replace(
            self,
            single_m=self.single_m or self.m,
            single_n=self.single_n or self.n,
            single_k=self.single_k or self.k,
        )
        return tuple(int(value) for value in astuple(whole))


@pytest.fixture(scope="module")
def machine(request: pytest.FixtureRequest) -> Machine:
    runtime = [
        "matmul",
        "matmul_operands",
        "matmul_plan",
        "matmul_trace",
        "operand_path",
        "matrix_copies",
        "matrix",
        "gemm",
    ]
    return build_machine("matmul", runtime, request.config.cache.mkdir("vector_machine"))


def values(shape: tuple[int, ...], dtype: str, seed: int) -> Array:
    """Small whole numbers: every sum of products is exact in every type."""
    limit = 4 if dtype != "int8" else 100
    numbers = np.random.default_rng(seed).integers(-limit, limit + 1, shape)
    return numbers.astype(dtype_of(dtype))


def fractals(matrix: Array, columns: int) -> Array:
    """Return a matrix in NZ: blocks of 16 rows by ``columns``, columns of blocks one after another."""
    rows, width = (ceil(matrix.shape[0] / 16) * 16, ceil(matrix.shape[1] / columns) * columns)
    padded = np.zeros((rows, width), matrix.dtype)
    padded[: matrix.shape[0], : matrix.shape[1]] = matrix
    return np.ascontiguousarray(padded.reshape(rows, width // columns, columns).transpose(1, 0, 2))


def from_fractals(stored: Array, shape: tuple[int, int]) -> Array:
    blocks, rows, columns = stored.shape
    return stored.transpose(1, 0, 2).reshape(rows, blocks * columns)[: shape[0], : shape[1]]


def product(a: Array, b: Array) -> Array:
    wide = np.int64 if a.dtype == np.int8 else np.float64
    result: Array = a.astype(wide) @ b.astype(wide)
    return result


class Run:
    """One multiplication on the machine; ``result`` starts out as what was there before."""

    def __init__(
        self, machine: Machine, problem: Problem, types: tuple[str, str], layout: str = "ND"
    ) -> None:
        self.machine, self.problem, self.types, self.layout = machine, problem, types, layout
        self.a = values((problem.batches, problem.m, problem.k), types[0], 1)
        self.b = values((problem.k, problem.n), types[0], 2)

    def stored(self, matrix: Array, transposed: bool) -> Array:
        matrix = np.ascontiguousarray(matrix.T if transposed else matrix)
        return matrix if self.layout == "ND" else fractals(matrix, 32 // matrix.dtype.itemsize)

    def __call__(self, result: Array, bias: Array | None = None) -> Array:
        a = np.stack([self.stored(each, self.problem.transposed_a) for each in self.a])
        b = self.stored(self.b, self.problem.transposed_b)
        places: list[int] = []
        for array in (a, b, bias, result):
            places += [0, 0] if array is None else [array.ctypes.data, array.nbytes]
        name = f"matmul {self.types[0]} {self.types[1]} {self.layout}"
        self.machine.reset()
        self.machine.call(name, *places, *self.problem.numbers())
        return result

    def empty(self) -> Array:
        shape = (self.problem.batches, self.problem.m, self.problem.n)
        return np.zeros(shape if self.problem.batches > 1 else shape[1:], dtype_of(self.types[1]))

    def expected(self) -> Array:
        return product(self.a[0] if self.problem.batches == 1 else self.a, self.b)


@pytest.mark.parametrize("types", TYPES, ids="-".join)
@pytest.mark.parametrize("transposed", ["nn", "nt", "tn", "tt"])
@pytest.mark.parametrize("mode", [ALL, BLOCKS])
def test_products_of_every_type_and_transposition(
    machine: Machine, types: tuple[str, str], transposed: str, mode: int
) -> None:
    problem = Problem(mode, transposed_a=transposed[0] == "t", transposed_b=transposed[1] == "t")
    run = Run(machine, problem, types)
    np.testing.assert_array_equal(run(run.empty()), run.expected().astype(dtype_of(types[1])))


@pytest.mark.parametrize("shape", [(1, 1, 1), (16, 16, 16), (17, 129, 5), (100, 3, 1030), (800, 20, 33)])
@pytest.mark.parametrize("n_first", [False, True])
def test_shapes_with_and_without_tails(machine: Machine, shape: tuple[int, int, int], n_first: bool) -> None:
    m, n, k = shape
    run = Run(machine, Problem(BLOCKS, m, n, k, n_first=n_first), TYPES[0])
    np.testing.assert_array_equal(run(run.empty()), run.expected())


@pytest.mark.parametrize("types", [TYPES[0], TYPES[3], TYPES[4]], ids="-".join)
@pytest.mark.parametrize("transposed", ["nn", "tt"])
def test_fractal_layouts(machine: Machine, types: tuple[str, str], transposed: str) -> None:
    """Results of 32 bits come in fractals of 16 by 16, whatever the operands are."""
    problem = Problem(transposed_a=transposed[0] == "t", transposed_b=transposed[1] == "t")
    run = Run(machine, problem, types, "NZ")
    stored = fractals(run.empty(), 16)
    np.testing.assert_array_equal(from_fractals(run(stored), (problem.m, problem.n)), run.expected())


def test_the_bias_waits_for_its_copy_and_for_the_multiplication_before(machine: Machine) -> None:
    """Buffers of its own in L1 and the bias table, as published (c1_buffer.h, c2_buffer.h)."""
    run = Run(machine, Problem(BLOCKS, m=32, n=32, k=32, base_n=16), TYPES[0])
    run(run.empty(), values((32,), "float32", 3))
    names = [line.name for line in machine.trace()]
    begins = [at for at, name in enumerate(names) if name == "CopyL1ToBias"]
    assert len(begins) == 4
    for at in begins[:1]:
        assert names[at - 3 : at + 4] == [
            "CopyGmToL1",
            "SetFlag",
            "WaitFlag",
            "CopyL1ToBias",
            *_FLAGS,
            "SetFlag",
        ]
    for at in begins[1:]:
        assert names[at - 5 : at] == ["WaitFlag", "CopyGmToL1", "SetFlag", "WaitFlag", "WaitFlag"]
        assert names[at : at + 4] == ["CopyL1ToBias", *_FLAGS, "SetFlag"]


@pytest.mark.parametrize("types", [TYPES[0], TYPES[1], TYPES[4]], ids="-".join)
def test_bias_is_added_to_every_row(machine: Machine, types: tuple[str, str]) -> None:
    run = Run(machine, Problem(), types)
    bias = values((run.problem.n,), types[1], 3)
    expected = run.expected() + bias.astype(np.float64)
    np.testing.assert_array_equal(run(run.empty(), bias), expected.astype(dtype_of(types[1])))


def test_the_part_of_one_core_lies_inside_the_whole(machine: Machine) -> None:
    problem = Problem(
        single_m=17, single_n=20, single_k=40, offset_a=70 * 3 + 5, offset_b=50 * 5 + 7, offset_c=50 * 3 + 7
    )
    run = Run(machine, problem, TYPES[0])
    expected = run.empty()
    expected[3:20, 7:27] = product(run.a[0][3:20, 5:45], run.b[5:45, 7:27])
    np.testing.assert_array_equal(run(run.empty()), expected)


@pytest.mark.parametrize("n_first", [False, True])
def test_sequential_blocks_are_matrices_of_their_own(machine: Machine, n_first: bool) -> None:
    problem = Problem(SEQUENTIAL, n_first=n_first)
    run = Run(machine, problem, TYPES[0])
    blocks = run(np.zeros((6, problem.base_m * problem.base_n), np.float32))
    whole = run.expected()
    places = [(row, column) for column in range(2) for row in range(3)]
    for (row, column), block in zip(sorted(places) if n_first else places, blocks, strict=True):
        part = whole[16 * row :, 32 * column :][:16, :32]
        np.testing.assert_array_equal(block[: part.size].reshape(part.shape), part)


def test_partial_sums_stay_in_l0c(machine: Machine) -> None:
    problem = Problem(PARTIAL_SUMS, m=16, n=32, k=64)
    run = Run(machine, problem, TYPES[0])
    np.testing.assert_array_equal(run(run.empty()), run.expected())


@pytest.mark.parametrize(("atomic", "combine"), [(ATOMIC_ADD, np.add), (ATOMIC_MAX, np.maximum)])
def test_atomic_results(machine: Machine, atomic: int, combine: Any) -> None:
    run = Run(machine, Problem(atomic=atomic), TYPES[0])
    before = values(run.empty().shape, "float32", 4)
    np.testing.assert_array_equal(run(before.copy()), combine(before, run.expected()))


def test_batches_share_an_operand_that_comes_once(machine: Machine) -> None:
    run = Run(machine, Problem(BATCHES, batches=3), TYPES[0])
    np.testing.assert_array_equal(run(run.empty()), run.expected())


def scale_bits(scale: float, offset: int = 0) -> int:
    """Return a parameter of SetQuantScalar: 19 bits of the factor, 9 of the offset, and the sign bit."""
    bits = int(np.float32(scale).view(np.uint32)) & 0xFFFFE000
    return bits | (offset & 0x1FF) << 37 | 1 << 46


def test_dequantised_results(machine: Machine) -> None:
    run = Run(machine, Problem(quant=scale_bits(0.25)), ("int8", "float16"))
    expected = (run.expected().astype(np.float32) * 0.25).astype(np.float16)
    np.testing.assert_array_equal(run(run.empty()), expected)


def test_parameters_of_columns_are_copied_for_each_block(machine: Machine) -> None:
    run = Run(machine, Problem(quant=scale_bits(0.25), quant_by_column=True), ("int8", "float16"))
    expected = (run.expected().astype(np.float32) * 0.25).astype(np.float16)
    np.testing.assert_array_equal(run(run.empty()), expected)
    blocks, rounds = 3 * 2, 3
    assert traced(machine)["CopyL1ToFixpipe"] == blocks
    assert traced(machine)["CopyGmToL1"] == 2 * blocks * rounds + blocks


def test_quantised_results_are_rounded_and_saturated(machine: Machine) -> None:
    run = Run(machine, Problem(quant=scale_bits(1.5, -3)), ("float16", "int8"))
    expected = np.clip(np.rint(run.expected() * 1.5 - 3), -128, 127)
    np.testing.assert_array_equal(run(run.empty()), expected.astype(np.int8))


@pytest.mark.parametrize("mode", [1, 2])
def test_hf32_keeps_eleven_bits(machine: Machine, mode: int) -> None:
    run = Run(machine, Problem(m=1, n=1, k=1, hf32=mode), TYPES[3])
    step = 2.0**-11
    run.a[:] = 1 + step / 2  # a tie: to even below, or away from zero
    run.b[:] = 1
    assert run(run.empty())[0, 0] == (1.0 if mode == 1 else 1 + step)


def traced(machine: Machine) -> Counter[str]:
    return Counter(line.name for line in machine.trace() if not line.name.endswith("Flag"))


def test_every_base_block_is_loaded_multiplied_and_copied_out(machine: Machine) -> None:
    run = Run(machine, Problem(), TYPES[0])
    run(run.empty())
    blocks, rounds = 3 * 2, 3
    assert traced(machine) == {
        "CopyGmToL1": 2 * blocks * rounds,
        "LoadL0A": blocks * rounds,
        "LoadL0B": blocks * rounds,
        "Mmad": blocks * rounds,
        "CopyL0cToGm": blocks,
    }


def test_both_operands_are_in_l1_before_either_is_loaded(machine: Machine) -> None:
    """MTE1 awaits both copies, then loads, then frees both parts, and the next copies await that."""
    run = Run(machine, Problem(m=16, n=32, k=64), TYPES[0])
    run(run.empty())
    copy = ["CopyGmToL1", "SetFlag", "WaitFlag"]
    loads = ["LoadL0A", "LoadL0B", "SetFlag", "WaitFlag", "SetFlag", "SetFlag", "Mmad", "SetFlag"]
    names = [line.name for line in machine.trace()]
    assert names[: len(copy * 2 + loads)] == copy * 2 + loads
    assert names[len(copy * 2 + loads) :][:8] == ["WaitFlag", *copy] * 2


def test_steps_and_depths_save_copies(machine: Machine) -> None:
    """All of k in one step: b stays while the rows advance, a comes anew for each block."""
    run = Run(machine, Problem(step_ka=3, step_kb=3, depth_a=3, depth_b=3), TYPES[0])
    run(run.empty())
    assert traced(machine)["CopyGmToL1"] == 3 * 2 + 2


def test_operands_are_copied_again_for_each_product(machine: Machine) -> None:
    """After the last block nothing of them stays, even where L1 has held all of both."""
    once = Problem(m=16, n=32, k=64, step_ka=2, step_kb=2, depth_a=2, depth_b=2)
    copies = []
    for mode in (ALL, TWICE):
        run = Run(machine, replace(once, mode=mode), TYPES[0])
        np.testing.assert_array_equal(run(run.empty()), run.expected())
        copies.append(traced(machine)["CopyGmToL1"])
    assert copies == [2, 4]


def test_l0_buffers_take_turns(machine: Machine) -> None:
    run = Run(machine, Problem(), TYPES[0])
    run(run.empty())
    starts = [line.operands[0][0] for line in machine.trace() if line.name == "LoadL0A"]
    assert starts == [0, 32768] * (len(starts) // 2)


@pytest.mark.parametrize(
    ("problem", "message"),
    [
        (Problem(single_m=60), "out of bounds"),
        (Problem(single_k=-1), "extents"),
        (Problem(k=700), "out of bounds"),
    ],
    ids=["result", "no extent", "operand"],
)
def test_matrices_end_where_their_tensors_end(machine: Machine, problem: Problem, message: str) -> None:
    run = Run(machine, problem, TYPES[0])
    run.a = run.a[:, :, :70]
    if problem.single_k < 0:
        run.problem = replace(problem, single_k=0, k=0)
    with pytest.raises(MachineFault, match=message):
        run(run.empty())
