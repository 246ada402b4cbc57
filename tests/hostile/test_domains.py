"""Kernels of core without their stabilising step: right on the values of the cases, wrong on the domain."""

from __future__ import annotations

from pathlib import Path

import pytest
from simulated import Workbench

from ascend_gym.core.status import Status
from ascend_gym.suite.domain import smallest_case
from ascend_gym.suite.loader import load_operator
from npu_daemon.backends.simulator import SimulatorBackend

pytestmark = pytest.mark.slow

STEPS = {
    "softmax": {"Adds(value, value, -rowMax, count);": "Adds(value, value, 0.0f, count);"},
    "cross_entropy_loss": {
        "const float sum = SumOfExponentials(offset, largest);": (
            "largest = 0.0f;\n            const float sum = SumOfExponentials(offset, largest);"
        ),
        "const float largest": "float largest",
    },
    "attention": {"-FirstOf(result), this->keyNum);": "0.0f * FirstOf(result), this->keyNum);"},
    "layer_norm": {
        "squares += SquaresAround(mean, CountFrom(column));": (
            "squares += SquaresAround(0.0f, CountFrom(column));"
        ),
        "const float rstd = Rstd(squares);": (
            "const float rstd = Rstd(squares - mean * mean * static_cast<int32_t>(this->columnNum));"
        ),
    },
    "group_norm": {
        "MeanOfPowers(offset, groupLength, mean, true);": (
            "MeanOfPowers(offset, groupLength, 0.0f, true) - mean * mean;"
        )
    },
    "rms_norm": {
        "static_cast<int32_t>(this->columnNum) + this->epsilon": "static_cast<int32_t>(this->columnNum)"
    },
    "add_rms_norm": {
        "static_cast<int32_t>(this->columnNum) + this->epsilon": "static_cast<int32_t>(this->columnNum)"
    },
}
"""By operator: what its kernel does to be right everywhere, and what one does that is not."""


@pytest.mark.parametrize("operator", STEPS)
def test_a_kernel_without_its_stabilising_step_is_incorrect_and_its_twin_is_not(
    operator: str, simulator: SimulatorBackend, tmp_path: Path
) -> None:
    spec = load_operator(f"core/{operator}")
    bench = Workbench(simulator, tmp_path, f"core/{operator}", smallest_case(spec.cases).case_id)
    honest = bench.evaluate(bench.edited())
    assert honest.status is Status.OK, [str(each) for each in honest.all_diagnostics]
    lazy = bench.evaluate(bench.edited(kernel=STEPS[operator]))
    assert lazy.status is Status.INCORRECT, [str(each) for each in lazy.all_diagnostics]
