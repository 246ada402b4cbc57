"""Accesses that miss their memory are explained; those in its slack are fine."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from faults import ADD, CASE, COPY_IN, COPY_OUT, LOOP_BODY, OPERATOR, OUT_BUFFER, Fault, check_explained
from simulated import Workbench

from ascend_gym.core.protocols import Built, RunOutput
from ascend_gym.core.records import MeasureProtocol
from ascend_gym.core.status import Status
from ascend_gym.suite.loader import load_operator
from ascend_gym.suite.oracle import oracle_for
from npu_daemon.backends.simulator import SimulatorBackend

pytestmark = pytest.mark.slow

FAULTS = [
    Fault(
        "buffers beyond UB",
        OUT_BUFFER,
        "pipe.InitBuffer(outQueueY, 1, 200000);",
        "unified buffer overflow: 200000 bytes",
        "InitBuffer",
    ),
    Fault(
        "scratch beyond UB",
        OUT_BUFFER,
        OUT_BUFFER + " AscendC::TBuf<AscendC::QuePosition::VECCALC> tmp; pipe.InitBuffer(tmp, 190000);"
        " AscendC::Duplicate(tmp.Get<float>(), 0.0f, 47500);",
        "unified buffer overflow",
        "Duplicate",
    ),
    Fault("operand beyond UB", ADD, ADD.replace("count", "120000"), "runs past its buffer", "Add"),
    Fault(
        "reads out of bounds",
        COPY_IN,
        COPY_IN.replace("offset", "offset + 300"),
        "of x1, which has",
        "DataCopyPad(GM->UB)",
    ),
    Fault(
        "reads nothing's memory",
        COPY_IN,
        COPY_IN.replace("offset", "offset + 100000000"),
        "belongs to no tensor",
        "DataCopyPad(GM->UB)",
    ),
    Fault(
        "writes out of bounds",
        COPY_OUT,
        COPY_OUT.replace("offset", "offset + 2048"),
        "of y, which has",
        "DataCopyPad(UB->GM)",
    ),
    Fault("writes an input", COPY_OUT, COPY_OUT.replace("yGm", "x1Gm"), "read-only", "DataCopyPad(UB->GM)"),
    Fault("misaligned", ADD, ADD.replace("x1Local", "x1Local[1]"), "not a multiple of 32", "Add"),
]


@pytest.fixture(scope="module")
def bench(simulator: SimulatorBackend, tmp_path_factory: pytest.TempPathFactory) -> Workbench:
    return Workbench(simulator, tmp_path_factory.mktemp("data"), OPERATOR, CASE)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_broken_kernel_is_explained(bench: Workbench, fault: Fault) -> None:
    check_explained(bench, fault)


@pytest.mark.parametrize(("elements", "status"), [(197, Status.OK), (198, Status.RUNTIME_FAULT)])
def test_what_lies_beyond_a_tensor_is_its_own_up_to_512_bytes(
    bench: Workbench, elements: int, status: Status
) -> None:
    """Tensors of 3,564,662 bytes and 32 more, rounded up to 512 bytes, end in 394 bytes of slack."""
    past = (
        " if (AscendC::GetBlockIdx() + 1 == AscendC::GetBlockNum() && rest <= this->tileLength) {"
        f" CopyIn(this->length, {elements}); Compute({elements}); CopyOut(this->length, {elements}); }}"
    )
    result = bench.evaluate(bench.edited(kernel={LOOP_BODY: LOOP_BODY + past}))
    told = " ".join(str(diagnostic) for diagnostic in result.all_diagnostics)
    assert result.status is status, told
    if status is Status.OK:
        for said in (
            "reads up to 394 bytes behind the end of x1",
            "writes up to 394 bytes behind the end of y",
        ):
            assert said in told


def test_a_read_of_a_tail_rounded_up_to_32_bytes_is_worth_a_warning(bench: Workbench) -> None:
    rounded = COPY_IN.replace(
        "x1Gm[offset]",
        "x1Gm[offset], {1, (uint32_t)(count * sizeof(T) + 31) / 32 * 32, 0, 0, 0}, padParams); //",
    )
    result = bench.evaluate(bench.edited(kernel={COPY_IN: rounded}))
    assert result.status is Status.OK
    (warning,) = result.all_diagnostics
    assert "reads 10 bytes behind the end of x1" in warning.message
    assert (warning.call, warning.block_idx) == ("DataCopyPad(GM->UB)", 47)
    assert warning.file == "op_kernel/add.cpp"
    assert warning.line


PADDED_OUT = "AscendC::DataCopyPad(yGm[offset], yLocal, copyParams);"
WHOLE_BLOCKS_OUT = "AscendC::DataCopy(yGm[offset], yLocal, count);"


def test_a_tail_that_is_copied_in_whole_blocks_is_told_of_and_where_it_is_missing(bench: Workbench) -> None:
    """Of the 1777 x 1003 elements, 11 are no whole block."""
    result = bench.evaluate(bench.edited(kernel={PADDED_OUT: WHOLE_BLOCKS_OUT}))
    assert result.status is Status.INCORRECT
    verdict, missing, remainder = result.all_diagnostics
    assert "a tail of 11 elements never written?" in verdict.message
    assert (
        "11 elements of y were never written by any instruction, the first at [1776, 992]" in missing.message
    )
    assert re.search(r"copies \d+ of \d+ bytes: DataCopy moves whole 32-byte blocks", remainder.message)
    assert "use DataCopyPad" in remainder.message
    assert (remainder.call, remainder.block_idx) == ("DataCopy(UB->GM)", 47)
    assert remainder.file == "op_kernel/add.cpp"
    assert remainder.line


def test_a_remainder_that_is_copied_otherwise_is_worth_a_warning_for_each_line(bench: Workbench) -> None:
    """Two lines leave out the last 11 elements, at the one tile of all tiles that has them."""
    twice = " AscendC::PipeBarrier<PIPE_MTE3>();\n".join([WHOLE_BLOCKS_OUT, WHOLE_BLOCKS_OUT, PADDED_OUT])
    result = bench.evaluate(bench.edited(kernel={PADDED_OUT: twice}))
    assert result.status is Status.OK, [str(each) for each in result.all_diagnostics]
    first, second = result.all_diagnostics
    assert first.message == second.message
    assert first.line is not None
    assert second.line == first.line + 1


def test_elements_that_no_tile_covers_are_told_of(bench: Workbench) -> None:
    """The last tile of each block is left out."""
    covered = {"offset < this->length;": "offset + this->tileLength < this->length;"}
    result = bench.evaluate(bench.edited(kernel=covered))
    assert result.status is Status.INCORRECT
    verdict, missing = result.all_diagnostics
    told = re.search(r"(\d+) elements are nan where the expectation is not, in 48 runs of", verdict.message)
    assert told is not None, verdict.message
    assert missing.message.startswith(
        f"{told[1]} elements of y were never written by any instruction, the first"
    )


def test_blocks_whose_writes_meet_are_told_of_with_the_tensor_and_to_keep_apart(bench: Workbench) -> None:
    again = (
        " if (offset == 0 && AscendC::GetBlockIdx() == 1) {"
        " CopyIn(16, 16); Compute(16); CopyOut(0 - this->length, 16); }"
    )
    result = bench.evaluate(bench.edited(kernel={LOOP_BODY: LOOP_BODY + again}))
    (race,) = result.all_diagnostics
    assert result.status is Status.RUNTIME_FAULT
    assert "race on global memory, bytes [0, 32) of y:" in race.message
    assert "let the blocks write different bytes, or call SyncAll" in race.message


def test_scratch_beyond_ub_that_nothing_touches_is_worth_a_warning(bench: Workbench) -> None:
    """Operators initialise buffers that the element type at hand never needs."""
    unused = " AscendC::TBuf<AscendC::QuePosition::VECCALC> tmp; pipe.InitBuffer(tmp, 190000);"
    result = bench.evaluate(bench.edited(kernel={OUT_BUFFER: OUT_BUFFER + unused}))
    assert result.status is Status.OK
    (warning,) = result.all_diagnostics
    assert "a buffer of 190016 bytes does not fit" in warning.message
    assert (warning.call, warning.block_idx) == ("InitBuffer", 0)
    assert warning.line


def test_an_operand_that_goes_on_in_the_next_buffer_is_worth_a_warning(bench: Workbench) -> None:
    spare = " AscendC::TBuf<AscendC::QuePosition::VECCALC> tmp, next; pipe.InitBuffer(tmp, 64);"
    spare += " pipe.InitBuffer(next, 64); AscendC::Duplicate(tmp.Get<float>(), 0.0f, 17);"
    result = bench.evaluate(bench.edited(kernel={OUT_BUFFER: OUT_BUFFER + spare}))
    assert result.status is Status.OK
    (warning,) = result.all_diagnostics
    assert "the rest belongs to another one" in warning.message
    assert (warning.call, warning.block_idx) == ("Duplicate", 0)
    assert warning.line


def test_estimates_are_told_where_more_is_asked_for(bench: Workbench) -> None:
    estimate = " AscendC::Reciprocal(x1Local, x1Local, count);"
    result = bench.evaluate(bench.edited(kernel={ADD: ADD + estimate}))
    assert result.status is Status.OK
    (warning,) = result.all_diagnostics
    assert "up to 0.0034 of the value off; use Div" in warning.message
    assert (warning.call, warning.block_idx) == ("Reciprocal", 0)
    assert warning.line


def test_blocks_that_write_the_same_bytes_are_priced_and_warned_of(bench: Workbench) -> None:
    """Each block rounds its work up into that of the next one, as the vendor's lin_space does."""
    again = (
        " if (rest <= this->tileLength && AscendC::GetBlockIdx() + 1 < AscendC::GetBlockNum()) {"
        " CopyIn(offset + count, 16); Compute(16); CopyOut(offset + count, 16); }"
    )
    result = bench.evaluate(bench.edited(kernel={LOOP_BODY: LOOP_BODY + again}))
    assert result.status is Status.OK
    (warning,) = result.all_diagnostics
    assert "two blocks write global memory, bytes [" in warning.message
    assert warning.message.count(" at op_kernel/") == 2
    assert (warning.call, warning.block_idx) == ("DataCopy(UB->GM)", 1)


@pytest.mark.parametrize("shape", [(2047, 2048), (2096, 1000), (2095, 1000)])
def test_tensors_that_end_close_to_an_address_unit_do_not_meet(
    simulator: SimulatorBackend, tmp_path: Path, shape: tuple[int, int]
) -> None:
    """8,384,512 bytes, for one, end 4 KiB below 8 MiB: where guard pages need their own room."""
    spec = load_operator("add")
    case = next(case for case in spec.cases if case.case_id == "fp16_1777x1003")
    resized = case.model_copy(
        update={
            "inputs": tuple(tensor.model_copy(update={"shape": shape}) for tensor in case.inputs),
            "outputs": tuple(tensor.model_copy(update={"shape": shape}) for tensor in case.outputs),
        }
    )
    files = []
    for index, (array,) in enumerate(oracle_for(spec).inputs(resized, 0)):
        files.append([tmp_path / f"{index}.bin"])
        array.tofile(files[-1][0])
    built = simulator.build(spec, resized, spec.baseline, MeasureProtocol())
    assert isinstance(built, Built), built
    run = simulator.run(built, resized, files, MeasureProtocol())
    assert isinstance(run, RunOutput), run
    simulator.cleanup(run)
