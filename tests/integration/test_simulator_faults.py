"""What is wrong with a candidate comes back as a status with a message that a person can act on."""

from __future__ import annotations

import re

import pytest
from faults import ADD, CASE, COPY_IN, LOOP_BODY, OPERATOR, OUT_BUFFER, Fault, check_explained
from simulated import Workbench

from ascend_gym.core.records import Phase
from ascend_gym.core.status import Status
from npu_daemon.backends.simulator import SimulatorBackend
from npu_daemon.simulator import run_report

pytestmark = pytest.mark.slow

FAULTS = [
    Fault(
        "syntax",
        ADD,
        "AscendC::Add(yLocal, x1Local;",
        "expected",
        status=Status.BUILD_ERROR,
        phase=Phase.BUILD_KERNEL,
    ),
    Fault(
        "buffer that nothing was handed out for",
        LOOP_BODY,
        f"{LOOP_BODY} AscendC::TBuf<> none; AscendC::Duplicate(none.Get<float>(8), 0.0f, 8);",
        "call TPipe::InitBuffer for its TBuf first",
        call="Duplicate",
    ),
    Fault(
        "pipe that does not exist",
        "AscendC::TPipe pipe;",
        "AscendC::TPipe &pipe = *static_cast<AscendC::TPipe *>(nullptr);",
        "has no TPipe",
        call="InitBuffer",
    ),
    Fault(
        "copy of less than a block",
        ADD,
        f"{ADD} AscendC::DataCopy(yLocal, x1Local, 4);",
        "less than a data block",
        call="DataCopy(UB->UB)",
    ),
    Fault(
        "unknown call",
        ADD,
        "AscendC::Addd(yLocal);",
        "Addd",
        status=Status.BUILD_ERROR,
        phase=Phase.BUILD_KERNEL,
    ),
    Fault(
        "element type",
        ADD,
        ADD.replace("Add(", "And("),
        "element type",
        status=Status.BUILD_ERROR,
        phase=Phase.BUILD_KERNEL,
    ),
    Fault(
        "kind of argument",
        ADD,
        ADD.replace("x2Local", "x2Gm"),
        "'Add': could not match 'LocalTensor' against 'GlobalTensor'",
        status=Status.BUILD_ERROR,
        phase=Phase.BUILD_KERNEL,
    ),
    Fault(
        "number of arguments",
        OUT_BUFFER,
        "pipe.InitBuffer(outQueueY, tileLength * sizeof(T));",
        "another one requires 3 arguments, but 2 were provided",
        status=Status.BUILD_ERROR,
        phase=Phase.BUILD_KERNEL,
    ),
    Fault("empty queue", "outQueueY.EnQue<T>(yLocal);", "", "queue is empty", "DeQue"),
    Fault("buffers used up", "inQueueX1.FreeTensor(x1Local);", "", "all 1 buffers", "AllocTensor"),
    Fault(
        "flag never set", ADD, "AscendC::WaitFlag<AscendC::HardEvent::MTE2_V>(0);", "never set", "WaitFlag"
    ),
    Fault(
        "flag set twice",
        ADD,
        "AscendC::SetFlag<AscendC::HardEvent::MTE2_V>(0); AscendC::SetFlag<AscendC::HardEvent::MTE2_V>(0);",
        "twice",
        "SetFlag",
    ),
    Fault("trap", LOOP_BODY, "__builtin_trap();", "cannot be reached", "unreachable code"),
    Fault(
        "abort",
        LOOP_BODY,
        "__builtin_abort();",
        "calls abort",
        status=Status.GUARD_REJECTED,
        phase=Phase.GUARD,
    ),
    Fault(
        "null pointer",
        LOOP_BODY,
        "*(volatile int *)nullptr = 1;",
        "null pointer",
        "store through a raw pointer",
    ),
    Fault(
        "full stack",
        LOOP_BODY,
        "volatile uint32_t at = 0; volatile char big[200 << 10]; big[at] = 1;",
        "the stack is full",
    ),
    Fault(
        "huge variables",
        LOOP_BODY,
        "volatile uint32_t at = 0; volatile char big[8 << 20]; big[at] = 1;",
        "bytes of stack",
        status=Status.GUARD_REJECTED,
        phase=Phase.GUARD,
    ),
    Fault(
        "endless instructions",
        LOOP_BODY,
        LOOP_BODY + " offset -= tileLength;",
        "20000001 records",
        status=Status.RESOURCE_LIMIT,
    ),
    Fault("endless loop", LOOP_BODY, "while (true) {}", "endless loop", "kernel", status=Status.TIMEOUT),
    Fault(
        "libc",
        LOOP_BODY,
        '__builtin_printf("%d", (int)count);',
        "not part of Ascend C",
        status=Status.GUARD_REJECTED,
        phase=Phase.GUARD,
    ),
    Fault(
        "no entry",
        "__global__ __aicore__",
        "__aicore__",
        "no kernel entry",
        status=Status.BUILD_ERROR,
        phase=Phase.BUILD_KERNEL,
    ),
    Fault(
        "too few arguments",
        "GM_ADDR workspace, GM_ADDR tiling)",
        "GM_ADDR tiling)",
        "takes 4 arguments",
        "launch",
    ),
    Fault(
        "tiling key",
        "op.Process();",
        "if (TILING_KEY_IS(7)) { op.Process(); }",
        "no branch of the kernel handles tiling key 0",
        "TILING_KEY_IS",
    ),
    Fault("wrong", ADD, ADD.replace("Add", "Sub"), "differ", status=Status.INCORRECT, phase=Phase.VERIFY),
    Fault(
        "half done",
        LOOP_BODY,
        "CopyOut(0, count);",
        "elements of y were never written by any instruction, the first at [",
        status=Status.INCORRECT,
        phase=Phase.VERIFY,
    ),
]


@pytest.fixture(scope="module")
def bench(simulator: SimulatorBackend, tmp_path_factory: pytest.TempPathFactory) -> Workbench:
    return Workbench(simulator, tmp_path_factory.mktemp("data"), OPERATOR, CASE)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_broken_kernel_is_explained(bench: Workbench, fault: Fault) -> None:
    check_explained(bench, fault)


def test_a_run_that_gets_no_processor_says_where_it_was(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_report, "wall_limit_s", lambda timeout_s: run_report.REPORT_S + 0.5)
    result = bench.evaluate(bench.edited(kernel={LOOP_BODY: "while (true) {}"}), run_timeout_s=30.0)
    assert result.status is Status.TIMEOUT
    first = result.all_diagnostics[0]
    assert first.call == "kernel"
    assert "the host is busy, or it waits" in first.message
    assert "endless loop" not in first.message
    assert result.seconds.run < 25.0


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


@pytest.mark.parametrize(
    ("unset", "says"),
    [
        (["coreLength"], "never sets coreLength of AddTilingData"),
        (["tileLength"], "never sets tileLength of AddTilingData"),
        (["coreLength", "tileLength"], "never sets coreLength and tileLength of AddTilingData"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else "",
)
def test_fields_that_are_never_set_are_named(bench: Workbench, unset: list[str], says: str) -> None:
    setters = {f"tiling.set_{name}(": f"// tiling.set_{name}(" for name in unset}
    result = bench.evaluate(bench.edited(tiling=setters), run_timeout_s=2.0)
    assert result.status is not Status.OK
    assert [str(each) for each in result.all_diagnostics if says in each.message]
    (ill,) = bench.evaluate(bench.edited(kernel={ADD: ""})).cases
    assert not [each for each in ill.diagnostics if "never sets" in each.message]


@pytest.mark.parametrize(
    ("statement", "reached"),
    [
        (r".*SaveToBuffer[^;]*;", r"\d+ bytes, all of them 0"),
        (r".*SetDataSize[^;]*;", "none: SetDataSize was not called"),
    ],
    ids=["not saved", "no size"],
)
def test_tiling_data_that_are_not_passed_on_are_named(bench: Workbench, statement: str, reached: str) -> None:
    (line,) = re.findall(statement, bench.spec.baseline.tiling_text)
    result = bench.evaluate(bench.edited(tiling={line: ""}), run_timeout_s=2.0)
    said = [each.message for each in result.all_diagnostics if each.phase is Phase.RUN_TILING]
    assert re.search(rf"sets totalLength, .* that reach the kernel are {reached}: call tiling", said[0])


def test_a_structure_that_is_not_registered_is_named(bench: Workbench) -> None:
    (line,) = re.findall("REGISTER_TILING_DATA_CLASS.*", bench.spec.baseline.tiling_text)
    result = bench.evaluate(bench.edited(tiling={line: ""}))
    assert result.status is Status.BUILD_ERROR
    assert "add REGISTER_TILING_DATA_CLASS(<operator>, <structure>)" in result.all_diagnostics[0].message


LENGTH = "static_cast<uint32_t>(count * sizeof(T)), 0, 0, 0};\n        AscendC::DataCopyPadExtParams"


@pytest.mark.parametrize(
    ("old", "new"),
    [(f"{COPY_IN}, copyParams, padParams);", ""), (LENGTH, LENGTH.replace(" * sizeof(T)", ""))],
    ids=["no copy", "copy of half"],
)
def test_the_first_read_of_what_nothing_wrote_is_named(bench: Workbench, old: str, new: str) -> None:
    candidate = bench.edited(kernel={old: new})
    result = bench.evaluate(candidate)
    (read,) = [each for each in result.all_diagnostics if each.phase is Phase.RUN_KERNEL]
    assert result.status is Status.INCORRECT
    assert read.message.startswith("reads unified buffer bytes [0, ")
    assert candidate.kernel_text.splitlines()[read.line - 1].strip() == ADD


def test_a_race_is_told_with_the_operand_that_runs_past_its_buffer(bench: Workbench) -> None:
    size = "tileLength * sizeof(T));"
    result = bench.evaluate(bench.edited(kernel={size: "tileLength);"}))
    race, overrun = result.all_diagnostics[:2]
    assert result.status is Status.RUNTIME_FAULT
    assert race.message.startswith("race on unified buffer")
    assert "the buffer that they begin in ends at" in overrun.message


def test_the_next_evaluation_works_after_a_crash(bench: Workbench) -> None:
    crashed = bench.evaluate(bench.edited(kernel={LOOP_BODY: "*(volatile int *)nullptr = 1;"}))
    healthy = bench.evaluate(bench.spec.baseline)
    assert crashed.status is Status.RUNTIME_FAULT
    assert healthy.status is Status.OK


def test_scalar_stores_to_global_memory_count_as_writes(bench: Workbench) -> None:
    by_hand = """{
        auto yLocal = outQueueY.DeQue<T>();
        for (uint32_t i = 0; i < count; i++) yGm.SetValue(offset + i, yLocal.GetValue(i));
        outQueueY.FreeTensor(yLocal);
    }"""
    assert bench.evaluate(bench.edited(kernel={LOOP_BODY: by_hand})).status is Status.OK


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
