"""What is wrong with a candidate comes back as a status with a message that a person can act on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from simulated import Workbench

from ascend_gym.core.protocols import Built, RunOutput
from ascend_gym.core.records import MeasureProtocol, Phase
from ascend_gym.core.status import Status
from ascend_gym.suite.loader import load_operator
from ascend_gym.suite.oracle import oracle_for
from npu_daemon.backends.simulator import SimulatorBackend


@pytest.fixture(scope="module")
def bench(simulator: SimulatorBackend, tmp_path_factory: pytest.TempPathFactory) -> Workbench:
    return Workbench(simulator, tmp_path_factory.mktemp("data"), "add", "fp16_1777x1003")


@dataclass(frozen=True)
class Fault:
    """One way to break the kernel, and what must be said about it."""

    name: str
    old: str
    new: str
    status: Status
    phase: Phase
    call: str | None
    says: str


ADD = "AscendC::Add(yLocal, x1Local, x2Local, count);"
LOOP_BODY = "CopyOut(offset, count);"
COPY_IN = "AscendC::DataCopyPad(x1Local, x1Gm[offset]"
COPY_OUT = "AscendC::DataCopyPad(yGm[offset]"
OUT_BUFFER = "pipe.InitBuffer(outQueueY, BUFFER_NUM, tileLength * sizeof(T));"
RUN, BUILD = Phase.RUN_KERNEL, Phase.BUILD_KERNEL
FAULT = Status.RUNTIME_FAULT

FAULTS = [
    Fault("syntax", ADD, "AscendC::Add(yLocal, x1Local;", Status.BUILD_ERROR, BUILD, None, "expected"),
    Fault("unknown call", ADD, "AscendC::Addd(yLocal);", Status.BUILD_ERROR, BUILD, None, "Addd"),
    Fault("element type", ADD, ADD.replace("Add(", "And("), Status.BUILD_ERROR, BUILD, None, "element type"),
    Fault(
        "buffers beyond UB",
        OUT_BUFFER,
        "pipe.InitBuffer(outQueueY, 1, 200000);",
        FAULT,
        RUN,
        "InitBuffer",
        "unified buffer overflow: 200000 bytes",
    ),
    Fault(
        "scratch beyond UB",
        OUT_BUFFER,
        OUT_BUFFER + " AscendC::TBuf<AscendC::QuePosition::VECCALC> tmp; pipe.InitBuffer(tmp, 190000);"
        " AscendC::Duplicate(tmp.Get<float>(), 0.0f, 47500);",
        FAULT,
        RUN,
        "Duplicate",
        "unified buffer overflow",
    ),
    Fault(
        "scratch beyond UB",
        OUT_BUFFER,
        OUT_BUFFER + " AscendC::TBuf<AscendC::QuePosition::VECCALC> tmp; pipe.InitBuffer(tmp, 190000);"
        " AscendC::Duplicate(tmp.Get<float>(), 0.0f, 47500);",
        FAULT,
        RUN,
        "Duplicate",
        "unified buffer overflow",
    ),
    Fault(
        "operand beyond UB", ADD, ADD.replace("count", "120000"), FAULT, RUN, "Add", "runs past its buffer"
    ),
    Fault(
        "reads out of bounds",
        COPY_IN,
        COPY_IN.replace("offset", "offset + 300"),
        FAULT,
        RUN,
        "DataCopyPad(GM->UB)",
        "of x1, which has",
    ),
    Fault(
        "reads nothing's memory",
        COPY_IN,
        COPY_IN.replace("offset", "offset + 100000000"),
        FAULT,
        RUN,
        "DataCopyPad(GM->UB)",
        "belongs to no tensor",
    ),
    Fault(
        "writes out of bounds",
        COPY_OUT,
        COPY_OUT.replace("offset", "offset + 2048"),
        FAULT,
        RUN,
        "DataCopyPad(UB->GM)",
        "of y, which has",
    ),
    Fault(
        "writes an input",
        COPY_OUT,
        COPY_OUT.replace("yGm", "x1Gm"),
        FAULT,
        RUN,
        "DataCopyPad(UB->GM)",
        "read-only",
    ),
    Fault("misaligned", ADD, ADD.replace("x1Local", "x1Local[1]"), FAULT, RUN, "Add", "not a multiple of 32"),
    Fault(
        "empty queue",
        "outQueueY.EnQue<T>(yLocal);",
        "",
        FAULT,
        RUN,
        "DeQue",
        "queue is empty",
    ),
    Fault(
        "buffers used up",
        "inQueueX1.FreeTensor(x1Local);",
        "",
        FAULT,
        RUN,
        "AllocTensor",
        "all 1 buffers",
    ),
    Fault(
        "flag never set",
        ADD,
        "AscendC::WaitFlag<AscendC::HardEvent::MTE2_V>(0);",
        FAULT,
        RUN,
        "WaitFlag",
        "never set",
    ),
    Fault(
        "flag set twice",
        ADD,
        "AscendC::SetFlag<AscendC::HardEvent::MTE2_V>(0); AscendC::SetFlag<AscendC::HardEvent::MTE2_V>(0);",
        FAULT,
        RUN,
        "SetFlag",
        "twice",
    ),
    Fault("abort", LOOP_BODY, "__builtin_abort();", FAULT, RUN, "kernel", "abort"),
    Fault("null pointer", LOOP_BODY, "*(volatile int *)nullptr = 1;", FAULT, RUN, "kernel", "raw pointer"),
    Fault(
        "division by zero",
        LOOP_BODY,
        "length = 5 / (int)(count - count);",
        FAULT,
        RUN,
        "kernel",
        "division by zero",
    ),
    Fault(
        "stack overflow",
        LOOP_BODY,
        "volatile char big[8 << 20]; big[0] = 1;",
        FAULT,
        RUN,
        "kernel",
        "crashed",
    ),
    Fault(
        "endless instructions",
        LOOP_BODY,
        LOOP_BODY + " offset -= tileLength;",
        Status.RESOURCE_LIMIT,
        RUN,
        None,
        "20000001 records",
    ),
    Fault("endless loop", LOOP_BODY, "while (true) {}", Status.TIMEOUT, RUN, "kernel", "endless loop"),
    Fault(
        "libc",
        LOOP_BODY,
        '__builtin_printf("%d", (int)count);',
        Status.GUARD_REJECTED,
        Phase.GUARD,
        None,
        "not part of Ascend C",
    ),
    Fault(
        "no entry", "__global__ __aicore__", "__aicore__", Status.BUILD_ERROR, BUILD, None, "no kernel entry"
    ),
    Fault(
        "too few arguments",
        "GM_ADDR workspace, GM_ADDR tiling)",
        "GM_ADDR tiling)",
        FAULT,
        RUN,
        "launch",
        "takes 4 arguments",
    ),
    Fault(
        "tiling key",
        "op.Process();",
        "if (TILING_KEY_IS(7)) { op.Process(); }",
        FAULT,
        RUN,
        "TILING_KEY_IS",
        "no branch of the kernel handles tiling key 0",
    ),
    Fault("wrong", ADD, ADD.replace("Add", "Sub"), Status.INCORRECT, Phase.VERIFY, None, "differ"),
    Fault(
        "half done",
        LOOP_BODY,
        "if (offset == 0) { CopyOut(offset, count); } else { break; }",
        Status.INCORRECT,
        Phase.VERIFY,
        None,
        "differ",
    ),
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_broken_kernel_is_explained(bench: Workbench, fault: Fault) -> None:
    result = bench.evaluate(
        bench.edited(kernel={fault.old: fault.new}),
        run_timeout_s=20.0 if fault.status is Status.RESOURCE_LIMIT else 4.0,
    )
    first = result.all_diagnostics[0]
    assert result.status is fault.status, [str(d) for d in result.all_diagnostics]
    assert first.phase is fault.phase
    assert fault.says in " ".join(d.message for d in result.all_diagnostics)
    if fault.call is not None:
        assert first.call == fault.call
    assert result.charge.evaluations == 1


def test_a_fault_names_the_line_of_the_operators_own_source(bench: Workbench) -> None:
    candidate = bench.edited(kernel={ADD: ADD.replace("x1Local", "x1Local[1]")})
    first = bench.evaluate(candidate).all_diagnostics[0]
    assert first.file == "op_kernel/add.cpp"
    assert first.line is not None
    assert "x1Local[1]" in candidate.kernel_text.splitlines()[first.line - 1]


def test_a_crash_is_traced_to_its_line_too(bench: Workbench) -> None:
    body = "*(volatile int *)nullptr = 1;"
    candidate = bench.edited(kernel={LOOP_BODY: f"{LOOP_BODY}\n{body}\n"})
    first = bench.evaluate(candidate).all_diagnostics[0]
    assert first.file == "op_kernel/add.cpp"
    assert first.line is not None
    assert abs(first.line - candidate.kernel_text.splitlines().index(body) - 1) <= 1


TILING_FAULTS = [
    ("totalLength == 0 ||", "totalLength != 0 ||", Status.TILING_ERROR, "GRAPH_FAILED"),
    ("return ge::GRAPH_SUCCESS;", "return ge::GRAPH_SUCCES;", Status.BUILD_ERROR, "GRAPH_SUCCES"),
    ("return ge::GRAPH_SUCCESS;", "*(volatile int *)0 = 1; return 0;", Status.TILING_ERROR, "crashed"),
    ("context->SetBlockDim(blockDim);", "", Status.TILING_ERROR, "SetBlockDim"),
    ("TILE_LENGTH = 2048", "TILE_LENGTH = 65536", Status.RUNTIME_FAULT, "unified buffer overflow"),
]


@pytest.mark.parametrize(("old", "new", "status", "says"), TILING_FAULTS, ids=lambda value: str(value)[:24])
def test_a_broken_tiling_program_is_explained(
    bench: Workbench, old: str, new: str, status: Status, says: str
) -> None:
    result = bench.evaluate(bench.edited(tiling={old: new}))
    assert result.status is status, [str(d) for d in result.all_diagnostics]
    assert says in result.all_diagnostics[0].message


@pytest.mark.parametrize(("elements", "status"), [(197, Status.OK), (198, Status.RUNTIME_FAULT)])
def test_what_lies_beyond_a_tensor_is_its_own_up_to_512_bytes(
    bench: Workbench, elements: int, status: Status
) -> None:
    """Tensors of 3,564,662 bytes and 32 more, rounded up to 512 bytes, end in 394 bytes of slack."""
    past = (
        " if (AscendC::GetBlockIdx() + 1 == AscendC::GetBlockNum() && rest <= this->tileLength) {"
        f" CopyIn(this->length, {elements}); Compute({elements}); CopyOut(this->length, {elements}); }}"
    )
    result = bench.evaluate(bench.edited(kernel={LOOP_BODY: LOOP_BODY + past}))
    told = " ".join(str(diagnostic) for diagnostic in result.all_diagnostics)
    assert result.status is status, told
    if status is Status.OK:
        for said in (
            "reads up to 394 bytes behind the end of x1",
            "writes up to 394 bytes behind the end of y",
        ):
            assert said in told


def test_a_tail_rounded_up_to_32_bytes_is_not_worth_a_word(bench: Workbench) -> None:
    rounded = COPY_IN.replace(
        "x1Gm[offset]",
        "x1Gm[offset], {1, (uint32_t)(count * sizeof(T) + 31) / 32 * 32, 0, 0, 0}, padParams); //",
    )
    result = bench.evaluate(bench.edited(kernel={COPY_IN: rounded}))
    assert result.status is Status.OK
    assert not result.all_diagnostics


def test_scratch_beyond_ub_that_nothing_touches_is_harmless(bench: Workbench) -> None:
    """Operators initialise buffers that the element type at hand never needs."""
    unused = " AscendC::TBuf<AscendC::QuePosition::VECCALC> tmp; pipe.InitBuffer(tmp, 190000);"
    assert bench.evaluate(bench.edited(kernel={OUT_BUFFER: OUT_BUFFER + unused})).status is Status.OK


def test_the_next_evaluation_works_after_a_crash(bench: Workbench) -> None:
    crashed = bench.evaluate(bench.edited(kernel={LOOP_BODY: "*(volatile int *)nullptr = 1;"}))
    healthy = bench.evaluate(bench.spec.baseline)
    assert crashed.status is Status.RUNTIME_FAULT
    assert healthy.status is Status.OK


def test_an_output_copied_from_nowhere_is_not_accepted(bench: Workbench) -> None:
    """Storing the right values without any instruction that writes them is what forged traces look like."""
    result = bench.evaluate(bench.edited(kernel={"op.Process();": ""}))
    assert result.status is Status.INCORRECT
    assert "nan" in result.all_diagnostics[0].message


CHEATS = {
    "uninstrumented function": {
        "class KernelAdd {": "class KernelAdd {\n    __attribute__((no_sanitize_coverage)) void Free() {}\n"
    },
    "assembly": {LOOP_BODY: LOOP_BODY + ' asm volatile("nop");'},
    "assembly in disguise": {LOOP_BODY: LOOP_BODY + ' __asm__ __volatile__("nop");'},
    "spliced keyword": {LOOP_BODY: LOOP_BODY + ' as\\\nm volatile("nop");'},
    "host vector code": {
        '#include "kernel_operator.h"': '#include "kernel_operator.h"\n#include <immintrin.h>'
    },
    "inside of the simulator": {LOOP_BODY: LOOP_BODY + " asim::block().scalar_blocks = 0;"},
    "header of the simulator": {
        '#include "kernel_operator.h"': '#include "kernel_operator.h"\n#include "asim/trace/writer.h"'
    },
    "file of the host": {
        '#include "kernel_operator.h"': '#include "kernel_operator.h"\n#include "/etc/passwd"'
    },
    "pragma": {"constexpr int32_t BUFFER_NUM": '#pragma GCC optimize("O3")\nconstexpr int32_t BUFFER_NUM'},
}


@pytest.mark.parametrize("edits", CHEATS.values(), ids=CHEATS.keys())
def test_ways_round_the_accounting_are_refused(bench: Workbench, edits: dict[str, str]) -> None:
    result = bench.evaluate(bench.edited(kernel=edits))
    first = result.all_diagnostics[0]
    assert result.status is Status.GUARD_REJECTED, [str(d) for d in result.all_diagnostics]
    assert first.file == "op_kernel/add.cpp"
    assert first.line is not None


BEFORE_THE_CLASS = "constexpr int32_t BUFFER_NUM"
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


@pytest.mark.parametrize("shape", [(2047, 2048), (2096, 1000), (2095, 1000)])
def test_tensors_that_end_close_to_an_address_unit_do_not_meet(
    simulator: SimulatorBackend, tmp_path: Path, shape: tuple[int, int]
) -> None:
    """8,384,512 bytes, for one, end 4 KiB below 8 MiB: where guard pages need their own room."""
    spec = load_operator("add")
    case = next(case for case in spec.cases if case.case_id == "fp16_1777x1003")
    resized = case.model_copy(
        update={
            "inputs": tuple(tensor.model_copy(update={"shape": shape}) for tensor in case.inputs),
            "outputs": tuple(tensor.model_copy(update={"shape": shape}) for tensor in case.outputs),
        }
    )
    files = []
    for index, (array,) in enumerate(oracle_for(spec).inputs(resized, 0)):
        files.append([tmp_path / f"{index}.bin"])
        array.tofile(files[-1][0])
    built = simulator.build(spec, resized, spec.baseline, MeasureProtocol())
    assert isinstance(built, Built), built
    run = simulator.run(built, resized, files, MeasureProtocol())
    assert isinstance(run, RunOutput), run
    simulator.cleanup(run)


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


def test_scalar_stores_to_global_memory_count_as_writes(bench: Workbench) -> None:
    by_hand = """{
        auto yLocal = outQueueY.DeQue<T>();
        for (uint32_t i = 0; i < count; i++) yGm.SetValue(offset + i, yLocal.GetValue(i));
        outQueueY.FreeTensor(yLocal);
    }"""
    assert bench.evaluate(bench.edited(kernel={LOOP_BODY: by_hand})).status is Status.OK


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


def test_counter_mode_follows_the_strides(bench: Workbench) -> None:
    """Adding a block of zeros, repeated by a repeat stride of 0, must leave the sums alone."""
    add_zero = (
        ADD
        + """
        auto zero = zeros.Get<T>();
        AscendC::Duplicate(zero, static_cast<T>(5), 256);
        AscendC::Duplicate(zero, static_cast<T>(0), 128);
        AscendC::SetMaskCount();
        AscendC::SetVectorMask<T, AscendC::MaskMode::COUNTER>(0, count);
        AscendC::Add<T, false>(yLocal, yLocal, zero, static_cast<uint64_t>(0), 1, {1, 1, 1, 8, 8, 0});
        AscendC::SetMaskNorm();
        AscendC::ResetMask();"""
    )
    member = "    AscendC::TBuf<AscendC::QuePosition::VECCALC> zeros;\n    uint64_t length;"
    buffer = OUT_BUFFER + " pipe.InitBuffer(zeros, 512);"
    edits = {ADD: add_zero, "    uint64_t length;": member, OUT_BUFFER: buffer}
    result = bench.evaluate(bench.edited(kernel=edits))
    assert result.status is Status.OK, [str(d) for d in result.all_diagnostics]
