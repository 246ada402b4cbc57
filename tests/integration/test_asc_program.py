"""Programs with launches of their own, through the real compiler and the real simulator."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ascend_gym.core.errors import MisuseError
from ascend_gym.core.protocols import Failure
from ascend_gym.core.status import Status
from npu_daemon.backends.simulator import SimulatorBackend
from npu_daemon.profiling.asc_build import AscProgram, build_program
from npu_daemon.profiling.asc_program import NO_TENSORS, ProgramJob, ProgramRun, StoppedProgram, run_program
from npu_daemon.profiling.profiler import ProfiledProgram, Profiler
from npu_daemon.simulator.chips import load_chip
from npu_daemon.simulator.places import source_rows
from npu_daemon.simulator.pricing import price_trace
from npu_daemon.simulator.task_type import CoreKind

pytestmark = pytest.mark.slow

PROGRAMS = Path(__file__).parent.parent / "asc"
ADD = PROGRAMS / "add.asc"
MIXED = PROGRAMS / "mixed.asc"
PADDED = PROGRAMS / "padded.asc"
SHARED = PROGRAMS / "shared.asc"
LIBRARY = PROGRAMS / "library.asc"
FLAGS = """#include "acl/acl.h"
#include "kernel_operator.h"
__global__ __mix__(1, 2) void produce() {
    if ASCEND_IS_AIC {
        for (int i = 0; i < 20; ++i) AscendC::CrossCoreSetFlag<2, PIPE_FIX>(3);
    }
    if ASCEND_IS_AIV {
        for (int i = 0; i < WAITS; ++i) AscendC::CrossCoreWaitFlag(3);
    }
}
int main() {
    produce<<<2, nullptr, nullptr>>>();
    return 0;
}
"""


def _run(
    program: AscProgram, backend: SimulatorBackend, folder: Path, timeout_s: float = 20.0
) -> ProgramRun | Failure:
    build = build_program(program, folder, backend.toolchain, 60.0)
    if isinstance(build, Failure):
        return build
    return run_program(ProgramJob(program, build, folder, backend.toolchain, load_chip("910B2"), timeout_s))


def _printed(*command: str | Path) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def _written(tmp_path: Path, edits: dict[str, str], program: Path = ADD) -> AscProgram:
    text = program.read_text("utf-8")
    for old, new in edits.items():
        assert old in text
        text = text.replace(old, new, 1)
    (tmp_path / "changed").mkdir()
    source = tmp_path / "changed" / "changed.asc"
    source.write_text(text)
    return AscProgram(source)


def test_a_program_verifies_itself_and_leaves_a_trace_of_each_launch(
    simulator: SimulatorBackend, tmp_path: Path
) -> None:
    program = AscProgram(ADD, defines=("SCENARIO=2",), arguments=("one", "two"))
    run = _run(program, simulator, tmp_path)
    assert isinstance(run, ProgramRun), run
    assert run.exit_status == 0
    assert run.stdout.splitlines()[-1] == "0 wrong, 2 arguments"
    assert "core 7 of 8, 2.0" in run.stdout
    assert "0.001 s passed" in run.stdout, "the clock is the same each time"
    assert [(launch.kernel, launch.block_dim) for launch in run.launches] == [
        ("add_scaled", 8),
        ("add_scaled", 1),
    ]


def test_macros_of_the_command_line_are_those_of_the_program_alone(
    simulator: SimulatorBackend, tmp_path: Path
) -> None:
    """As with kernels, the headers of Ascend C are read before them."""
    run = _run(AscProgram(PADDED, ("T=3", "LIMIT=T")), simulator, tmp_path)
    assert isinstance(run, ProgramRun), run
    assert run.stdout == "0 wrong\n"


def test_more_cores_are_faster(simulator: SimulatorBackend, tmp_path: Path) -> None:
    tasks_us = []
    for scenario in (1, 2):
        folder = tmp_path / str(scenario)
        folder.mkdir()
        run = _run(AscProgram(ADD, (f"SCENARIO={scenario}",)), simulator, folder)
        assert isinstance(run, ProgramRun), run
        price = price_trace(simulator.toolchain, run.launches[0].trace, load_chip("910B2"), NO_TENSORS)
        assert not isinstance(price, Failure)
        tasks_us.append(price["task_us"])
    assert tasks_us[1] < tasks_us[0]


def test_a_product_that_two_vector_cores_share_is_computed_once(
    simulator: SimulatorBackend, tmp_path: Path
) -> None:
    """asc-devkit, the guide on IBShare: one call of the first vector core, whose result both find."""
    cubes: list[dict[str, Any]] = []
    for shared in ("false", "true"):
        folder = tmp_path / shared
        folder.mkdir()
        run = _run(AscProgram(SHARED, (f"SHARED={shared}",)), simulator, folder)
        assert isinstance(run, ProgramRun), run
        assert (run.exit_status, run.stdout.splitlines()[-1]) == (0, "0 wrong")
        price = price_trace(simulator.toolchain, run.launches[0].trace, load_chip("910B1"), NO_TENSORS)
        assert not isinstance(price, Failure)
        cubes.append(price["cores"][0])
    each, once = cubes
    assert each["read_bytes"] == 2 * once["read_bytes"]
    assert each["mac_instructions"] == 2 * once["mac_instructions"]
    assert once["total_cycles"] < each["total_cycles"]


def test_what_two_vector_cores_share_is_not_fetched_block_by_block(
    simulator: SimulatorBackend, tmp_path: Path
) -> None:
    """asc-devkit, the guide on IBShare of both operands: IterateAll to global memory only."""
    text, call = SHARED.read_text("utf-8"), "object.IterateAll(result);"
    assert call in text
    source = tmp_path / "changed.asc"
    source.write_text(text.replace(call, "while (object.Iterate()) object.GetTensorC(result);"), "utf-8")
    outcome = {}
    for shared in ("false", "true"):
        outcome[shared] = _run(AscProgram(source, (f"SHARED={shared}",)), simulator, tmp_path)
    assert isinstance(outcome["false"], ProgramRun), outcome["false"]
    assert isinstance(outcome["true"], StoppedProgram)
    assert outcome["true"].status is Status.RUNTIME_FAULT
    assert "IterateAll, to global memory" in outcome["true"].diagnostics[0].message


@pytest.mark.parametrize(
    ("edits", "status", "line_of", "message"),
    [
        (
            {"AscendC::Add(a, a, b, tile)": "AscendC::Ad(a, a, b, tile)"},
            Status.BUILD_ERROR,
            "AscendC::Ad(",
            "Ad",
        ),
        *(
            ({"(T)tiling.scale": call}, Status.BUILD_ERROR, "AscendC::Muls", message)
            for call, message in (
                (
                    f"(T)({'0.5f * tiling.tiles_per_core + ' * 70}(T)tiling.tiles_per_core)",
                    "floating and unsigned",
                ),
                ("(T)std::exp(tiling.scale)", "exp of the C library"),
            )
        ),
        ({"zGm[at], a, tile": "zGm[at], a, 64 * tile"}, Status.RUNTIME_FAULT, "64 * tile", "bytes"),
        (
            {"AscendC::InitSocState();": "for (;;) AscendC::PipeBarrier<PIPE_ALL>();"},
            Status.TIMEOUT,
            "for (;;)",
            "time was up",
        ),
    ],
)
def test_a_fault_is_told_with_its_line(
    simulator: SimulatorBackend,
    tmp_path: Path,
    edits: dict[str, str],
    status: Status,
    line_of: str,
    message: str,
) -> None:
    program = _written(tmp_path, edits)
    failure = _run(program, simulator, tmp_path, timeout_s=0.5)
    assert isinstance(failure, Failure)
    assert failure.status is status
    assert message in failure.diagnostics[0].message
    lines = program.source.read_text().splitlines()
    assert failure.diagnostics[0].file == "changed.asc"
    assert line_of in lines[(failure.diagnostics[0].line or 0) - 1]


def test_wherever_an_endless_loop_is_stopped_its_line_is_known(
    simulator: SimulatorBackend, tmp_path: Path
) -> None:
    """Counts have their block's line, and no call goes through a linkage table, which has no lines."""
    program = _written(tmp_path, {"AscendC::InitSocState();": "for (;;) AscendC::PipeBarrier<PIPE_ALL>();"})
    build = build_program(program, tmp_path, simulator.toolchain, 60.0)
    assert not isinstance(build, Failure)
    library = build.libraries[CoreKind.VECTOR]
    assert not re.search("JUMP_SLO.*asim", _printed("readelf", "-r", "-W", library))
    listing = _printed("objdump", "-d", "--no-show-raw-insn", library).split("\n\n")
    (entry,) = [part for part in listing if re.search(r"LaunchSiteILi0\S+enterE\S+>:", part)]
    calls = re.findall(r"^ *([0-9a-f]+):\tcall ", entry, re.M)
    job = ProgramJob(program, build, tmp_path, simulator.toolchain, load_chip("910B2"), 1.0)
    line = 1 + program.source.read_text("utf-8").splitlines().index(
        "    for (;;) AscendC::PipeBarrier<PIPE_ALL>();"
    )
    assert [job.place_of(source_rows(call, library)) for call in calls[-2:]] == [("changed.asc", line)] * 2


def test_library_calls_of_generated_kernels_are_right(simulator: SimulatorBackend, tmp_path: Path) -> None:
    run = _run(AscProgram(LIBRARY), simulator, tmp_path)
    assert isinstance(run, ProgramRun), run
    assert run.stdout.splitlines() == ["0 sums wrong", "0 bits wrong"]


@pytest.mark.parametrize(
    ("edits", "call"),
    [
        ({"rows * (row + 64) * sizeof(float)": "32"}, "ReduceSum"),
        ({"Xor(c, a, b, count)": "Xor(c, a, b, second.Get<uint8_t>(32), count)"}, "Xor"),
    ],
)
def test_too_little_scratch_of_a_library_call_is_a_fault(
    simulator: SimulatorBackend, tmp_path: Path, edits: dict[str, str], call: str
) -> None:
    stopped = _run(_written(tmp_path, edits, LIBRARY), simulator, tmp_path)
    assert isinstance(stopped, StoppedProgram), stopped
    assert stopped.status is Status.RUNTIME_FAULT
    assert stopped.diagnostics[0].call == call
    assert "the temporary buffer has 32 bytes" in stopped.diagnostics[0].message


def test_library_calls_take_little_scratch_in_pieces(simulator: SimulatorBackend, tmp_path: Path) -> None:
    edits = {
        "rows * (row + 64) * sizeof(float)": "(rows_remain ? 3 * 64 : rows * row) * sizeof(float)",
        "Xor(c, a, b, count)": "Xor(c, a, b, scratch.Get<uint8_t>(), count)",
        "TBuf<TPosition::VECCALC> first, second, result;": (
            "TBuf<TPosition::VECCALC> first, second, result, scratch;\n    pipe.InitBuffer(scratch, 256);"
        ),
    }
    run = _run(_written(tmp_path, edits, LIBRARY), simulator, tmp_path)
    assert isinstance(run, ProgramRun), run
    assert run.stdout.splitlines() == ["0 sums wrong", "0 bits wrong"]


def test_what_a_program_prints_before_a_fault_is_kept(simulator: SimulatorBackend, tmp_path: Path) -> None:
    edits = {
        "aclInit(nullptr);": 'printf("so far so good\\n"); aclInit(nullptr);',
        "zGm[at], a, tile": "zGm[at], a, 64 * tile",
    }
    failure = _run(_written(tmp_path, edits), simulator, tmp_path)
    assert isinstance(failure, StoppedProgram)
    assert failure.stdout == "so far so good\n"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("int main() { return 0; }", "launches no kernel<<<...>>>"),
        ("__global__ void k() {}\nvoid run() { k<<<1, nullptr, nullptr>>>(); }", "has no main function"),
    ],
)
def test_what_is_no_program_is_refused(
    simulator: SimulatorBackend, tmp_path: Path, text: str, complaint: str
) -> None:
    source = tmp_path / "changed.asc"
    source.write_text(text)
    with pytest.raises(MisuseError, match=complaint):
        build_program(AscProgram(source), tmp_path, simulator.toolchain, 60.0)


def test_a_missing_barrier_is_a_race_with_both_lines(simulator: SimulatorBackend, tmp_path: Path) -> None:
    barrier = "AscendC::PipeBarrier<PIPE_ALL>();\n        AscendC::Add("
    program = _written(tmp_path, {barrier: "AscendC::Add("})
    failure = Profiler(simulator, "910B2", tmp_path, None, 30.0).profile_program(program)
    assert isinstance(failure, StoppedProgram)
    assert failure.status is Status.RUNTIME_FAULT
    lines = program.source.read_text().splitlines()
    message = failure.diagnostics[0].message
    first, second = (int(line) for line in re.findall(r"changed\.asc:(\d+)", message))
    assert message.startswith("race on unified buffer bytes")
    assert "DataCopy(a, xGm" in lines[first - 1]
    assert "AscendC::Add(" in lines[second - 1]
    assert failure.stdout.endswith("arguments\n")


def test_a_padding_value_and_accesses_past_the_cache(simulator: SimulatorBackend, tmp_path: Path) -> None:
    run = _run(AscProgram(PADDED), simulator, tmp_path)
    assert isinstance(run, ProgramRun), run
    assert run.stdout == "0 wrong\n"


def test_an_assertion_that_does_not_hold_is_told(simulator: SimulatorBackend, tmp_path: Path) -> None:
    failure = _run(AscProgram(PADDED, ("LIMIT=4",)), simulator, tmp_path)
    assert isinstance(failure, StoppedProgram)
    assert failure.diagnostics[0].message == "assertion `limit == 3' does not hold. limit is 4"


@pytest.mark.parametrize("waits", [20, 4])
def test_flags_between_cores_wait_for_room(simulator: SimulatorBackend, tmp_path: Path, waits: int) -> None:
    source = tmp_path / "flags.asc"
    source.write_text(FLAGS)
    folder = tmp_path / "run"
    folder.mkdir()
    run = _run(AscProgram(source, (f"WAITS={waits}",)), simulator, folder)
    if waits == 20:
        assert isinstance(run, ProgramRun), run
    else:
        assert isinstance(run, StoppedProgram)
        assert "flag 3, which was set 15 times, as often as it can be" in run.diagnostics[0].message
        assert (run.diagnostics[0].file, run.diagnostics[0].line) == ("flags.asc", 5)


def test_acl_calls_refuse_what_the_device_would(simulator: SimulatorBackend, tmp_path: Path) -> None:
    too_much = "aclrtMemcpy(device[0], count * 5, z.data(), count * 5, ACL_MEMCPY_HOST_TO_DEVICE);"
    edits = {"aclFinalize();": f"{too_much} aclFinalize();"}
    run = _run(_written(tmp_path, edits), simulator, tmp_path)
    assert isinstance(run, ProgramRun), run
    assert "[acl] aclrtMemcpy: out of bounds" in run.stderr


@pytest.mark.parametrize("vector_cores", [1, 2])
def test_kernels_run_on_the_cores_they_name(
    simulator: SimulatorBackend, tmp_path: Path, vector_cores: int
) -> None:
    run = _run(AscProgram(MIXED, (f"VECTOR_CORES={vector_cores}",)), simulator, tmp_path)
    assert isinstance(run, ProgramRun), run
    assert run.stdout == "0 wrong\n"
    kinds = []
    for launch in run.launches:
        price = price_trace(simulator.toolchain, launch.trace, load_chip("910B2"), NO_TENSORS)
        assert not isinstance(price, Failure)
        kinds.append([core["kind"] for core in price["cores"]])
    assert kinds == [["aiv"] * 4, ["aic"] * 4, ["aic", *["aiv"] * vector_cores] * 2]


_REPEATED = """
#include "acl/acl.h"
#include "kernel_operator.h"

__aicore__ inline void fill(GM_ADDR y, float value) {
    AscendC::TPipe pipe;
    AscendC::TBuf<AscendC::TPosition::VECCALC> buffer;
    pipe.InitBuffer(buffer, 256);
    AscendC::LocalTensor<float> local = buffer.Get<float>();
    AscendC::Duplicate(local, value, 64);
    AscendC::PipeBarrier<PIPE_ALL>();
    AscendC::GlobalTensor<float> out;
    out.SetGlobalBuffer((__gm__ float *)y + 64 * AscendC::GetBlockIdx());
    AscendC::DataCopy(out, local, 64);
}

extern "C" __global__ __vector__ void ones(GM_ADDR y) { fill(y, 1.0f); }
extern "C" __global__ __vector__ void twos(GM_ADDR y) { fill(y, 2.0f); }

int main() {
    uint8_t *y = nullptr;
    aclrtMalloc((void **)&y, 8 * 256, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtStream stream = nullptr;
    aclrtCreateStream(&stream);
    ones<<<8, nullptr, stream>>>(y);
    ones<<<8, nullptr, stream>>>(y);
    twos<<<8, nullptr, stream>>>(y);
    ones<<<8, nullptr, stream>>>(y);
    aclrtSynchronizeStream(stream);
    return 0;
}
"""


def test_a_kernel_launched_again_finds_its_code_loaded(simulator: SimulatorBackend, tmp_path: Path) -> None:
    source = tmp_path / "repeated.asc"
    source.write_text(_REPEATED)
    profiled = Profiler(simulator, "910B2", tmp_path, None, 30.0).profile_program(AscProgram(source))
    assert isinstance(profiled, ProfiledProgram), profiled
    first, again, _, after_another = [launch.price["kernel_cycles"] for launch in profiled.launches]
    assert again < first - 100
    assert after_another == pytest.approx(first, abs=1.0)


_SCALAR_LOOPS = """
#include "acl/acl.h"
#include "kernel_operator.h"

constexpr int32_t TURNS = 1000;

using Buffer = AscendC::TBuf<AscendC::TPosition::VECCALC>;

__aicore__ inline AscendC::LocalTensor<float> zeros(AscendC::TPipe &pipe, Buffer &buffer) {
    pipe.InitBuffer(buffer, TURNS * sizeof(float));
    AscendC::LocalTensor<float> x = buffer.Get<float>();
    AscendC::Duplicate(x, 0.0f, TURNS);
    AscendC::PipeBarrier<PIPE_ALL>();
    return x;
}

extern "C" __global__ __vector__ void sums(GM_ADDR y) {
    AscendC::TPipe pipe;
    AscendC::TBuf<AscendC::TPosition::VECCALC> buffer;
    AscendC::LocalTensor<float> x = zeros(pipe, buffer);
    float sum = 0;
    for (int32_t i = 0; i < TURNS; ++i) sum += x.GetValue(i);
    x.SetValue(0, sum);
}

extern "C" __global__ __vector__ void pairs(GM_ADDR y) {
    AscendC::TPipe pipe;
    AscendC::TBuf<AscendC::TPosition::VECCALC> buffer;
    AscendC::LocalTensor<float> x = zeros(pipe, buffer);
    for (int32_t i = 0; i < TURNS; ++i) x.SetValue(i, x.GetValue(i) + x.GetValue(TURNS - 1 - i));
}

extern "C" __global__ __vector__ void fills(GM_ADDR y) {
    AscendC::TPipe pipe;
    AscendC::TBuf<AscendC::TPosition::VECCALC> buffer;
    AscendC::LocalTensor<float> x = zeros(pipe, buffer);
    for (int32_t i = 0; i < TURNS; ++i) x.SetValue(i, 1.0f);
}

extern "C" __global__ __vector__ void converts(GM_ADDR y) {
    AscendC::TPipe pipe;
    AscendC::TBuf<AscendC::TPosition::VECCALC> buffer;
    AscendC::LocalTensor<float> x = zeros(pipe, buffer);
    for (int32_t i = 0; i < TURNS; ++i) x.SetValue(i, static_cast<float>(i));
}

extern "C" __global__ __vector__ void rounds(GM_ADDR y) {
    AscendC::TPipe pipe;
    AscendC::TQue<AscendC::TPosition::VECIN, 1> queue;
    pipe.InitBuffer(queue, 2, 256);
    for (int32_t i = 0; i < TURNS; ++i) {
        AscendC::LocalTensor<float> x = queue.AllocTensor<float>();
        queue.EnQue(x);
        x = queue.DeQue<float>();
        queue.FreeTensor(x);
    }
}

int main() {
    aclrtStream stream = nullptr;
    aclrtCreateStream(&stream);
    sums<<<1, nullptr, stream>>>(nullptr);
    pairs<<<1, nullptr, stream>>>(nullptr);
    fills<<<1, nullptr, stream>>>(nullptr);
    converts<<<1, nullptr, stream>>>(nullptr);
    rounds<<<1, nullptr, stream>>>(nullptr);
    aclrtSynchronizeStream(stream);
    return 0;
}
"""


def test_a_value_that_is_waited_for_takes_longer_than_one_that_is_stored(
    simulator: SimulatorBackend, tmp_path: Path
) -> None:
    """Device times of such work: docs/hardware.md section 6; the two loads of a pair overlap."""
    source = tmp_path / "scalar_loops.asc"
    source.write_text(_SCALAR_LOOPS)
    profiled = Profiler(simulator, "910B2", tmp_path, None, 30.0).profile_program(AscProgram(source))
    assert isinstance(profiled, ProfiledProgram), profiled
    cycles = [launch.price["kernel_cycles"] / 1000 for launch in profiled.launches]
    sums, pairs, fills, converts, rounds = cycles
    assert 23 < sums < 27
    assert 32 < pairs < 38
    assert fills < 8
    assert 8 < converts - fills < 12
    assert 170 < rounds < 190
