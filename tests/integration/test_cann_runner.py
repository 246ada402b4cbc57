"""The program that calls operators on a device, compiled and run against the stand-in's runtime."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from standin_toolkit import install

from ascend_gym.core.protocols import Failure
from npu_daemon.backends.simulator import SimulatorBackend
from npu_daemon.cann.configuration import CannSettings
from npu_daemon.cann.execution import ADDRESS_SLOTS
from npu_daemon.cann.runner_build import SOURCES, build_tools
from npu_daemon.cann.toolkit import Toolkit, open_toolkit
from npu_daemon.profiling.asc_build import AscProgram
from npu_daemon.profiling.profiler import Profiler

# Integers overflow the registers of both architectures, reals stand between them.
PROBE = """
#include <cstdint>
#include <cstdio>
#include <vector>
struct aclTensor { std::vector<int64_t> shape; int dtype; uint8_t *data; };
struct aclTensorList { std::vector<const aclTensor *> members; };
struct aclIntArray { std::vector<int64_t> values; };
struct aclFloatArray { std::vector<float> values; };
struct aclBoolArray { std::vector<bool> values; };
struct aclOpExecutor { const aclTensor *in, *out; };
extern "C" int aclnnProbeGetWorkspaceSize(
    const aclTensor *a, double d1, int64_t i1, bool f1, const aclIntArray *list, double d2, char *text,
    int64_t i2, int64_t i3, double d3, const aclFloatArray *reals, bool f2, const aclTensorList *tensors,
    const aclTensor *none, const aclBoolArray *flags, int64_t i4, const aclTensor *out, uint64_t *workspace,
    aclOpExecutor **executor) {
    std::FILE *seen = std::fopen("seen", "a");
    std::fprintf(seen, "%g %g %g|%lld %lld %lld %lld|%d %d|%s|", d1, d2, d3, (long long)i1, (long long)i2,
                 (long long)i3, (long long)i4, f1, f2, text);
    for (int64_t value : list->values) std::fprintf(seen, "%lld ", (long long)value);
    for (float value : reals->values) std::fprintf(seen, "%g ", value);
    for (bool value : flags->values) std::fprintf(seen, "%d ", value);
    std::fprintf(seen, "|%zu %d %lld|%d\\n", tensors->members.size(), tensors->members[1]->dtype,
                 (long long)tensors->members[1]->shape[0], none == nullptr);
    std::fprintf(seen, "%p\\n", (void *)a->data);
    std::fclose(seen);
    *workspace = 0;
    *executor = new aclOpExecutor{a, out};
    return 0;
}
extern "C" int aclnnProbe(void *, uint64_t, aclOpExecutor *call, void *) {
    for (int at = 0; at < 16; ++at) call->out->data[at + SHIFT] = call->in->data[at];
    if (CHANGE) call->in->data[3] = 0;
    return 0;
}
"""
ARGUMENTS = """argument tensor in a 0 16 in.bin 1 4
argument double 0.5
argument int64 -7
argument bool 1
argument int64s 2 3 -4
argument double 1e-05
argument string x68c3a920
argument int64 9
argument int64 10
argument double -2.25
argument floats 2 0.5 1.5
argument bool 0
argument list 2 in t 0 16 in.bin 1 4 in t 3 8 in.bin 2 2 1
argument absent
argument bools 2 1 0
argument int64 1099511627776
argument tensor out y 0 16 out.bin 1 4
"""


@pytest.fixture(scope="module")
def toolkit(tmp_path_factory: pytest.TempPathFactory) -> Toolkit:
    folder = tmp_path_factory.mktemp("ascend")
    return open_toolkit(CannSettings(toolkit=install(folder, folder).toolkit))


def _run(
    toolkit: Toolkit,
    folder: Path,
    rounds: int = 1,
    slots: int = 1,
    shift: int = 0,
    change: int = 0,
    rerun: int = 0,
) -> tuple[int, str]:
    """Call the probe and return exit status and last line of the runner."""
    tools = build_tools(toolkit, CannSettings(), toolkit.root / "cache")
    source = folder / "probe.cpp"
    source.write_text(PROBE)
    flags = [f"-DSHIFT={shift}", f"-DCHANGE={change}", "-std=c++17", "-shared", "-fPIC"]
    subprocess.run(["g++", *flags, str(source), "-o", str(folder / "libopapi.so")], check=True)
    np.array([1.0, 2.0, 3.0, 4.0], np.float32).tofile(folder / "in.bin")
    head = f"device 0\ntime_limit_ms 1000\nrounds {rounds}\nslots {slots}\nrerun {rerun}\n"
    head += f"cleaner {tools.cleaner} 4 4096\nlibrary ./libopapi.so\nfunction aclnnProbe\n"
    (folder / "job").write_text(head + ARGUMENTS)
    done = subprocess.run(
        [str(tools.runner), "job"],
        cwd=folder,
        env=dict(toolkit.environment),
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )
    return done.returncode, done.stdout.splitlines()[-1]


@pytest.mark.slow
def test_arguments_of_every_kind_arrive(toolkit: Toolkit, tmp_path: Path) -> None:
    assert _run(toolkit, tmp_path) == (0, "done")
    seen = (tmp_path / "seen").read_text().splitlines()[0]
    assert seen == "0.5 1e-05 -2.25|-7 9 10 1099511627776|1 0|hé |3 -4 0.5 1.5 1 0 |2 3 2|1"
    assert np.fromfile(tmp_path / "out.bin", np.float32).tolist() == [1.0, 2.0, 3.0, 4.0]


def test_addresses_rotate(toolkit: Toolkit, tmp_path: Path) -> None:
    assert _run(toolkit, tmp_path, rounds=7, slots=ADDRESS_SLOTS) == (0, "done")
    addresses = (tmp_path / "seen").read_text().splitlines()[1::2]
    assert len(addresses) == 7
    assert len(set(addresses)) == ADDRESS_SLOTS
    assert addresses[:ADDRESS_SLOTS] == addresses[ADDRESS_SLOTS : 2 * ADDRESS_SLOTS]


def test_a_rerun_has_other_addresses_over_other_garbage(toolkit: Toolkit, tmp_path: Path) -> None:
    left = set()
    for rerun in range(3):
        folder = tmp_path / str(rerun)
        folder.mkdir()
        assert _run(toolkit, folder, rounds=2, slots=3, rerun=rerun, shift=16) == (0, "done")
        left.add((folder / "out.bin").read_bytes())
    assert len(left) == 3


@pytest.mark.parametrize(("shift", "where"), [(-16, "before"), (48, "behind")])
def test_memory_around_a_tensor_is_guarded(toolkit: Toolkit, tmp_path: Path, shift: int, where: str) -> None:
    assert _run(toolkit, tmp_path, shift=shift) == (4, f"overrun y {where}")


def test_the_32_bytes_behind_a_tensor_may_be_written_and_what_is_not_written_is_seen(
    toolkit: Toolkit, tmp_path: Path
) -> None:
    assert _run(toolkit, tmp_path, shift=16) == (0, "done")
    assert np.fromfile(tmp_path / "out.bin", np.uint8).tolist() == [0xA5] * 16


def test_a_changed_input_is_told(toolkit: Toolkit, tmp_path: Path) -> None:
    assert _run(toolkit, tmp_path, change=1) == (4, "changed a")


@pytest.mark.slow
def test_the_cleaning_kernel_touches_every_byte_in_the_simulator(
    simulator: SimulatorBackend, tmp_path: Path
) -> None:
    """Our own kernel is Ascend C: the simulator executes it, from a program that counts what it left."""
    text = (SOURCES / "l2_clean.asc").read_text()
    main = """
#include <cstdio>
#include <vector>
#include "acl/acl.h"
int main() {
    constexpr uint64_t bytes = 5 * kTileBytes;
    std::vector<float> host(bytes / 4, 2.5f);
    void *memory = nullptr;
    aclrtMalloc(&memory, bytes, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMemcpy(memory, bytes, host.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE);
    asg_launch_l2_clean(2, nullptr, memory, bytes);
    aclrtSynchronizeStream(nullptr);
    return 0;
}
"""
    source = tmp_path / "clean.asc"
    source.write_text(text + main)
    folder = tmp_path / "run"
    folder.mkdir()
    profiled = Profiler(simulator, "910B2", folder, None, 20.0).profile_program(AscProgram(source))
    assert not isinstance(profiled, Failure), profiled.diagnostics
    (launch,) = profiled.launches
    assert profiled.unchecked == ()
    assert sum(core["read_bytes"] for core in launch.cores) == 5 * 64 * 1024
    assert sum(core["written_bytes"] for core in launch.cores) == 5 * 64 * 1024
