"""Tiling programs run while the kernel is compiled, and decide what they decide later."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ascend_gym.core.protocols import Built, Failure
from ascend_gym.core.records import MeasureProtocol
from ascend_gym.core.status import Status
from ascend_gym.suite.loader import load_operator
from npu_daemon.backends.simulator import SimulatorBackend
from npu_daemon.simulator import tiling_run
from npu_daemon.simulator.chips import load_chip
from npu_daemon.simulator.tiling_run import tiling_of


def test_what_was_decided_beside_the_build_is_what_the_first_run_would_find(
    simulator: SimulatorBackend, tmp_path: Path
) -> None:
    spec, protocol = load_operator("core/add"), MeasureProtocol()
    for case in spec.cases[:2]:
        built = simulator.build(spec, case, spec.baseline, protocol)
        assert isinstance(built, Built)
        kernel, ahead = built.handle.kernel, built.handle.tiling
        chip, kinds = load_chip(protocol.chip), kernel.libraries.keys()
        later = tiling_of(kernel.host, kinds, case, chip, simulator.toolchain, tmp_path)
        assert not isinstance(later, Failure)
        assert replace(ahead, seconds=0.0) == replace(later, seconds=0.0)


def test_a_kernel_that_does_not_build_is_told_first_and_leaves_no_folder(
    simulator: SimulatorBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tiling_run.tempfile, "tempdir", str(tmp_path))
    spec, protocol = load_operator("core/add"), MeasureProtocol()
    broken = spec.baseline.rewritten(kernel=f"{spec.baseline.kernel_text}\nint broken = ;\n")
    failure = simulator.build(spec, spec.cases[0], broken, protocol)
    assert isinstance(failure, Failure)
    assert failure.status is Status.BUILD_ERROR
    assert list(tmp_path.iterdir()) == []
