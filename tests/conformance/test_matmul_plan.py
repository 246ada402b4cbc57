"""The planner of matrix multiplications: plans cover the problem and fit the memories, whatever is asked."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from math import ceil
from pathlib import Path
from typing import Any

import pytest
from host_side_machine import KIB, toolchain, unchecked_library  # noqa: F401 (a fixture)
from hypothesis import given, settings
from hypothesis import strategies as st

FLOAT, HALF, INT8, INT32 = 0, 1, 2, 3
OPEN_ORDER, ROWS_FIRST, COLUMNS_FIRST = 0, 1, 2  # MatrixTraverse
ELEMENT_BYTES = {FLOAT: 4, HALF: 2, INT8: 1}
L0_BYTES, L0C_BYTES, L1_BYTES, BIAS_TABLE_BYTES = 64 * KIB, 128 * KIB, 512 * KIB - 256, KIB
_FIELDS = (
    *("cores", "m", "n", "ka", "kb", "single_m", "single_n", "single_k", "base_m", "base_n", "base_k"),
    *("step_m", "step_n", "step_ka", "step_kb", "depth_a1", "depth_b1", "db_l0a", "db_l0b", "db_l0c"),
    *("order", "is_bias", "m_parts", "n_parts"),
)


@dataclass(frozen=True)
class Problem:
    """What a tiling function would ask for; -1 leaves the choice to the planner."""

    m: int
    n: int
    k: int
    cores: int = 1
    a_type: int = HALF
    c_type: int = FLOAT
    has_bias: bool = False
    base_m: int = -1
    base_n: int = -1
    single_m: int = -1
    single_n: int = -1
    split_k: bool = False
    order: int = ROWS_FIRST
    l1_bytes: int = -1
    keeps_left: bool = False


Plan = dict[str, int]
Planner = Callable[[Problem], "Plan | None"]


@pytest.fixture(scope="module")
def plan(toolchain: Path, tmp_path_factory: pytest.TempPathFactory) -> Planner:  # noqa: F811
    folder = tmp_path_factory.mktemp("matmul_plan")
    source = Path(__file__).parent / "drivers" / "matmul_plan.cpp"
    ctypes.CDLL(str(toolchain / "libasim_host.so"))  # found beside the programs that use it, by its name here
    library: Any = ctypes.CDLL(str(unchecked_library(source, folder, toolchain)))
    library.plan_matmul.restype = ctypes.c_int64

    def planned(problem: Problem) -> Plan | None:
        asked = (ctypes.c_int32 * 15)(*(int(value) for value in asdict(problem).values()))
        answer = (ctypes.c_int32 * len(_FIELDS))()
        return None if library.plan_matmul(asked, answer) else dict(zip(_FIELDS, answer, strict=True))

    return planned


def l1_bytes_of(plan: Plan, problem: Problem) -> int:
    block = plan["base_m"] * plan["depth_a1"] + plan["base_n"] * plan["depth_b1"]
    return block * plan["base_k"] * ELEMENT_BYTES[problem.a_type] + problem.has_bias * plan["base_n"] * 4


def check_memories(plan: Plan, problem: Problem) -> None:
    """TCubeTiling, table 2 of its page: every block fits where it is put."""
    size = ELEMENT_BYTES[problem.a_type]
    assert plan["base_m"] * plan["base_k"] * size * plan["db_l0a"] <= L0_BYTES
    assert plan["base_n"] * plan["base_k"] * size * plan["db_l0b"] <= L0_BYTES
    assert plan["base_m"] * plan["base_n"] * 4 * plan["db_l0c"] <= L0C_BYTES
    assert l1_bytes_of(plan, problem) <= (L1_BYTES if problem.l1_bytes < 0 else problem.l1_bytes)
    if problem.has_bias:
        assert plan["base_n"] * 4 <= BIAS_TABLE_BYTES
    for base in ("base_m", "base_n"):
        assert plan[base] % 16 == 0
    assert plan["base_k"] % max(16, 32 // size) == 0


def check_steps(plan: Plan) -> None:
    for depth, across, along_k in (("depth_a1", "step_m", "step_ka"), ("depth_b1", "step_n", "step_kb")):
        copied = plan[across] * plan[along_k]
        assert plan[depth] in (copied, 2 * copied)
    loads = [ceil(plan["single_k"] / (plan["base_k"] * plan[step])) for step in ("step_ka", "step_kb")]
    assert max(loads) % min(loads) == 0


def check_cover(plan: Plan, problem: Problem) -> None:
    """The cores together hold the whole problem, and no core is idle."""
    assert (plan["m"], plan["n"], plan["ka"], plan["kb"]) == (problem.m, problem.n, problem.k, problem.k)
    parts = [ceil(problem.m / plan["single_m"]), ceil(problem.n / plan["single_n"])]
    assert [plan["m_parts"], plan["n_parts"]] == parts
    k_parts = ceil(problem.k / plan["single_k"])
    assert k_parts == 1 or problem.split_k
    unit = max(16, 32 // ELEMENT_BYTES[problem.a_type])
    assert k_parts * plan["single_k"] - problem.k < unit  # the last part is no shorter
    assert k_parts == 1 or plan["single_k"] >= 32 * unit
    assert plan["cores"] == parts[0] * parts[1] * k_parts <= problem.cores


problems = st.builds(
    Problem,
    m=st.integers(1, 9000),
    n=st.integers(1, 9000),
    k=st.integers(1, 20000),
    cores=st.integers(1, 48),
    a_type=st.sampled_from([FLOAT, HALF, INT8]),
    has_bias=st.booleans(),
    split_k=st.booleans(),
    order=st.sampled_from([OPEN_ORDER, ROWS_FIRST, COLUMNS_FIRST]),
    l1_bytes=st.sampled_from([-1, 256 * KIB]),
)


@settings(max_examples=150)
@given(problem=problems)
def test_every_plan_covers_the_problem_and_fits_the_memories(plan: Planner, problem: Problem) -> None:
    found = plan(problem)
    assert found is not None
    check_memories(found, problem)
    check_steps(found)
    check_cover(found, problem)
    assert found["is_bias"] == problem.has_bias
    assert problem.order == OPEN_ORDER or found["order"] == problem.order - 1


def test_published_plans(plan: Planner) -> None:
    """Parts of a core (asc-devkit: the guide on splitting k and NBuffer33; sample matmul_advanced_api)."""
    split = plan(Problem(16, 16, 1024, cores=24, split_k=True))
    assert split is not None
    assert (split["cores"], split["single_k"]) == (2, 512)
    square = plan(Problem(512, 512, 128, cores=2))
    assert square is not None
    assert (square["single_m"], square["single_n"]) == (256, 512)
    kept = plan(Problem(256, 512, 192, cores=24, keeps_left=True))
    assert kept is not None
    assert (kept["cores"], kept["single_m"], kept["single_n"], kept["single_k"]) == (2, 256, 256, 192)
    assert (kept["base_m"], kept["base_n"], kept["base_k"]) == (128, 256, 64)
    assert [kept[name] for name in ("step_m", "step_n", "step_ka", "step_kb")] == [2, 1, 3, 3]


@pytest.mark.parametrize(
    ("shape", "single"),
    [((768, 2048, 6144), (128, 512, 6144)), ((128, 30720, 1024), (128, 1280, 1024))],
    ids=["staggered along k", "MDL"],
)
def test_published_plans_of_large_products(
    plan: Planner, shape: tuple[int, int, int], single: tuple[int, int, int]
) -> None:
    """asc-devkit, the guide on staggered loads and on the MDL template: 24 cores, loads of rows of 512 B."""
    found = plan(Problem(*shape, cores=24))
    assert found is not None
    assert tuple(found[name] for name in ("single_m", "single_n", "single_k")) == single
    assert [found[name] for name in ("base_m", "base_n", "base_k")] == [128, 256, 64]
    assert [found[name] for name in ("step_ka", "step_kb", "depth_a1", "depth_b1")] == [4, 4, 8, 8]


def test_published_loads_of_given_parts(plan: Planner) -> None:
    """Two and four base blocks a copy (asc-devkit: sample matmul_high_performance, cases 4 and 5)."""
    asked = Problem(8192, 8192, 8192, cores=24, base_m=128, base_n=256, single_m=2048, single_n=1536)
    found = plan(asked)
    assert found is not None
    assert [found[name] for name in ("step_m", "step_n", "step_ka", "step_kb")] == [1, 1, 2, 4]
    assert (found["depth_a1"], found["depth_b1"]) == (4, 8)


def test_published_loads_of_operands_that_fit(plan: Planner) -> None:
    """All of both operands, in one copy each (asc-devkit: the guide on IBShare of B)."""
    found = plan(Problem(64, 256, 384, cores=2, base_m=32, base_n=256))
    assert found is not None
    assert [found[name] for name in ("single_m", "single_n", "single_k")] == [32, 256, 384]
    assert [found[name] for name in ("base_k", "step_ka", "step_kb")] == [64, 6, 6]


@pytest.mark.parametrize(
    ("shape", "parts", "kept", "order"),
    [((128, 4096, 1024), (128, 4096), "a1", 1), ((4096, 128, 1024), (4096, 128), "b1", 0)],
    ids=["left", "right"],
)
def test_an_operand_that_fits_is_copied_once(
    plan: Planner, shape: tuple[int, int, int], parts: tuple[int, int], kept: str, order: int
) -> None:
    """It stays in L1 as a whole while the other passes, and blocks come in the order that uses it again."""
    asked = Problem(*shape, single_m=parts[0], single_n=parts[1], order=OPEN_ORDER, base_m=128, base_n=128)
    found = plan(asked)
    assert found is not None
    assert found[f"depth_{kept}"] * found["base_k"] == shape[2]
    assert found["order"] == order


@settings(max_examples=60)
@given(problem=problems, base_m=st.integers(1, 8), base_n=st.integers(1, 8))
def test_a_given_base_block_is_kept(plan: Planner, problem: Problem, base_m: int, base_n: int) -> None:
    asked = replace(problem, base_m=16 * base_m, base_n=32 * base_n)
    found = plan(asked)
    assert found is not None
    assert (found["base_m"], found["base_n"]) == (16 * base_m, 32 * base_n)
    check_memories(found, asked)
    check_steps(found)


def test_the_documented_block_of_large_half_problems_is_found(plan: Planner) -> None:
    """TCubeTiling's page recommends 128 x 256 x 64, both operands double buffered."""
    found = plan(Problem(8192, 8192, 8192))
    assert found is not None
    assert [found[name] for name in ("base_m", "base_n", "base_k")] == [128, 256, 64]
    assert [found[name] for name in ("db_l0a", "db_l0b", "db_l0c")] == [2, 2, 1]
    assert min(found["step_ka"], found["step_kb"]) > 1


def test_parts_of_the_cores_hold_whole_given_blocks(plan: Planner) -> None:
    """1024 x 640 over two cores in blocks of 128 x 128: halves of the rows, as fewer bytes are loaded so."""
    found = plan(Problem(1024, 640, 256, cores=2, base_m=128, base_n=128, has_bias=True))
    assert found is not None
    assert [found[name] for name in ("single_m", "single_n", "single_k", "cores")] == [512, 640, 256, 2]


def test_given_parts_are_kept(plan: Planner) -> None:
    found = plan(Problem(8192, 8192, 8192, cores=24, single_m=2048, single_n=1536))
    assert found is not None
    assert [found[name] for name in ("single_m", "single_n", "single_k", "cores")] == [2048, 1536, 8192, 24]


@pytest.mark.parametrize(
    "problem",
    [Problem(0, 16, 16), Problem(16, 16, -1), Problem(16, 16, 16, base_m=1024, base_n=1024)],
    ids=["no rows", "no k", "block beyond L0C"],
)
def test_what_cannot_be_planned_is_refused(plan: Planner, problem: Problem) -> None:
    assert plan(problem) is None
