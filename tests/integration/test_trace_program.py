"""Traces come from an untrusted process: what they do to programs that read them is the candidate's fault."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from traces import GM, GM_BASE, MTE2, UB, header, record, segment

from ascend_gym.core.protocols import Failure
from ascend_gym.core.records import MeasureProtocol, Phase
from ascend_gym.core.status import Status
from ascend_gym.suite.loader import load_operator
from ascend_gym.suite.oracle import oracle_for
from npu_daemon.backends.simulator import SimulatorBackend
from npu_daemon.case_data import CaseDataCache
from npu_daemon.simulator.chips import load_chip
from npu_daemon.simulator.kernel_run import RECORD_LIMIT
from npu_daemon.simulator.pricing import price_trace
from npu_daemon.simulator.run_report import REPORTED_FAULT_EXIT
from npu_daemon.simulator.trace_program import MEMORY_BYTES, read_trace

END = record("BlockEnd")


def _write(folder: Path, records: bytes) -> Path:
    trace = folder / "trace"
    trace.write_bytes(header() + segment(0, records + END))
    return trace


def _checked(
    program: Path, folder: Path, records: bytes, *, timeout_s: float = 30.0, memory_bytes: int = MEMORY_BYTES
) -> object:
    return read_trace(
        program,
        _write(folder, records),
        ("/dev/null", "on"),
        phase=Phase.RUN_KERNEL,
        verb="checked for races",
        timeout_s=timeout_s,
        memory_bytes=memory_bytes,
    )


def _assert_failed(answer: object, status: Status, words: str) -> None:
    assert isinstance(answer, Failure)
    assert answer.status is status
    assert words in answer.diagnostics[0].message


def test_a_good_trace_is_answered(simulator: SimulatorBackend, tmp_path: Path) -> None:
    assert _checked(simulator.toolchain.races_program, tmp_path, b"") == {"race": None, "rewritten": None}


@pytest.mark.parametrize("space", [8, 60, 255])
def test_a_memory_that_does_not_exist_is_refused(
    simulator: SimulatorBackend, tmp_path: Path, space: int
) -> None:
    records = record("Adds", [(space, 0, 32, 0), (UB, 0, 32, 0)])
    checked = _checked(simulator.toolchain.races_program, tmp_path, records)
    _assert_failed(checked, Status.GUARD_REJECTED, "unknown memory")
    priced = price_trace(simulator.toolchain, _write(tmp_path, records), load_chip("910B2"), "")
    _assert_failed(priced, Status.GUARD_REJECTED, "unknown memory")


@pytest.mark.parametrize("op", ["SetFlag", "WaitFlag"])
def test_a_flag_of_all_pipes_is_refused(simulator: SimulatorBackend, tmp_path: Path, op: str) -> None:
    records = record(op, pipes=(7, MTE2))
    answer = _checked(simulator.toolchain.races_program, tmp_path, records)
    _assert_failed(answer, Status.GUARD_REJECTED, "between two pipes")


def test_memory_is_limited(simulator: SimulatorBackend, tmp_path: Path) -> None:
    """One copy of a million bursts with gaps between them: each is remembered for itself."""
    bursts, stride = 1_000_000, 64
    records = record(
        "CopyGmToUb", [(UB, 0, 32, 0), (GM, GM_BASE, bursts * stride - 32, stride)], repeats=bursts
    )
    answer = _checked(simulator.toolchain.races_program, tmp_path, records, memory_bytes=64 << 20)
    _assert_failed(answer, Status.RESOURCE_LIMIT, "0.0625 GiB")


def test_a_run_ends_at_its_limit_of_records(simulator: SimulatorBackend, tmp_path: Path) -> None:
    """A kernel of thousands of records, allowed a hundred: told with the limit, and little is written."""
    spec, protocol, limit = load_operator("core/add"), MeasureProtocol(), 100
    case = spec.cases[-1]
    data = CaseDataCache(tmp_path / "data", "-").obtain(spec, oracle_for(spec), case, protocol.input_seed)
    built = simulator.build(spec, case, spec.baseline, protocol)
    assert not isinstance(built, Failure)
    run = simulator.run(built, case, data.input_files, protocol)
    assert not isinstance(run, Failure)
    try:
        job = run.handle.job
        trace, described = job.folder / "trace", job.folder / "job"
        trace.touch()
        text = job.described(str(trace), "/dev/null")
        assert f"record_limit {RECORD_LIMIT}\n" in text
        described.write_text(text.replace(f"record_limit {RECORD_LIMIT}", f"record_limit {limit}"), "utf-8")
        answer = subprocess.run(
            [simulator.toolchain.run_program, described], cwd=job.folder, capture_output=True, check=False
        )
        assert answer.returncode == REPORTED_FAULT_EXIT
        assert f"at most {limit} records".encode() in answer.stdout
        assert f"{limit + 1} records".encode() in answer.stdout
        assert 0 < trace.stat().st_size < limit * 1024
    finally:
        simulator.cleanup(run)


def test_time_is_limited(tmp_path: Path) -> None:
    program = tmp_path / "endless"
    text = "int main() { for (volatile int turns = 0;; ++turns) {} }"
    subprocess.run(["g++", "-xc++", "-", "-o", program], input=text, text=True, check=True)
    _assert_failed(
        _checked(program, tmp_path, b"", timeout_s=0.2), Status.TIMEOUT, "checked for races in 0.2 s"
    )
