"""Which lines of an operator's sources its cases reach: the marks of blocks, and a run with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ascend_gym.core.records import MeasureProtocol
from ascend_gym.suite.loader import load_operator
from npu_daemon.backends.simulator import SimulatorBackend
from npu_daemon.coverage import Coverage, FileCoverage, coverage_of
from npu_daemon.simulator.host_build import with_marks
from npu_daemon.simulator.kernel_ir.block_marks import BlockMarks, reached_numbers, read_marks

HOST = """\
define i32 @f(i32 %0) personality ptr @p !dbg !1 {
  %2 = icmp eq i32 %0, 0, !dbg !2
  br i1 %2, label %3, label %5, !dbg !2

3:                                                ; preds = %1
  %4 = invoke i32 @g()
          to label %5 unwind label %7, !dbg !3

5:                                                ; preds = %3, %1
  %6 = phi i32 [ 1, %1 ], [ %4, %3 ], !dbg !4
  ret i32 %6, !dbg !4

7:                                                ; preds = %3
  %8 = landingpad { ptr, i32 }
          cleanup, !dbg !3
  resume { ptr, i32 } %8, !dbg !3
}
declare i32 @g()
!1 = distinct !DISubprogram(name: "f", file: !9, line: 3, unit: !8)
!2 = !DILocation(line: 4, column: 1, scope: !1)
!3 = !DILocation(line: 5, column: 1, scope: !1)
!4 = !DILocation(line: 6, column: 1, scope: !1)
!9 = !DIFile(filename: "op_host/toy.cpp", directory: "/build")
"""


def test_each_block_of_a_tiling_program_is_marked_after_what_must_come_first(tmp_path: Path) -> None:
    marks = BlockMarks()
    lines = with_marks(HOST, marks).split("\n")
    calls = [number for number, line in enumerate(lines) if "call void @asim_host_reached(i32" in line]
    assert [lines[number + 1].strip()[:6] for number in calls] == ["%2 = i", "%4 = i", "ret i3", "resume"]
    assert lines[-2] == "declare void @asim_host_reached(i32)"
    marks.write(tmp_path / "marks")
    assert read_marks(tmp_path / "marks") == [(("op_host/toy.cpp", line),) for line in (4, 5, 6, 5)]


@pytest.mark.parametrize(
    ("digits", "numbers"), [("", set()), ("05", {0, 2}), ("008", {15}), ("ff01", {*range(9)})]
)
def test_digits_of_reached_blocks(digits: str, numbers: set[int]) -> None:
    assert reached_numbers(digits) == numbers


def test_lines_without_instructions_join_a_stretch_and_reached_ones_part_it() -> None:
    file = FileCoverage("op_kernel/toy.cpp", frozenset({2, 3, 6, 9, 10, 14}), frozenset({9}))
    coverage = Coverage((file,), ("case a: timeout: late",))
    assert coverage.lines() == [
        "reached: op_host 0 of 0 lines, op_kernel 1 of 6 lines",
        "no case reaches op_kernel/toy.cpp:2-6",
        "no case reaches op_kernel/toy.cpp:10-14",
        "not run: case a: timeout: late",
    ]


def test_a_branch_that_no_case_takes_is_named_by_file_and_line(
    simulator: SimulatorBackend, tmp_path: Path
) -> None:
    spec = load_operator("neg")
    never = (
        "        if (this->length > 1000000000) {\n            AscendC::PipeBarrier<PIPE_ALL>();\n        }\n"
    )
    head = "inline void Process()\n    {\n"
    kernel = spec.baseline.kernel_text.replace(head, head + never)
    candidate = spec.baseline.rewritten(kernel=kernel)
    smallest = min(spec.cases, key=lambda case: case.traffic_bytes)
    changed = spec.model_copy(update={"cases": (smallest,), "baseline": candidate})
    coverage = coverage_of(changed, tmp_path, simulator.toolchain, MeasureProtocol())
    line = kernel.split("\n").index("            AscendC::PipeBarrier<PIPE_ALL>();") + 1
    assert coverage.failures == ()
    assert [each for each in coverage.missed() if each.startswith(f"op_kernel/neg.cpp:{line}")]
    by_path = {file.path: file for file in coverage.files}
    assert by_path["op_host/neg.cpp"].reached
    assert line - 1 in by_path["op_kernel/neg.cpp"].reached


def test_lines_of_a_case_that_fails_count_as_missed(simulator: SimulatorBackend, tmp_path: Path) -> None:
    spec = load_operator("neg")
    head = "inline void Process()\n    {\n"
    kernel = spec.baseline.kernel_text.replace(
        head, head + "        AscendC::WaitFlag<AscendC::HardEvent::MTE2_V>(0);\n"
    )
    smallest = min(spec.cases, key=lambda case: case.traffic_bytes)
    changed = spec.model_copy(
        update={"cases": (smallest,), "baseline": spec.baseline.rewritten(kernel=kernel)}
    )
    coverage = coverage_of(changed, tmp_path, simulator.toolchain, MeasureProtocol())
    assert len(coverage.failures) == 1
    by_path = {file.path: file for file in coverage.files}
    assert by_path["op_host/neg.cpp"].reached
    assert by_path["op_kernel/neg.cpp"].lines
    assert by_path["op_kernel/neg.cpp"].reached == frozenset()
