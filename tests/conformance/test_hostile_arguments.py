"""Functions that kernels may call, given what no honest kernel gives: each ends the launch with a message."""

from __future__ import annotations

import numpy as np
import pytest
from vector_machine import Machine, MachineFault, build_machine

pytestmark = pytest.mark.slow

RUNTIME = (
    *("atomic", "copy", "cross_core", "cube_copy", "cube_load", "device_output", "fill", "fixpipe", "gemm"),
    *(
        "instrumentation",
        "composed_demands",
        "library_rows",
        "library_softmax",
        "softmax_sequence",
        "list_descriptor",
        "math_elementary",
        "math_sequences",
        "math_gamma",
    ),
    *(
        "matmul",
        "matmul_operands",
        "matmul_plan",
        "matmul_trace",
        "matrix",
        "matrix_copies",
        "mmad",
        "operand_path",
    ),
    *("quantization", "tiling_data", "vector_cast", "vector_compare", "vector_elementwise", "vector_gather"),
    *("vector_progression", "vector_reduce", "vector_sort", "vector_transpose"),
)
UB_BYTES = 64 * 1024
STACK_BYTES = 128 * 1024
CLASSES = 13
STACK_ACCESS, ACCESS, LOAD, STORE = 8, 10, 11, 12
MOST = 2**32 - 1
FAR = 2**63  # a distance at which sums wrap around
NOWHERE = 1 << 46  # an address that nothing lies at
FIRST = (1, 0)  # of a shape: counted
MASKED = (0, 0)
ALL = (2**64 - 1, 2**64 - 1)
LANES = (0, 1, 8)  # of an operand: address, block stride and repeat stride
UB, GM, L1, L0A = 0, 1, 2, 3
FLOAT, HALF = 0, 1  # of a Matmul problem


def matmul(
    extent: int = 64,
    base: tuple[int, int, int] = (64, 64, 64),
    *,
    depth: int = 1,
    buffers: int = 1,
    element: int = HALF,
    space: int = GM,
    quantisation: int = -1,
) -> tuple[int, ...]:
    """Return the numbers of a Matmul problem; those that are not named are possible."""
    return (extent, *base, depth, buffers, element, space, quantisation)


def load_3d(
    columns: int = 16, filter_width: int = 1, stride: int = 1, element: int = 2, first: int = 0, size: int = 4
) -> tuple[int, ...]:
    """Return the numbers of a load of 16 channels as rows of a convolution."""
    return (16, columns, 16, first, filter_width, stride, element, size)


# Call, arguments, what the message says.
ON_VECTOR_CORES = [
    ("asim_load", (NOWHERE, 8), "outside all memory of the kernel"),
    ("asim_store", (UB_BYTES - 4, 8), "touches unified buffer bytes"),
    ("asim_store", (NOWHERE, 8), "outside all memory of the kernel"),
    ("asim_load", (0, MOST), "touches unified buffer bytes"),
    ("asim_load of the stack", (STACK_BYTES - 4, 8), "past the end of the stack, which has 131072 bytes"),
    ("asim_store to the stack", (-8, 8), "the stack is full"),
    ("asim_store to the stack", (0, FAR), "past the end of the stack"),
    ("asim_load of gm", (-64, 8), "outside all memory of the kernel"),
    ("asim_load of gm", (70000, 8), "outside all memory of the kernel"),
    ("asim_load of L1", (), "the scalar unit does not reach L1"),
    ("asim_store to a constant", (), "constants of the kernel, which is read-only"),
    ("asim_memcpy", (0, NOWHERE, 64), "outside all memory of the kernel"),
    ("asim_memcpy", (NOWHERE, 0, 64), "outside all memory of the kernel"),
    ("asim_memset", (0, FAR), "touches unified buffer bytes"),
    ("asim_memcmp", (0, NOWHERE, 64), "outside all memory of the kernel"),
    ("asim_call", (16,), "the pointer is none to a function of the kernel"),
    ("asim_unreachable", (), "cannot be reached"),
    ("set_flag", (9, 1, 0), "from pipe 9 to pipe 1"),
    ("set_flag", (1, 7, 0), "from pipe 1 to pipe 7"),
    ("set_flag", (1, 2, MOST), "event id 4294967295 does not exist"),
    ("wait_flag", (200, 200, 0), "from pipe 200 to pipe 200"),
    ("pipe_barrier", (8,), "from pipe 8"),
    ("alloc_event_id", (1, 99), "from pipe 1 to pipe 99"),
    ("fetch_event_id", (99, 1), "from pipe 99 to pipe 1"),
    ("release_event_id", (99, 1, 0), "from pipe 99 to pipe 1"),
    ("cross_core_set", (3, 1, 0), "mode 3 does not exist"),
    ("cross_core_set", (0, 99, 0), "from pipe 99"),
    ("cross_core_wait", (31,), "nobody else is there"),
    ("sync_by_signals", (NOWHERE, 0), "belongs to no tensor"),
    ("sync_by_signals", (0, NOWHERE), "touches unified buffer bytes"),
    ("clean_cache", (NOWHERE,), "belongs to no tensor"),
    ("local_memory", (8,), "there is no memory of number 8"),
    ("queue_init", (0, 99, 1, UB, 2, 64), "from pipe 99"),
    ("queue_init", (0, 4, 1, GM, 2, 64), "there is none of number 1"),
    ("queue_init", (0, 4, 1, 77, 2, 64), "there is none of number 77"),
    ("queue_init", (0, 4, 1, UB, 17, 64), "a queue holds 1 to 16 buffers"),
    ("queue_init", (0, 4, 1, UB, 2, MOST), "unified buffer overflow"),
    ("queue_init", (MOST, 4, 1, L1, 2, MOST), "L1 overflow"),
    ("queue_allocate", (MOST,), "the queue has no buffers"),
    ("queue_enqueue", (7, 0, 4, 1), "the queue has no buffers"),
    ("queue_enqueue", (0, 0, 4, 99), "from pipe 4 to pipe 99"),
    ("queue_dequeue", (7, 4, 1), "the queue has no buffers"),
    ("queue_release", (MOST, 0), "the queue has no buffers"),
    ("allocate_buffer", (9, 64), "there is none of number 9"),
    ("allocate_pool", (9, 64), "there is none of number 9"),
    ("allocate_pool", (UB, MOST), "unified buffer overflow"),
    ("pool_next", (0, 9, 64, 0, 0, 1, 32), "there is none of number 9"),
    ("pool_next", (0, UB, MOST, 0, 0, 1, 32), "the pool does not lie in unified buffer"),
    ("pool_next", (NOWHERE, UB, 64, 0, 0, 1, 32), "the pool does not lie in unified buffer"),
    ("pool_next", (0, UB, 64, MOST, 0, 1, 32), "the pool does not lie in unified buffer"),
    ("pool_next", (0, UB, 64, 0, MOST, 1, 32), "at most 4 buffers and has 4294967295"),
    ("pool_next", (0, UB, 64, 32, 0, 2, 32), "pool overflow: 64 bytes asked for, 32 of 64 already taken"),
    ("pool_next", (0, UB, 64, 0, 0, 4, MOST), "pool overflow"),
    ("queue_init_in_pool", (0, L1, 64, 0, 0, 1, 32), "belong into unified buffer, but the pool lies in L1"),
    ("queue_init_in_pool", (0, UB, 64, 0, 0, 0, 32), "a queue holds 1 to 16 buffers"),
    ("load_ub", (0, 3), "1, 2, 4 or 8 bytes, not 3"),
    ("load_ub", (0, 512), "1, 2, 4 or 8 bytes, not 512"),
    ("store_ub", (UB_BYTES, 8), "touches unified buffer bytes"),
    ("load_gm", (NOWHERE, 8), "belongs to no tensor"),
    ("store_gm", (0, 4), "belongs to no tensor"),
    ("load_uncached", (NOWHERE, 16), "1, 2, 4 or 8 bytes, not 16"),
    ("set_atomic", (4,), "there is no mode 4"),
    ("merged_count", (4,), "there is no queue 4"),
    ("read_register", (3,), "there is no register 3"),
    ("set_address_register", (8, 0), "there is no address register 8"),
    ("set_address_register", (0, NOWHERE), "outside all memory"),
    ("refuse", (200,), "the kernel stopped itself"),
    ("assertion_failed", (0, 0, NOWHERE, 1), "outside all memory"),
    ("noted_shape", (NOWHERE,), "outside all memory"),
    ("copy_tiling_bytes", (NOWHERE, 0, 64), "outside all memory"),
    ("copy_tiling_bytes", (0, 0, 2**20), "touches unified buffer bytes"),
    ("read_list_shape", (NOWHERE, 1, 1, 0, 0), "belongs to no tensor"),
    ("read_list_shape", (NOWHERE, 1, 1, 1, 0), "GetDesc of tensor 1 of a list of 1"),
    ("read_list_descriptor", (NOWHERE,), "outside all memory"),
    ("unary", (*LANES, *LANES, *FIRST, MOST, 0, 0, 0), "touches unified buffer bytes"),
    ("unary", (NOWHERE, 1, 8, *LANES, *FIRST, 16, 0, 0, 0), "touches unified buffer bytes"),
    ("unary", (0, 1, 2**27, *LANES, *MASKED, 0, 2**5, *ALL), "repeat stride of an operand is 134217728"),
    ("unary", (0, 2**27, 8, *LANES, *MASKED, 0, 1, *ALL), "block stride of an operand is 134217728"),
    ("unary", (0, 1, 0, 0, 1, 0, *MASKED, 0, MOST, *ALL), "number of repeats is 4294967295"),
    ("unary", (0, 1, 2**27, *LANES, 1, 1, MOST, 0, *ALL), "repeat stride of an operand"),
    ("binary", (0, 1, 65535, *LANES, *MASKED, 0, 255, *ALL), "touches unified buffer bytes"),
    ("cast", (*LANES, 32768, 1, 8, *FIRST, 16, 0, 0, 0, 99), "there is no rounding mode of number 99"),
    ("cast_to_int4", (0, 32768, 2**31), "touches unified buffer bytes"),
    ("whole_reduce", (7, 0, 1, *LANES, *FIRST, 128, 0, 0, 0, 0), "there is no reduction of number 7"),
    ("whole_reduce", (1, 0, MOST, *LANES, *MASKED, 0, 3, *ALL, 0), "repeat stride of dst is 4294967295"),
    ("block_reduce", (9, 0, 1, *LANES, *FIRST, 128, 0, 0, 0), "there is no reduction of number 9"),
    ("compare", (0, *LANES, 99, 1), "there is no comparison of number 99"),
    ("compare", (0, *LANES, 0, MOST), "dst overlaps src0"),
    ("gather", (*LANES, 0, NOWHERE, 0, *FIRST, 16, 0, 0, 0), "touches unified buffer bytes"),
    ("gather", (*LANES, NOWHERE, 1024, 0, *FIRST, 16, 0, 0, 0), "touches unified buffer bytes"),
    ("gather_mask", (0, *LANES, 9, 0, -1, 128, 1), "pattern 9 does not exist"),
    ("gather_mask", (0, 0, 0, 0, 7, 0, -1, MOST, MOST), "a stride or repeat is 4294967295"),
    ("gather_mask", (0, 0, 0, 0, 7, 0, -1, MOST, 9), "9 repeats of 4294967295 elements"),
    ("gather_mask", (0, *LANES, 0, MOST, 0, 128, 2), "a stride or repeat is 4294967295"),
    ("broadcast_blocks", (*LANES, 0, 2**29), "number of repeats is 536870912"),
    ("progression", (*LANES, MOST, 1, MOST), "touches unified buffer bytes"),
    ("sort32", (0, 2**27), "repeatTime is 134217728"),
    ("sort_all", (0, 0, 2**27), "repeatTime is 134217728"),
    ("merge_sort", (0, 1024, 2048, 65535, 15, 1), "elementLengths is 65535"),
    ("merge_sort", (0, 1024, 2048, 32, 9, 1), "validBit is 9"),
    ("merge_sort", (0, 1024, 2048, 0, 15, MOST), "repeatTimes is 4294967295"),
    ("merge_sort", (0, NOWHERE, 2048, 4, 15, 1), "outside all memory"),
    ("transpose_blocks", (NOWHERE, 0, 1, 0, 0), "outside all memory"),
    ("transpose_blocks", (0, 0, MOST, MOST, 2), "a stride or repeat is 4294967295"),
    ("transpose_by_registers", (7, 0), "VA7 is not followed by another"),
    ("transpose_by_registers", (0, MOST), "is not followed by another"),
    ("broadcast_columns", (0, 2, 2**31, 0, 65536), "more than the unified buffer holds"),
    ("broadcast_columns", (0, MOST, MOST, 0, MOST), "more than the unified buffer holds"),
    ("softmax", (0, MOST, 64, 64, 0, 65536), "more than the unified buffer holds"),
    ("softmax", (0, 1, 64, MOST, 0, 65536), "more than the unified buffer holds"),
    ("dequantize", (0, 0, 0, 0, 65536), "rows of 0 elements"),
    ("dequantize", (0, 9, 8, 8, 65536), "rows of 8 elements"),
    ("dequantize", (0, 0, 2**31, 8, 65536), "more than the unified buffer holds"),
    ("math", (0, NOWHERE, 0, 65536, 64), "overlaps the temporary buffer"),
    ("math", (0, 0, NOWHERE, 65536, 64), "dst overlaps src"),
    ("fill_gm", (0, 64, 3, 0), "elements of 3 bytes do not exist"),
    ("fill_gm", (0, FAR, 4, 0), "out of bounds"),
    ("copy_gm_to_ub", (0, 0, 3, 32, FAR, 32, 0, 0, 1, 0), "a distance of 9223372036854775808 bytes"),
    ("copy_gm_to_ub", (0, 0, MOST, 32, 0, 0, 0, 0, 1, 0), "a count of 4294967295"),
    ("copy_gm_to_ub", (0, 0, 4096, 1, 1, 1, 0, 0, 1, 1), "a count of 4096 is more than a copy has"),
    ("copy_ub_to_gm", (0, 0, 4096, 1, 1, 1, 0), "a count of 4096"),
    ("copy_ub_to_ub", (0, 0, 4096, 32, 0, 0), "a count of 4096"),
    ("copy_gm_to_ub", (0, 0, 1, MOST, 0, 0, 32, 0, 1, 0), "out of bounds"),
    ("copy_gm_to_ub", (0, 0, 1, 32, 32, 32, 0, 0, 77, 0), "elements of 77 bytes do not exist"),
    ("copy_gm_to_ub", (0, 0, 1, 32, 32, 32, 0, 0, 0, 200), "elements of 0 bytes do not exist"),
    ("copy_ub_to_gm", (0, 0, 2, 32, 2**40, 32, 0), "a distance of 1099511627776 bytes"),
    ("copy_ub_to_gm", (0, 65000, 1, 2048, 2048, 2048, 0), "out of bounds"),
    ("copy_ub_to_ub", (0, 0, 2, MOST, 0, 0), "touches unified buffer bytes"),
    ("copy_ub_to_ub", (0, 0, MOST, 0, 1, 1), "a count of 4294967295"),
    ("matmul_wait", (3,), "there is no such object"),
    ("matmul_wait", (MOST,), "there is no such object"),
    ("matmul_destroy", (0,), "there is no such object"),
]
ON_CUBE_CORES = [
    ("copy_gm_to_l1", (2, 32, 32, FAR, 0, 1, L1), "a distance of 9223372036854775808 bytes"),
    ("copy_gm_to_l1", (1, 32, 32, 32, 0, 1, 77), "lies in memory 77, which does not exist"),
    ("copy_gm_to_l1", (1, 32, 32, 32, MOST, 1, L1), "touches L1 bytes"),
    ("copy_gm_to_l1", (1, 32, 32, 32, 0, 99, L1), "elements of 99 bytes"),
    ("copy_gm_to_l1", (4096, 1, 0, 0, 0, 1, L1), "a count of 4096"),
    ("copy_nd_to_nz", (4096, 1, 16, 0, 0, 2), "a count of 4096"),
    ("copy_nd_to_nz", (1, MOST, 16, FAR, 0, 2), "a count of 4294967295"),
    ("copy_nd_to_nz", (1, 2, 16, FAR, 0, 2), "a distance of"),
    ("copy_nd_to_nz", (1, 2, 16, 64, 64, 3), "elements of 3 bytes"),
    ("fill_local", (GM, 1, 1, 0, 2), "dst must lie in global memory"),
    ("fill_local", (L1, MOST, MOST, MOST, 2), "a count of 4294967295"),
    ("fill_local", (L1, 1, 1, 0, 8), "elements of up to 4 bytes"),
    ("copy_l1_to_table", (1, MOST, 0, 0, 6), "touches L1 bytes"),
    ("load_2d", (L1, 0, 1, 0, 0, 2), "dst must lie in L0A or L0B"),
    ("load_2d", (L0A, 0, 2, 2**62, 0, 2), "a count of"),
    ("load_2d", (L0A, 0, 2, -(2**63), 0, 2), "a count of"),
    ("load_3d", load_3d(stride=0), "expected at least 1"),
    ("load_3d", load_3d(element=0), "1, 2 or 4 bytes, these have 0"),
    ("load_3d", load_3d(first=60000), "name more than there are"),
    ("load_3d", load_3d(columns=MOST), "all of them have 16 bits"),
    ("load_3d", load_3d(size=MOST), "all of them have 16 bits"),
    ("mmad", (MOST, 16, 16, 0, 0, 0), "sizes have 16 bits"),
    ("mmad", (16, 16, 16, 99, 0, 0), "of a type that exists"),
    ("mmad", (16, 16, 16, 0, 3, 0), "elements of one width"),
    ("mmad", (16, 16, 16, 0, 0, 9), "of a type that exists"),
    ("fixpipe_to_gm", (MOST, 16, 1, 16, 64, 0, 0, -1), "sizes have 16 bits"),
    ("fixpipe_to_gm", (16, 16, 1, FAR, 64, 0, 0, -1), "a count of"),
    ("fixpipe_to_gm", (16, 16, 1, 16, FAR, 0, 0, -1), "a distance of"),
    ("fixpipe_to_gm", (16, 16, 1, 16, 64, 99, 0, -1), "types are those of the documentation"),
    ("fixpipe_to_gm", (16, 16, 1, 16, 64, 1, 3, NOWHERE), "scales"),
    ("matmul_all", (*matmul(base=(512, 512, 64), buffers=1), GM), r"in L0[AC]"),
    ("matmul_all", (*matmul(base=(256, 256, 16)), GM), r"in L0C \(baseM, baseN, dbL0C\), which has 131072"),
    (
        "matmul_all",
        (*matmul(base=(64, 64, 512), buffers=2), GM),
        r"in L0A \(baseM, baseK, dbL0A\), which has 65536",
    ),
    ("matmul_all", (*matmul(base=(128, 64, 128), depth=32), GM), "L1 .*, which has 524288"),
    ("matmul_all", (*matmul(base=(0, 16, 16)), GM), "expected extents of at least 1"),
    ("matmul_all", (*matmul(buffers=MOST), GM), "expected extents of at least 1"),
    ("matmul_all", (*matmul(depth=0), GM), "expected extents of at least 1"),
    ("matmul_all", (*matmul(extent=2**40), GM), "a matrix of 1099511627776 x"),
    ("matmul_all", (*matmul(extent=2**30, base=(16, 16, 16)), GM), "a matrix of 1073741824 x"),
    ("matmul_all", (*matmul(element=99), GM), "the object is damaged"),
    ("matmul_all", (*matmul(space=99), GM), "the object is damaged"),
    ("matmul_all", (*matmul(element=FLOAT), GM), "expected one type for both"),
    ("matmul_all", (*matmul(), 99), "a memory that exists"),
    ("matmul_all", (*matmul(extent=4096), GM), "out of bounds"),
    ("matmul_all", (*matmul(quantisation=NOWHERE), GM), "SetQuantVector.*belongs to no tensor"),
    ("matmul_fetch", (*matmul(), 0, *matmul(extent=0)), "Iterate has to be called first"),
    ("matmul_batches", (*matmul(), 0, 1), "multiplies 0 batches by 1"),
]
# What does nothing, or what an honest call does.
HARMLESS = [
    ("asim_load", (0, 8)),
    ("asim_store to the stack", (STACK_BYTES - 8, 8)),
    ("asim_memcpy", (0, 64, 64)),
    ("asim_memset", (NOWHERE, 0)),
    ("asim_call", (8,)),
    ("queue_count", (MOST,)),
    ("set_flag", (1, 2, 3)),
    ("progression", (*LANES, 16, 1, 16)),
]


@pytest.fixture(scope="module")
def built(request: pytest.FixtureRequest) -> Machine:
    return build_machine("hostile", RUNTIME, request.config.cache.mkdir("vector_machine"))


@pytest.fixture
def machine(built: Machine) -> Machine:
    built.reset(UB_BYTES)
    built.call("start", 0)
    return built


def _name(call: str, message: str = "") -> str:
    return f"{call}: {message}"


@pytest.mark.parametrize(
    ("call", "arguments", "message"), ON_VECTOR_CORES, ids=[_name(row[0], row[2]) for row in ON_VECTOR_CORES]
)
def test_a_vector_core_refuses(machine: Machine, call: str, arguments: tuple[int, ...], message: str) -> None:
    with pytest.raises(MachineFault, match=message):
        machine.call(call, *arguments)


@pytest.mark.parametrize(
    ("call", "arguments", "message"), ON_CUBE_CORES, ids=[_name(row[0], row[2]) for row in ON_CUBE_CORES]
)
def test_a_cube_core_refuses(machine: Machine, call: str, arguments: tuple[int, ...], message: str) -> None:
    machine.call("start", 1)
    with pytest.raises(MachineFault, match=message):
        machine.call(call, *arguments)


@pytest.mark.parametrize(("call", "arguments"), HARMLESS, ids=[row[0] for row in HARMLESS])
def test_what_honest_kernels_do_passes(machine: Machine, call: str, arguments: tuple[int, ...]) -> None:
    machine.call(call, *arguments)


@pytest.mark.parametrize(("past_cache", "records"), [(0, 1), (1, 2)])
def test_only_loads_through_the_cache_count_as_one(machine: Machine, past_cache: int, records: int) -> None:
    machine.call("two reads of gm", past_cache)
    assert [line.name for line in machine.trace()] == ["ScalarAccess"] * records


def test_an_honest_product_fits(machine: Machine) -> None:
    machine.call("start", 1)
    machine.call("matmul_all", *matmul(depth=8, buffers=2), GM)
    assert any(line.name == "Mmad" for line in machine.trace())


@pytest.mark.parametrize(("behind_bytes", "copies"), [(0, 3), (64, 4)])
def test_what_lies_in_l1_is_that_of_the_same_operands(
    machine: Machine, behind_bytes: int, copies: int
) -> None:
    """The right operand of a block stays for the next one, unless the object is given other operands."""
    machine.call("start", 1)
    machine.call("matmul_iterate of another operand", *matmul(extent=32, base=(32, 32, 32)), behind_bytes)
    assert [line.name for line in machine.trace()].count("CopyGmToL1") == copies


def _counts(machine: Machine) -> list[int]:
    machine.call("counts")
    return machine.view(0, "uint64", CLASSES).tolist()


def test_instructions_are_counted_by_class(machine: Machine) -> None:
    machine.call("asim_count", int.from_bytes(bytes([1, 2, 3, 4, 5, 6, 7, 255]), "little"))
    assert machine.view(0, "uint64", CLASSES).tolist() == [2, 4, 6, 8, 10, 12, 14, 510, 0, 0, 0, 0, 0]


def test_accesses_are_counted_by_what_they_reach(machine: Machine) -> None:
    machine.call("asim_load of the stack", 0, 4)
    machine.call("asim_store to the stack", 64, 20)  # three words
    machine.call("asim_load of gm", 0, 16)
    machine.call("asim_memcpy", 0, 1024, 64)  # eight words of the unified buffer, read and written
    counts = _counts(machine)
    assert counts[STACK_ACCESS] == 1 + 3
    assert counts[ACCESS] == 2 + 7  # global memory, and loads that overlap the one before
    assert (counts[LOAD], counts[STORE]) == (1, 8)
    assert sum(counts) == 4 + 18


def test_copies_of_memory_functions_arrive(machine: Machine) -> None:
    machine.view(1024, "uint8", 64)[:] = np.arange(64, dtype=np.uint8)
    machine.call("asim_memcpy", 0, 1024, 64)
    assert machine.view(0, "uint8", 64).tolist() == list(range(64))
