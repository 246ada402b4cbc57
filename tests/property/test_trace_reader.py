"""The pricing program reads traces that an untrusted process wrote: none may crash it or be half believed."""

from __future__ import annotations

import json
import re
import struct
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from traces import GM, GM_BASE, IN_FULL, OPCODES, REGISTER, UB, compact, header, number, segment, vector
from traces import record as full_record

from ascend_gym.core.protocols import Failure
from ascend_gym.core.status import Status
from npu_daemon.backends.simulator import SimulatorBackend
from npu_daemon.simulator.chips import load_chip
from npu_daemon.simulator.pricing import price_trace

MALFORMED_EXIT = 4
OP_SCALAR, OP_SET_FLAG, OP_WAIT_FLAG, OP_BLOCK_END = (
    OPCODES[name] for name in ("ScalarAccess", "SetFlag", "WaitFlag", "BlockEnd")
)
PIPE_V, PIPE_MTE2 = 1, 4


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("traces")
    (folder / "chip").write_text(load_chip("910B2").pricing_text())
    (folder / "tensors").write_text("in 4194304 64 x\nout 2097152 64 y\n")
    return folder


def price(simulator: SimulatorBackend, folder: Path, trace: bytes) -> subprocess.CompletedProcess[str]:
    path = folder / "trace"
    path.write_bytes(trace)
    program = str(simulator.toolchain.price_program)
    command = [program, str(path), str(folder / "chip"), str(folder / "tensors")]
    return subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)


def record(op: int, source: int = 0, target: int = 0, flag: int = 0) -> bytes:
    no_work = number(0)
    return IN_FULL + struct.pack("<HBBBBHII", op, 0, 0, source, target, flag, 0, 0) + no_work


def test_an_empty_block_is_priced_and_the_missing_output_is_told(
    simulator: SimulatorBackend, folder: Path
) -> None:
    answer = price(simulator, folder, header() + segment(0, record(OP_BLOCK_END)))
    assert answer.returncode == 0
    assert '"unwritten":{"y":64},"unread":{"x":64}' in answer.stdout


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=400))
def test_garbage_is_refused(simulator: SimulatorBackend, folder: Path, garbage: bytes) -> None:
    assert price(simulator, folder, garbage).returncode == MALFORMED_EXIT


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(min_size=1, max_size=400))
def test_garbage_after_a_valid_header_is_refused_or_priced(
    simulator: SimulatorBackend, folder: Path, garbage: bytes
) -> None:
    answer = price(simulator, folder, header() + segment(0, garbage))
    assert answer.returncode == MALFORMED_EXIT
    assert "malformed trace" in answer.stderr


def test_a_block_that_never_ends_is_refused(simulator: SimulatorBackend, folder: Path) -> None:
    answer = price(simulator, folder, header() + segment(0, record(OP_SET_FLAG, PIPE_V, PIPE_MTE2)))
    assert answer.returncode == MALFORMED_EXIT
    assert "no end" in answer.stderr


def test_a_wait_for_a_flag_that_nobody_sets_is_refused(simulator: SimulatorBackend, folder: Path) -> None:
    trace = record(OP_WAIT_FLAG, PIPE_V, PIPE_MTE2) + record(OP_BLOCK_END)
    answer = price(simulator, folder, header() + segment(0, trace))
    assert answer.returncode == MALFORMED_EXIT
    assert "wait for each other for ever" in answer.stderr


def test_a_missing_block_is_refused(simulator: SimulatorBackend, folder: Path) -> None:
    answer = price(simulator, folder, header(blocks=2) + segment(0, record(OP_BLOCK_END)))
    assert answer.returncode == MALFORMED_EXIT


def test_a_trace_that_is_cut_short_is_refused_wherever_it_is_cut(
    simulator: SimulatorBackend, folder: Path
) -> None:
    loop = [vector("Adds", [turn * 256, 8192 + turn * 256], 1) for turn in range(4)]
    codes = [compact([*loop, full_record("BlockEnd")]), full_record("BlockEnd")]
    whole = header(blocks=2) + b"".join(segment(block, each) for block, each in enumerate(codes))
    assert price(simulator, folder, whole).returncode == 0
    for length in range(len(whole)):
        answer = price(simulator, folder, whole[:length])
        assert answer.returncode == MALFORMED_EXIT, length
        assert answer.stderr.startswith("malformed trace: "), length
        assert answer.stdout == "", length


def test_counts_that_no_launch_has_are_refused(simulator: SimulatorBackend, folder: Path) -> None:
    end = record(OP_BLOCK_END)
    head = struct.Struct("<HBBBBHII")
    flags = b"".join(record(OP_SET_FLAG, PIPE_V, PIPE_MTE2, flag) for flag in range(1 << 16))
    absurd = {
        "block count out of range": header(blocks=0xFFFFFFFF) + segment(0, end),
        "impossible groups of cores": header(vectors=0xFFFF) + segment(0, end),
        "block out of range": header() + segment(0xFFFFFFFF, end),
        "cut segment": header() + struct.pack("<II", 0, 0xFFFFFFFF) + end,
        "unknown instruction": header() + segment(0, IN_FULL + head.pack(0xFFFF, 0, 0, 0, 0, 0, 0, 0)),
        "too many operands": header() + segment(0, IN_FULL + head.pack(OP_BLOCK_END, 0, 255, 0, 0, 0, 0, 0)),
        "unknown source pipe": header() + segment(0, record(OP_BLOCK_END, source=255)),
        "unknown memory": header() + segment(0, full_record("Adds", [(255, 0, 32, 1)])),
        "unknown vector register": header() + segment(0, full_record("WholeReduceMax", flag=4)),
        "unknown class of scalar work": header() + segment(0, end[:-1] + number(1 << 63)),
        "too many flags": header() + segment(0, flags + record(OP_SET_FLAG, PIPE_MTE2, PIPE_V) + end),
    }
    for message, trace in absurd.items():
        answer = price(simulator, folder, trace)
        assert (answer.returncode, answer.stderr) == (MALFORMED_EXIT, f"malformed trace: {message}\n")
    in_register = header() + segment(0, full_record("Adds", [(REGISTER, 0, 8, 0)]))
    assert price(simulator, folder, in_register).stderr == "malformed trace: unknown memory\n"


def test_the_largest_counts_of_a_record_are_priced(simulator: SimulatorBackend, folder: Path) -> None:
    repeats = 0xFFFFFFFF
    instruction = full_record(
        "Adds", [(UB, 0, 256, 1), (UB, 8192, 256, 1)], repeats=repeats, burst_bytes=repeats
    )
    work = number(1) + number(0xFFFFFFFF)
    trace = header() + segment(0, instruction + record(OP_BLOCK_END)[:-1] + work)
    answer = price(simulator, folder, trace)
    assert answer.returncode == 0, answer.stderr
    assert json.loads(answer.stdout)["kernel_cycles"] > repeats


@pytest.mark.parametrize(
    "codes",
    [
        pytest.param(
            full_record("PipeBarrier") + number(2) + b"\0" + number((1 << 63) - 1), id="records as foreseen"
        ),
        pytest.param(
            full_record(
                "CopyGmToUb",
                [(UB, 0, 512, 512), (GM, GM_BASE, 512, 4096)],
                repeats=0xFFFFFFFF,
                burst_bytes=512,
            ),
            id="bursts of a copy",
        ),
    ],
)
def test_counts_that_take_for_ever_end_at_the_time_limit(
    simulator: SimulatorBackend, folder: Path, codes: bytes
) -> None:
    trace = folder / "trace"
    trace.write_bytes(header() + segment(0, codes + record(OP_BLOCK_END)))
    priced = price_trace(simulator.toolchain, trace, load_chip("910B2"), "", timeout_s=1.0)
    assert isinstance(priced, Failure)
    assert priced.status is Status.TIMEOUT
    assert "issues more than can be priced in 1 s" in priced.diagnostics[0].message


addresses = st.integers(0, 7).map(lambda index: index * 8192)


@st.composite
def loops(draw: st.DrawFn) -> list[bytes]:
    """A loop over a few instructions whose addresses move by steps that now and then change, and a tail."""
    body = draw(
        st.lists(st.tuples(st.sampled_from(["Adds", "Muls", "copy"]), addresses, addresses), max_size=5)
    )
    records = []
    for turn in range(draw(st.integers(0, 12))):
        step = turn * draw(st.sampled_from([0, 256, 256, 256, 4096]))
        for name, target, source in body:
            if name == "copy":
                operands = [
                    (UB, target + turn % 2 * 32768, 512, 512),
                    (GM, GM_BASE + source + step, 512, 512),
                ]
                records.append(full_record("CopyGmToUb", operands, repeats=1, burst_bytes=512))
            else:
                records.append(vector(name, [target + step, source + step], 2))
    return [*records, full_record("BlockEnd")]


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(loops())
def test_what_is_written_short_costs_the_same(
    simulator: SimulatorBackend, folder: Path, records: list[bytes]
) -> None:
    short = compact(records)
    in_full, answer = (
        price(simulator, folder, header() + segment(0, codes)) for codes in (b"".join(records), short)
    )
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout == in_full.stdout
    assert len(short) <= len(b"".join(records))


@pytest.mark.parametrize(
    ("codes", "message"),
    [
        (number(1), "nothing is foreseen"),
        (full_record("BlockEnd") + number(1), "nothing is foreseen"),
        (number(2) + b"\0", "unknown site"),
        (full_record("BlockEnd") + number(4) + b"\0", "unknown site"),
        (vector("Adds", [0, 0], 1) + number(2), "cut record"),
        (vector("Adds", [0, 0], 1) + number(2) + b"\1", "cut record"),
        (b"\xff" * 10, "endless number"),
        (IN_FULL + b"\0" * 10, "cut record"),
        (record(OP_SCALAR), "too few operands"),
        (full_record("CopyGmToUb", [(UB, 0, 32, 32)], repeats=1, burst_bytes=32), "too few operands"),
        (record(OP_BLOCK_END) + record(OP_BLOCK_END), "goes on after its end"),
    ],
)
def test_codes_that_mean_nothing_are_refused(
    simulator: SimulatorBackend, folder: Path, codes: bytes, message: str
) -> None:
    answer = price(simulator, folder, header() + segment(0, codes))
    assert answer.returncode == MALFORMED_EXIT
    assert message in answer.stderr


@pytest.mark.parametrize("line_bytes", ["500", "32", "1e300"])
def test_a_chip_whose_cache_lines_are_no_power_of_two_is_refused(
    simulator: SimulatorBackend, folder: Path, tmp_path: Path, line_bytes: str
) -> None:
    figures = (folder / "chip").read_text()
    (tmp_path / "chip").write_text(re.sub(r"(?m)^l2_line_bytes .*$", f"l2_line_bytes {line_bytes}", figures))
    (tmp_path / "tensors").write_text("")
    answer = price(simulator, tmp_path, header() + segment(0, record(OP_BLOCK_END)))
    assert answer.returncode == MALFORMED_EXIT
    assert "l2_line_bytes" in answer.stderr
