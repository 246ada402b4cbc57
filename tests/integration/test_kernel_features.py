"""What kernels rely on beside instructions: flags between cores, own arrays, outputs filled at launch."""

from __future__ import annotations

import pytest
from simulated import Workbench

from ascend_gym.core.status import Status
from npu_daemon.backends.simulator import SimulatorBackend
from npu_daemon.simulator.kernel_build import with_gm_arrays, without_launches

QUEUE = "AscendC::TQue<AscendC::QuePosition::VECIN, BUFFER_NUM> inQueueX1;"
INIT = "pipe.InitBuffer(inQueueX1"
WAIT = "AscendC::CrossCoreWaitFlag(3); "
MEET = "AscendC::CrossCoreSetFlag<0, PIPE_MTE3>(3); " + WAIT
COPY_IN = "AscendC::DataCopyPad(x1Local, x1Gm[offset]"
COPY_OUT = "AscendC::DataCopyPad(yGm[offset]"
BLOCK_DIM = "context->SetBlockDim(blockDim);"
OUTPUT = 'this->Output("y")'
ADDS_UP = {COPY_OUT: "AscendC::SetAtomicAdd<T>(); " + COPY_OUT}

# All tiles but the first with the buffers of a pool in the place of the one that the first tile had.
POOLS = {
    "AscendC::TPipe pipe;": "AscendC::TPipe pipe; "
    "AscendC::TBufPool<AscendC::TPosition::VECCALC> whole; "
    "AscendC::TBufPool<AscendC::TPosition::VECCALC> first, second;",
    INIT: "const uint32_t bytes = 3 * (tileLength * sizeof(T) + 32); pipe.InitBufPool(whole, 2 * bytes); "
    "whole.InitBufPool(first, bytes); whole.InitBufPool(second, bytes, first); first.InitBuffer(inQueueX1",
    "pipe.InitBuffer(inQueueX2": "first.InitBuffer(inQueueX2",
    "pipe.InitBuffer(outQueueY": "first.InitBuffer(outQueueY",
}
NEXT_TILE = "            CopyIn(offset, count);"
SWITCH = "if (offset == this->tileLength) {{ {} " + "".join(
    f"second.InitBuffer({queue}, BUFFER_NUM, this->tileLength * sizeof(T)); "
    for queue in ("inQueueX1", "inQueueX2", "outQueueY")
)
SWITCH += "}} " + NEXT_TILE


@pytest.fixture(scope="module")
def bench(simulator: SimulatorBackend, tmp_path_factory: pytest.TempPathFactory) -> Workbench:
    return Workbench(simulator, tmp_path_factory.mktemp("data"), "add", "fp16_1777x1003")


def test_cores_meet_at_a_flag(bench: Workbench) -> None:
    assert bench.latency_us(kernel={INIT: MEET + INIT}) > bench.latency_us()


def test_a_core_that_waits_for_a_flag_it_never_sets_is_stopped(bench: Workbench) -> None:
    result = bench.evaluate(bench.edited(kernel={INIT: WAIT + INIT}))
    assert result.status is Status.RUNTIME_FAULT
    assert "waits for flag 3, which not all cores have set: 48 of 48 blocks wait" in str(
        result.all_diagnostics[0]
    )


def test_arrays_of_the_kernel_are_global_memory_that_is_only_read(bench: Workbench) -> None:
    table = "static const __gm__ uint16_t TABLE[16] = {1, 2, 3};\n"
    view = "AscendC::GlobalTensor<T> table; table.SetGlobalBuffer((__gm__ T *)TABLE, 16); "
    copied = "AscendC::DataCopy(x1Local, table, 16); AscendC::PipeBarrier<PIPE_MTE2>(); "
    first = {"template <typename T>": table + "template <typename T>"}
    bench.latency_us(kernel=first | {COPY_IN: view + copied + COPY_IN})
    result = bench.evaluate(
        bench.edited(kernel=first | {COPY_OUT: view + "AscendC::DataCopy(table, yLocal, 16); " + COPY_OUT})
    )
    assert "writes to constants of the kernel, which is read-only" in str(result.all_diagnostics[0])


@pytest.mark.parametrize("type_", ["int32_t", "uint32_t", "int64_t"])
def test_a_division_by_zero_goes_on(bench: Workbench, type_: str) -> None:
    """As on a device; here the quotient is 0 and the remainder the dividend."""
    zero = f"volatile {type_} zero = 0, seven = 7; volatile {type_} quotient = seven / zero; "
    zero += f"volatile {type_} left = seven % zero; if (quotient != 0 || left != 7) return; "
    least = "volatile int64_t least = INT64_MIN, minus = -1; "
    least += "if (least / minus != least || least % minus) return; "
    bench.latency_us(kernel={INIT: zero + least + INIT})


def test_a_queue_may_begin_in_global_memory(bench: Workbench) -> None:
    begins = QUEUE.replace("TQue<", "TQueBind<AscendC::TPosition::GM, ")
    assert bench.latency_us(kernel={QUEUE: begins}) == bench.latency_us()


def test_watched_memory_ends_the_run(bench: Workbench) -> None:
    begin = "AscendC::CheckLocalMemoryIAParam watch; watch.isVectorWrite = true; watch.isEnable = true; "
    begin += "watch.endAddr = 65535; AscendC::CheckLocalMemoryIA(watch); "
    result = bench.evaluate(bench.edited(kernel={INIT: begin + INIT}))
    assert result.status is Status.RUNTIME_FAULT
    assert "which CheckLocalMemoryIA watches" in str(result.all_diagnostics[0])


UNKNOWN_TO_DEVICES = {
    "virtual functions": ("struct V { __aicore__ virtual int f() { return 1; } };\n", "V v; (void)v.f();"),
    "std::sort of": (
        "#include <algorithm>\n",
        "int s[4] = {3, 2, 1, int(offset)}; std::sort(s, s + 4); yGm.SetValue(0, (T)(float)s[0]);",
    ),
    "std::vector of": (
        "#include <vector>\n",
        "std::vector<int> v; v.push_back(int(offset)); yGm.SetValue(0, (T)(float)v[0]);",
    ),
    "calls itself": (
        "__aicore__ inline int sum(int n) { return n < 2 ? 1 : n * sum(n - 1) + sum(n - 2); }\n",
        "yGm.SetValue(0, (T)(float)sum(int(offset)));",
    ),
    "kernels have no C library: use sqrt": (
        "#include <cmath>\n",
        "yGm.SetValue(0, (T)sqrtf((float)int(offset)));",
    ),
}


@pytest.mark.parametrize("message", UNKNOWN_TO_DEVICES)
def test_what_the_language_of_devices_has_not(bench: Workbench, message: str) -> None:
    before, statement = UNKNOWN_TO_DEVICES[message]
    edits = {"template <typename T>": before + "template <typename T>", NEXT_TILE: statement + NEXT_TILE}
    result = bench.evaluate(bench.edited(kernel=edits))
    assert result.status is Status.BUILD_ERROR
    assert message in str(result.all_diagnostics[0])


def test_pools_share_their_memory_from_stage_to_stage(bench: Workbench) -> None:
    bench.latency_us(kernel=POOLS | {NEXT_TILE: SWITCH.format("first.Reset();")})


@pytest.mark.parametrize(
    ("edits", "message"),
    [
        ({NEXT_TILE: SWITCH.format("")}, "race"),
        (
            {NEXT_TILE: SWITCH.format("second.Reset();")},
            "the pool has no memory: call InitBufPool for it first",
        ),
        ({"VECCALC> first": "VECCALC, 2> first"}, "the pool holds at most 2 buffers and has 2"),
        ({"uint32_t bytes = 3": "uint32_t bytes = 2"}, "pool overflow"),
        ({"whole.InitBufPool(first, bytes)": "whole.InitBufPool(first, 9 * bytes)"}, "pool overflow"),
    ],
)
def test_pools_have_bounds(bench: Workbench, edits: dict[str, str], message: str) -> None:
    kernel = POOLS | {key: text for key, text in edits.items() if key == NEXT_TILE}
    for key, text in edits.items() - {(NEXT_TILE, edits.get(NEXT_TILE, ""))}:
        kernel = {place: inserted.replace(key, text) for place, inserted in kernel.items()}
    result = bench.evaluate(bench.edited(kernel=kernel))
    assert result.status is Status.RUNTIME_FAULT
    assert message in str(result.all_diagnostics[0])


def test_outputs_are_filled_at_launch_if_the_tiling_asks_for_it(bench: Workbench) -> None:
    initial = {OUTPUT: OUTPUT + ".InitValue(0)"}
    result = bench.evaluate(bench.edited(kernel=ADDS_UP, tiling=initial))
    assert result.status is Status.INCORRECT
    bench.latency_us(
        kernel=ADDS_UP, tiling=initial | {BLOCK_DIM: BLOCK_DIM + " context->SetNeedAtomic(true);"}
    )


def test_launches_from_host_code_are_left_out() -> None:
    text = "void run() {\n    add<<<blocks,\n        nullptr, stream>>>(x, y);\n    done();\n}\n"
    assert without_launches(text) == "void run() {\n    ;\n\n    done();\n}\n"


def test_static_arrays_in_global_memory_are_declared_as_such() -> None:
    assert with_gm_arrays("static volatile __gm__ uint32_t turn[4 * 2] = {0};") == (
        "static __gm_array__(volatile uint32_t, turn, 4 * 2) = {0};"
    )
    others = (
        "static constexpr __gm__ int8_t table[4] = {1};",
        "constexpr static __gm__ float table[4] = {1};",
        "static __gm__ uint8_t *pointer;",
        "__gm__ float *at(int i);",
        "static __gm__ float one;",
    )
    assert [with_gm_arrays(text) for text in others] == list(others)
