"""Candidates that go round the accounting are refused; what only looks like it is not."""

from __future__ import annotations

from pathlib import Path

import pytest
from faults import CASE, LOOP_BODY, OPERATOR
from simulated import Workbench

from ascend_gym.core.protocols import Built, RunOutput
from ascend_gym.core.records import MeasureProtocol
from ascend_gym.core.status import Status
from ascend_gym.suite.loader import load_operator
from ascend_gym.suite.oracle import oracle_for
from npu_daemon.backends.simulator import SimulatorBackend

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def bench(simulator: SimulatorBackend, tmp_path_factory: pytest.TempPathFactory) -> Workbench:
    return Workbench(simulator, tmp_path_factory.mktemp("data"), OPERATOR, CASE)


def test_an_output_copied_from_nowhere_is_not_accepted(bench: Workbench) -> None:
    """Storing the right values without any instruction that writes them is what forged traces look like."""
    result = bench.evaluate(bench.edited(kernel={"op.Process();": ""}))
    assert result.status is Status.INCORRECT
    assert "nan" in result.all_diagnostics[0].message


CHEATS = {
    "assembly": ({LOOP_BODY: LOOP_BODY + ' asm volatile("nop");'}, Status.GUARD_REJECTED),
    "assembly in disguise": ({LOOP_BODY: LOOP_BODY + ' __asm__ __volatile__("nop");'}, Status.GUARD_REJECTED),
    "spliced keyword": ({LOOP_BODY: LOOP_BODY + ' as\\\nm volatile("nop");'}, Status.GUARD_REJECTED),
    "host vector code": (
        {
            '#include "kernel_operator.h"': '#include "kernel_operator.h"\n#include <immintrin.h>',
            LOOP_BODY: LOOP_BODY + " volatile __m128 four = _mm_setzero_ps();",
        },
        Status.BUILD_ERROR,
    ),
    "inside of the simulator": (
        {LOOP_BODY: LOOP_BODY + " asim::block().scalar_counts[0] = 0;"},
        Status.BUILD_ERROR,
    ),
    "file of the host": (
        {'#include "kernel_operator.h"': '#include "kernel_operator.h"\n#include "/etc/passwd"'},
        Status.BUILD_ERROR,
    ),
}


_ARGUMENT = "static_cast<float>(static_cast<int32_t>(count))"
CHEATS |= {
    call: ({LOOP_BODY: f"{LOOP_BODY} volatile auto value = {call};"}, Status.BUILD_ERROR)
    for call in (
        f"sqrtf({_ARGUMENT})",
        f"logf({_ARGUMENT})",
        f"std::exp({_ARGUMENT})",
        "AscendC::GetTPipePtr()",
        f"static_cast<uint16_t>({_ARGUMENT} * 0.5f)",
        "static_cast<float>(count)",
        "(float)1.0 + (float) /* of the tile */ (count * count)",
        "half(count + 1)",
        "static_cast<half>(static_cast<uint16_t>(count / 2))",
        f"fabsf({_ARGUMENT})",
        f"static_cast<double>({_ARGUMENT})",
    )
}
CASTS_OF_DEVICES = (
    "0.5f * count",
    "(float)1.0 / (count * count) + static_cast<float>(sizeof(half)) * (count)",
    "static_cast<float>(static_cast<int64_t>(count))",
    "static_cast<float>(sizeof(half) * BUFFER_NUM)",
    "static_cast<float>(count > 1)",
    "static_cast<uint32_t>(static_cast<int32_t>(0.5f * static_cast<int32_t>(count & 7)))",
)


@pytest.mark.parametrize(("edits", "status"), CHEATS.values(), ids=CHEATS.keys())
def test_ways_round_the_accounting_are_refused(
    bench: Workbench, edits: dict[str, str], status: Status
) -> None:
    result = bench.evaluate(bench.edited(kernel=edits))
    first = result.all_diagnostics[0]
    assert result.status is status, [str(d) for d in result.all_diagnostics]
    assert first.file == "op_kernel/add.cpp"
    assert first.line is not None


def test_casts_through_signed_integers_and_of_constants_are_fine(bench: Workbench) -> None:
    values = "\n".join(f"volatile auto v{i} = {cast};" for i, cast in enumerate(CASTS_OF_DEVICES))
    result = bench.evaluate(bench.edited(kernel={LOOP_BODY: f"{LOOP_BODY} {values}"}))
    assert result.status is Status.OK, [str(d) for d in result.all_diagnostics]


BEFORE_THE_CLASS = "constexpr int32_t BUFFER_NUM"
WITHOUT_MEANING = {
    "attribute": {
        "class KernelAdd {": "class KernelAdd {\n    __attribute__((no_sanitize_coverage)) void Free() {}\n"
    },
    "pragma": {BEFORE_THE_CLASS: '#pragma GCC optimize("O3")\n' + BEFORE_THE_CLASS},
    "header": {'#include "kernel_operator.h"': '#include "kernel_operator.h"\n#include "asim/api/pipe.h"'},
    "header of the library": {
        '#include "kernel_operator.h"': '#include "kernel_operator.h"\n#include "adv_api/math/tan.h"'
    },
}


@pytest.mark.parametrize("include", ["", '#include "tiling/tiling_api.h"\n'])
def test_structures_of_the_library_are_there_where_their_header_is(bench: Workbench, include: str) -> None:
    """The precompiled header of host code must not offer what a file has to include for itself."""
    first, last = "namespace optiling {", "END_TILING_DATA_DEF;"
    nested = f"TILING_DATA_FIELD_DEF_STRUCT(TCubeTiling, cube)\n{last}"
    result = bench.evaluate(bench.edited(tiling={first: f"{include}{first}", last: nested}))
    assert result.status is (Status.OK if include else Status.BUILD_ERROR), result.all_diagnostics
    assert include or "TCubeTiling" in result.all_diagnostics[0].message


@pytest.mark.parametrize("edits", WITHOUT_MEANING.values(), ids=WITHOUT_MEANING.keys())
def test_text_that_changes_nothing_costs_the_same(bench: Workbench, edits: dict[str, str]) -> None:
    assert bench.latency_us(kernel=edits) == bench.latency_us()


MEMORY_OF_ALL_BLOCKS = {
    "static": {BEFORE_THE_CLASS: "static float sums[48];\n" + BEFORE_THE_CLASS},
    "global with a value": {BEFORE_THE_CLASS: "float sums[48] = {1.0f};\n" + BEFORE_THE_CLASS},
    "inline": {BEFORE_THE_CLASS: "inline float sums[48];\n" + BEFORE_THE_CLASS},
    "of a function": {"op.Process();": "static float sums[48]; op.Process();"},
}


@pytest.mark.parametrize("edits", MEMORY_OF_ALL_BLOCKS.values(), ids=MEMORY_OF_ALL_BLOCKS.keys())
def test_variables_that_all_blocks_share_are_refused(bench: Workbench, edits: dict[str, str]) -> None:
    use = "sums[AscendC::GetBlockIdx()] += 1.0f; sums[0] += sums[AscendC::GetBlockIdx() / 2]; op.Process();"
    operator = "op.Process();"
    with_use = {key: text.replace(operator, use) for key, text in edits.items()}
    result = bench.evaluate(bench.edited(kernel={operator: use} | with_use))
    assert result.status is Status.GUARD_REJECTED, [str(d) for d in result.all_diagnostics]
    assert "sums" in result.all_diagnostics[0].message


def test_tables_of_constants_are_fine(bench: Workbench) -> None:
    tables = (
        """static const uint32_t LENGTHS[] = {1, 2, 3};
        static const uint32_t *const TABLES[] = {LENGTHS, LENGTHS + 1};
        """
        + BEFORE_THE_CLASS
    )
    use = "if (TABLES[AscendC::GetBlockIdx() % 2][1] != 9) { op.Process(); }"
    result = bench.evaluate(bench.edited(kernel={BEFORE_THE_CLASS: tables, "op.Process();": use}))
    assert result.status is Status.OK, [str(d) for d in result.all_diagnostics]


def test_constants_of_templates_are_fine(bench: Workbench) -> None:
    sizes = "template <typename T> struct Sizes { constexpr static int32_t rows = 4; };\n"
    use = "const int32_t *volatile rows = &Sizes<half>::rows; if (*rows == 4) op.Process();"
    bench.latency_us(kernel={BEFORE_THE_CLASS: sizes + BEFORE_THE_CLASS, "op.Process();": use})


def test_a_class_may_name_the_cores_of_its_kernel(bench: Workbench) -> None:
    process = "__aicore__ inline void Process()\n    {\n"
    assert bench.latency_us(kernel={process: process + "KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);\n"})


def test_macros_may_put_names_of_the_kernel_together(bench: Workbench) -> None:
    glue = "#define CALL(object, first, second) object.first##second()\n"
    bench.latency_us(
        kernel={BEFORE_THE_CLASS: glue + BEFORE_THE_CLASS, "op.Process();": "CALL(op, Pro, cess);"}
    )


def test_a_mention_in_a_comment_or_a_string_is_not_a_cheat(bench: Workbench) -> None:
    comment = {"constexpr int32_t BUFFER_NUM": "// asm, asim:: and #pragma GCC\nconstexpr int32_t BUFFER_NUM"}
    assert bench.evaluate(bench.edited(kernel=comment)).status is Status.OK


@pytest.mark.parametrize("reads_all_inputs", [True, False])
def test_an_output_that_needs_inputs_nobody_read_is_refused(
    simulator: SimulatorBackend, tmp_path: Path, reads_all_inputs: bool
) -> None:
    """0 * x comes out right without reading x, as for a kernel that got its answer elsewhere."""
    spec = load_operator("muls").model_copy(update={"reads_all_inputs": reads_all_inputs})
    case = spec.cases[-1].model_copy(update={"attributes": {"value": 0.0}})
    copy, multiply = "xGm[offset], copyParams", "AscendC::Muls(yLocal, xLocal, this->value, count);"
    kernel = spec.baseline.kernel_text
    assert copy in kernel
    assert multiply in kernel
    first_tile_only = kernel.replace(copy, "xGm[0], copyParams")
    candidate = spec.baseline.rewritten(
        kernel=first_tile_only.replace(multiply, "AscendC::Duplicate(yLocal, static_cast<T>(0), count);")
    )
    inputs = tmp_path / "x.bin"
    inputs.write_bytes(oracle_for(spec).inputs(case, 0)[0][0].tobytes())
    built = simulator.build(spec, case, candidate, MeasureProtocol())
    assert isinstance(built, Built), built
    run = simulator.run(built, case, [[inputs]], MeasureProtocol())
    assert isinstance(run, RunOutput), run
    measured = simulator.measure(run, case, MeasureProtocol())
    simulator.cleanup(run)
    assert not run.outputs[0][0].any()
    assert measured.status is (Status.GUARD_REJECTED if reads_all_inputs else Status.OK)
    if reads_all_inputs:
        assert "bytes of x" in measured.diagnostics[0].message


def test_a_kernel_cannot_tell_one_run_from_another_by_its_addresses(bench: Workbench) -> None:
    leak = "if (reinterpret_cast<uint64_t>(x1) >> 12 & 1) { for (volatile int i = 0; i < 3000; i = i + 1); }"
    candidate = bench.edited(kernel={"op.Process();": f"{leak} op.Process();"})
    assert len({bench.evaluate(candidate).latency_us for _ in range(4)}) == 1


TILING_CHEATS = {
    "files": ("return ge::GRAPH_SUCCESS;", 'fclose(fopen("/tmp/x", "w")); return ge::GRAPH_SUCCESS;'),
    "processes": ("return ge::GRAPH_SUCCESS;", 'if (system("true")) {} return ge::GRAPH_SUCCESS;'),
    "assembly": ("return ge::GRAPH_SUCCESS;", 'asm volatile("nop"); return ge::GRAPH_SUCCESS;'),
}


@pytest.mark.parametrize(("old", "new"), TILING_CHEATS.values(), ids=TILING_CHEATS.keys())
def test_a_tiling_program_that_leaves_its_process_is_refused(bench: Workbench, old: str, new: str) -> None:
    header = '#include "register/op_def_registry.h"'
    include = {header: f"#include <cstdio>\n#include <cstdlib>\n{header}"}
    result = bench.evaluate(bench.edited(tiling={**include, old: new}))
    assert result.status is Status.GUARD_REJECTED, [str(d) for d in result.all_diagnostics]


@pytest.mark.parametrize("flag", ["-fno-sanitize=kernel-address", "-Wl,-Map=/tmp/map", "-wrapper", "-I/etc"])
def test_build_flags_that_change_the_toolchain_are_refused(bench: Workbench, flag: str) -> None:
    candidate = bench.spec.baseline.model_copy(update={"build_flags": (flag,)})
    assert bench.evaluate(candidate).status is Status.GUARD_REJECTED


def test_defines_are_fine_as_build_flags(bench: Workbench) -> None:
    candidate = bench.spec.baseline.model_copy(update={"build_flags": ("-DTUNED=1",)})
    assert bench.evaluate(candidate).status is Status.OK
