"""A backend that obeys directives in the kernel text, and the toy operator that goes with it.

Directives (comments in the kernel): ``// fail: <status>`` at the run, ``// fail_build: <status>``,
``// fail_price: <status>``, ``// latency: <us>``, ``// floor: <us>``, ``// wrong``, in other reruns than the
first ``// wrong_later`` and ``// latency_later: <us>``, in the domain ``// wrong_in_domain``, where a case
runs again as rerun 0, on its own values, ``// wrong_on_own`` and ``// latency_on_own: <us>``,
``// tamper: <file prefix>``,
``// shell: <command>`` run within limits, ``// die`` kills the process that evaluates,
``// die_once: <file>`` does so unless the file exists, ``// broken`` and ``// bug`` raise.
"""

from __future__ import annotations

import os
import re
import signal
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from conftest import make_profile

from ascend_gym.core.digest import digest_of
from ascend_gym.core.errors import InfrastructureError
from ascend_gym.core.protocols import Built, Failure, RunOutput
from ascend_gym.core.records import (
    Candidate,
    Case,
    CaseResult,
    DeviceInfo,
    Diagnostic,
    EvalRequest,
    Launch,
    MeasureProtocol,
    OpSpec,
    Phase,
    TargetSheet,
)
from ascend_gym.core.status import Status
from ascend_gym.suite.domain import CASE_SUFFIX
from ascend_gym.suite.inputs import numpy_dtype
from ascend_gym.suite.loader import load_operator
from npu_daemon.sandbox import ResourceLimits, run_limited, sandbox_level

_SHELL_WALL_S = 3600.0  # commands wait for tests, on machines that are as busy as they like

OP_TOML = """
[operator]
type = "Double"
level = 1
category = "elementwise"
description = "twice the input"
auto_sync = true

[tolerance.float32]
atol = 1e-6
rtol = 1e-6
"""
CASE_TOML = """
[[case]]
id = "{name}"
[[case.input]]
name = "x"
dtype = "float32"
shape = [{rows}, 64]
[[case.output]]
name = "y"
dtype = "float32"
shape = [{rows}, 64]
"""
REFERENCE = "def reference(inputs, attributes):\n    return {'y': inputs['x'] * 2.0}\n"
TILING = "static ge::graphStatus TilingFunc(gert::TilingContext* context) { return 0; }\n"
KERNEL = 'extern "C" __global__ __aicore__ void double_it(GM_ADDR x, GM_ADDR y) {}\n'


def make_operator(folder: Path, tiling: str = TILING, kernel: str = KERNEL) -> OpSpec:
    """Write the operator ``local/double_it`` with the cases small and large below ``folder`` and load it."""
    cases = CASE_TOML.format(name="small", rows=4) + CASE_TOML.format(name="large", rows=16)
    files = {
        "op.toml": OP_TOML + cases,
        "reference.py": REFERENCE,
        "op_host/double_it.cpp": tiling,
        "op_kernel/double_it.cpp": kernel,
    }
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return load_operator("local/double_it", op_dir=folder)


def make_request(spec: OpSpec, *directives: str, **fields: object) -> EvalRequest:
    """Return a request for a candidate of ``spec`` whose kernel carries ``directives``."""
    text = "".join(f"// {directive}\n" for directive in directives) + KERNEL
    values = {
        "op_id": spec.op_id,
        "op_folder": spec.folder,
        "folder_digest": spec.folder_digest,
        "candidate": spec.baseline.rewritten(kernel=text),
    }
    return EvalRequest.model_validate({**values, **fields})


class FakeBackend:
    """Doubles its input and costs what the kernel text says, 100 us by default."""

    measures_on_device = False

    def __init__(self, cache_dir: Path, chip: str = "910B2") -> None:
        self.chip = chip
        self.scratch_dir = cache_dir / "fake"
        self.scratch_dir.mkdir(parents=True, exist_ok=True)
        self.toolchain = "fake-1"
        self.built = 0
        self.live_runs = 0
        self.reruns: list[tuple[str, int]] = []  # of each run: its case and its rerun
        self.first_values: list[float] = []  # of each run: the first element of its first input

    def describe(self) -> DeviceInfo:
        return DeviceInfo(
            backend="fake",
            chip=self.chip,
            toolchain_digest=digest_of(self.toolchain),
            sandbox=sandbox_level(),
            host="here",
        )

    def chips(self) -> tuple[str, ...]:
        return (self.chip,)

    def target(self, chip: str) -> TargetSheet | None:
        """Know nothing."""
        return None

    def supports(self, spec: OpSpec, protocol: MeasureProtocol) -> Diagnostic | None:
        if protocol.chip == self.chip:
            return None
        return Diagnostic(phase=Phase.REQUEST, message=f"this fake is a {self.chip}, not a {protocol.chip}")

    def build(
        self,
        spec: OpSpec,
        case: Case,
        candidate: Candidate,
        protocol: MeasureProtocol,
        on_launch: Callable[[str], None] = lambda _: None,
    ) -> Built | Failure:
        self.built += 1
        text = candidate.kernel_text
        on_launch(digest_of(candidate.tiling_text))
        if failure := _failure(text, "fail_build", Phase.BUILD_KERNEL):
            return failure
        return Built(handle=text, seconds=0.25)

    def run(
        self,
        built: Built,
        case: Case,
        inputs: Sequence[Sequence[Path]],
        protocol: MeasureProtocol,
        rerun: int = 0,
    ) -> RunOutput | Failure:
        text: str = built.handle
        self._misbehave(text, inputs[0][0], protocol)
        if failure := _failure(text, "fail", Phase.RUN_KERNEL):
            return failure
        self.live_runs += 1
        self.reruns.append((case.case_id, rerun))
        x = np.fromfile(inputs[0][0], numpy_dtype(case.inputs[0].dtype)).reshape(case.inputs[0].shapes[0])
        on_own = (case.case_id, 0) in self.reruns[:-1] and rerun == 0
        wrong = (
            "// wrong\n" in text
            or (rerun > 0 and "// wrong_later\n" in text)
            or (on_own and "// wrong_on_own\n" in text)
            or (case.case_id.endswith(CASE_SUFFIX) and "// wrong_in_domain\n" in text)
        )
        later = (
            _directive(text, "latency_later" if rerun > 0 else "latency_on_own") if rerun or on_own else None
        )
        self.first_values.append(float(x.reshape(-1)[0]))
        handle = f"// latency: {later}\n{text}" if later else text
        return RunOutput(outputs=((x * 0 if wrong else x * 2,),), handle=handle, seconds=0.5)

    def measure(self, run: RunOutput, case: Case, protocol: MeasureProtocol) -> CaseResult | Failure:
        if failure := _failure(run.handle, "fail_price", Phase.PRICE):
            return failure
        latency_us = float(_directive(run.handle, "latency") or 100.0)
        return CaseResult(
            case_id=case.case_id,
            status=Status.OK,
            samples_us=(latency_us,) * protocol.repeats,
            launch=Launch(block_dim=40, tiling_key=0, workspace_bytes=0, tiling_data_bytes=8),
            profile=make_profile(latency_us),
            floor_us=float(_directive(run.handle, "floor") or 0.0) or None,
        )

    def repeatability(self, protocol: MeasureProtocol) -> float:
        return 4.0 * protocol.noise

    def cleanup(self, run: RunOutput) -> None:
        self.live_runs -= 1

    def trouble(self) -> str | None:
        return None

    def _misbehave(self, text: str, input_file: Path, protocol: MeasureProtocol) -> None:
        if "// broken" in text:
            raise InfrastructureError("the device fell off the bus")
        if "// bug" in text:
            raise ZeroDivisionError("a bug in the backend")
        once = _directive(text, "die_once")
        if "// die\n" in text or (once and not Path(once).exists()):
            if once:
                Path(once).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        if prefix := _directive(text, "tamper"):
            target = next(input_file.parent.glob(f"{prefix}*"))
            target.chmod(0o644)
            target.write_bytes(bytes(target.stat().st_size))
        if command := _directive(text, "shell"):
            self._run_shell(command, protocol)

    def _run_shell(self, command: str, protocol: MeasureProtocol) -> None:
        limits = ResourceLimits(_SHELL_WALL_S, protocol.run_timeout_s, 1 << 30, 1 << 20)
        with tempfile.TemporaryDirectory(dir=self.scratch_dir) as folder:
            run_limited(["sh", "-c", command], cwd=Path(folder), limits=limits, reach=None)


def _directive(text: str, name: str) -> str | None:
    found = re.search(rf"^// {name}: (.*)$", text, re.MULTILINE)
    return found.group(1) if found else None


def _failure(text: str, name: str, phase: Phase) -> Failure | None:
    status = _directive(text, name)
    if status is None:
        return None
    return Failure(Status(status), (Diagnostic(phase=phase, message="as asked"),), seconds=0.125)


class DigestBackend(FakeBackend):
    """Costs 50 to 150 us by the digest of the kernel text, so that some rewrites are improvements."""

    def measure(self, run: RunOutput, case: Case, protocol: MeasureProtocol) -> CaseResult | Failure:
        latency_us = 50 + int(digest_of(run.handle)[:8], 16) / 2**32 * 100
        return super().measure(replace(run, handle=f"// latency: {latency_us}\n"), case, protocol)


class PatientBackend(FakeBackend):
    """Gets ready when somebody writes to the fifo ``go`` beside its cache."""

    def __init__(self, cache_dir: Path, chip: str = "910B2") -> None:
        (cache_dir.parent / "go").read_text()
        super().__init__(cache_dir, chip)


class BrokenBackend(FakeBackend):
    """Cannot be made."""

    def __init__(self, cache_dir: Path, chip: str = "910B2") -> None:
        raise InfrastructureError("g++ is missing on this host")
