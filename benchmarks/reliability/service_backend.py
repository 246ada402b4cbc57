"""A backend whose builds and runs are processes of their own, for ``service_chaos.py``."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from service_worker import PROFILE

from ascend_gym.core.digest import digest_of
from ascend_gym.core.errors import InfrastructureError
from ascend_gym.core.protocols import Built, Failure, RunOutput
from ascend_gym.core.records import (
    Candidate,
    Case,
    CaseResult,
    DeviceInfo,
    Diagnostic,
    Launch,
    MeasureProtocol,
    OpSpec,
    TargetSheet,
)
from ascend_gym.core.status import Status

BUILD_S = 0.03
RUN_S = 0.01


class BuildingBackend:
    """Doubles its input; its latency follows from the kernel text."""

    measures_on_device = False

    def __init__(self, cache_dir: Path, chip: str = "910B2") -> None:
        self._chip = chip

    def describe(self) -> DeviceInfo:
        """Say what this backend measures with."""
        return DeviceInfo(
            backend="building", chip=self._chip, toolchain_digest="0", sandbox="none", host="here"
        )

    def chips(self) -> tuple[str, ...]:
        """Return the chip."""
        return (self._chip,)

    def target(self, chip: str) -> TargetSheet | None:
        """Know nothing."""
        return None

    def supports(self, spec: OpSpec, protocol: MeasureProtocol) -> Diagnostic | None:
        """Support everything."""
        return None

    def build(
        self,
        spec: OpSpec,
        case: Case,
        candidate: Candidate,
        protocol: MeasureProtocol,
        on_launch: Callable[[str], None] = lambda _: None,
    ) -> Built | Failure:
        """Start a process that takes its time; nothing limits it, so if it is killed, the host did that."""
        _take(BUILD_S)
        return Built(candidate.digest, 0.0)

    def run(
        self,
        built: Built,
        case: Case,
        inputs: Sequence[Sequence[Path]],
        protocol: MeasureProtocol,
        rerun: int = 0,
    ) -> RunOutput | Failure:
        """Run in a process that takes its time."""
        _take(RUN_S)
        x = np.fromfile(inputs[0][0], "float32").reshape(case.inputs[0].shapes[0])
        return RunOutput(outputs=((x * 2,),), handle=built.handle, seconds=RUN_S)

    def measure(self, run: RunOutput, case: Case, protocol: MeasureProtocol) -> CaseResult | Failure:
        """Return a latency that is a property of the candidate."""
        latency_us = 1.0 + int(digest_of(run.handle, case.case_id)[:6], 16) / 1000
        return CaseResult(
            case_id=case.case_id,
            status=Status.OK,
            samples_us=(latency_us,),
            launch=Launch(block_dim=1, tiling_key=0, workspace_bytes=0, tiling_data_bytes=8),
            profile=PROFILE.model_copy(update={"task_duration_us": latency_us}),
        )

    def repeatability(self, protocol: MeasureProtocol) -> float:
        """Never differ."""
        return 0.0

    def cleanup(self, run: RunOutput) -> None:
        """Nothing is left behind."""


def _take(seconds: float) -> None:
    """Run a process for some time.

    Raises:
        InfrastructureError: it was killed.
    """
    code = subprocess.run(["sleep", str(seconds)], check=False).returncode
    if code:
        raise InfrastructureError(f"a process of the build was ended by signal {-code}")


if __name__ == "__main__":
    sys.exit("this is a backend: npu-daemon serve --backend service_backend:BuildingBackend")
