"""Softmax gradients and pieces in a kernel: their instructions are ordered like those of one call."""

from __future__ import annotations

import pytest
from simulated import Workbench

from ascend_gym.core.status import Status
from npu_daemon.backends.simulator import SimulatorBackend

ADD = "AscendC::Add(yLocal, x1Local, x2Local, count);"
PIECE = (
    "AscendC::SoftmaxFlashV2<T>(yLocal, yLocal[256], yLocal[512], x1Local, yLocal[768], yLocal[1024], "
    "yLocal[1280], SoftMaxTiling{}, {8, 32, 8, 32});"
)
GRADIENT = "AscendC::SoftmaxGrad<T>(yLocal, x1Local, x2Local, SoftMaxTiling{}, false, {8, 32, 8, 32});"
NORMALIZED = (
    "AscendC::SoftmaxFlash<T>(yLocal, yLocal[256], yLocal[512], x1Local, yLocal[768], x2Local, "
    "x2Local[256], SoftMaxTiling{}, true, {8, 32, 8, 32});"
)
SHIFTED = (
    "AscendC::LocalTensor<uint8_t> room; AscendC::PopStackBuffer<uint8_t, AscendC::TPosition::LCM>(room); "
    "AscendC::LocalTensor<T> rows = room.template ReinterpretCast<T>(); "
    "AscendC::LocalTensor<float> kept = room[24576].template ReinterpretCast<float>(); "
    "AscendC::Duplicate(rows, T(1), 4096); AscendC::Duplicate(kept, 0.5f, 512); "
    "AscendC::PipeBarrier<PIPE_V>(); "
    "AscendC::SoftmaxFlashV3<T, float, true>(rows[4096], kept, kept[64], kept[128], rows, rows[8192], "
    "kept[192], kept[256], kept[320], room[32768], SoftMaxTiling{}, "
    "AscendC::SoftMaxParams(8, 512, 8, 512, 2, 8, 0.9375f)); "
    "AscendC::Add(yLocal, x1Local, rows[4096], count);"
)
SUMS = "AscendC::SoftmaxGradFront<T>(yLocal, x1Local, x2Local, SoftMaxTiling{}, {8, 32, 8, 32});"


@pytest.mark.parametrize(
    ("case", "call"),
    [
        ("fp16_8192x2048", GRADIENT),
        ("fp16_8192x2048", SUMS),
        ("fp32_2048x1024", GRADIENT),
        ("fp32_2048x1024", PIECE),
        ("fp16_8192x2048", NORMALIZED),
        ("fp32_2048x1024", NORMALIZED),
        ("fp16_8192x2048", SHIFTED),
    ],
)
def test_a_call_needs_no_barriers_of_the_kernel(
    simulator: SimulatorBackend, tmp_path_factory: pytest.TempPathFactory, case: str, call: str
) -> None:
    bench = Workbench(simulator, tmp_path_factory.mktemp("data"), "add", case)
    result = bench.evaluate(bench.edited(kernel={ADD: call}))
    assert result.status is Status.INCORRECT, [str(each) for each in result.all_diagnostics]
