"""Lines of sources are found for addresses of libraries, in limited time."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from ascend_gym.core.wheel import compiler_program
from npu_daemon.sandbox import ProcessOutcome, run_limited
from npu_daemon.simulator.places import own_place, places_by_frames, source_rows
from npu_daemon.simulator.task_type import CoreKind

SOURCE = """\
extern "C" int outside(int);
static inline __attribute__((always_inline)) int inner(int x) {
    return outside(x) + 1;
}
static inline __attribute__((always_inline)) int middle(int x) {
    return inner(x) * 3;
}
extern "C" int entry(int x) {
    return middle(x) - 2;
}
"""


@pytest.fixture(scope="module", params=["-gdwarf-5", "-gdwarf-4"])
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("places")
    (folder / "op_kernel").mkdir()
    (folder / "op_kernel/a.cpp").write_text(SOURCE)
    command = ["g++", "-O1", "-g1", request.param, "-shared", "-fPIC", "op_kernel/a.cpp", "-o", "a.so"]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "a.so"


def calls_of_outside(library: Path) -> list[str]:
    """Return the addresses of the calls of ``entry``, in hexadecimal digits."""
    listing = subprocess.run(
        ["objdump", "-d", "--disassemble=entry", str(library)], check=True, capture_output=True, text=True
    ).stdout
    return [row.partition(":")[0].strip() for row in listing.splitlines() if "call" in row]


def test_inlined_calls_are_told_from_the_innermost(library: Path) -> None:
    (call,) = calls_of_outside(library)
    rows = source_rows(call, library)
    assert [row.rpartition("/")[2] for row in rows] == ["a.cpp:3", "a.cpp:6", "a.cpp:9", ""]
    assert own_place(rows) == ("op_kernel/a.cpp", 3)
    assert own_place(["/usr/include/x.h:7", *rows[1:]]) == ("op_kernel/a.cpp", 6)


UNASKED = """\
define i32 @entry(i32 %0) !dbg !5 {
  %2 = call i32 @outside(i32 1), !dbg !7
  %3 = call i32 @outside(i32 2), !dbg !8
  ret i32 %0, !dbg !9
}
declare i32 @outside(i32)
!llvm.dbg.cu = !{!2}
!llvm.module.flags = !{!0, !1}
!0 = !{i32 7, !"Dwarf Version", i32 4}
!1 = !{i32 2, !"Debug Info Version", i32 3}
!2 = distinct !DICompileUnit(language: DW_LANG_C_plus_plus, file: !3, emissionKind: LineTablesOnly)
!3 = !DIFile(filename: "op_kernel/a.cpp", directory: "/")
!4 = !DISubroutineType(types: !6)
!5 = distinct !DISubprogram(name: "entry", file: !3, line: 1, type: !4, unit: !2, spFlags: DISPFlagDefinition)
!6 = !{}
!7 = !DILocation(line: 2, scope: !5)
!8 = !DILocation(line: 0, scope: !5)
!9 = !DILocation(line: 4, scope: !5)
"""


def test_an_instruction_that_no_line_asked_for_has_the_line_in_front_of_it(tmp_path: Path) -> None:
    (tmp_path / "a.ll").write_text(UNASKED)
    command = [
        compiler_program(),
        "clang",
        "-O1",
        "-w",
        "-shared",
        "-fPIC",
        "-nostdlib",
        "a.ll",
        "-o",
        "a.so",
    ]
    subprocess.run(command, cwd=tmp_path, check=True)
    first, second = calls_of_outside(tmp_path / "a.so")
    for address in (first, second):
        assert own_place(source_rows(address, tmp_path / "a.so")) == ("op_kernel/a.cpp", 2)


@pytest.mark.parametrize("frames", ["", "zz", "1,", "ffffffff", "1" * 17, "-i"])
def test_what_is_no_address_has_no_place(library: Path, frames: str) -> None:
    assert own_place(source_rows(frames, library)) == (None, None)


def test_no_more_addresses_are_looked_at_than_a_report_can_have(library: Path) -> None:
    rows = source_rows(",".join(["1"] * 100_000), library)
    assert len(rows) <= 32


def test_what_is_no_library_has_no_places(tmp_path: Path) -> None:
    (tmp_path / "a.so").write_bytes(b"\x7fELF" + bytes(60))
    assert source_rows("10", tmp_path / "a.so") == []
    assert source_rows("10", None) == []


def test_places_of_several_kinds_of_core_are_read_together(library: Path) -> None:
    (call,) = calls_of_outside(library)
    wanted = [(CoreKind.VECTOR, call), (CoreKind.VECTOR, "zz"), (CoreKind.CUBE, call)]
    places = places_by_frames(wanted, {CoreKind.VECTOR: library}, own_place)
    assert places == {(CoreKind.VECTOR, call): ("op_kernel/a.cpp", 3)}


def test_two_places_of_a_library_take_one_reading(library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (call,) = calls_of_outside(library)
    after = format(int(call, 16) + 1, "x")
    readings = []

    def counted(arguments: list[str], **options: Any) -> ProcessOutcome:
        readings.append(arguments)
        return run_limited(arguments, **options)

    monkeypatch.setattr("npu_daemon.simulator.places.run_limited", counted)
    wanted = [(CoreKind.VECTOR, frames) for frames in (call, after)]
    assert len(places_by_frames(wanted, {CoreKind.VECTOR: library}, own_place)) == 2
    assert readings == [[str(library), call, after]]
