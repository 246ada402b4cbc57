"""What tiling programs may take from elsewhere, as their LLVM IR says it."""

from __future__ import annotations

import time

import pytest

from ascend_gym.core.records import SourceFile, Sources
from ascend_gym.core.status import Status
from npu_daemon.simulator.host_check import refused_modules

SOURCES = Sources(
    files=(SourceFile(path="op_host/toy.cpp", text="one\ntwo\nthree\n"),), main="op_host/toy.cpp"
)
OFFERED = frozenset(
    {"_ZN4gert13TilingContext11SetBlockDimEj", "_ZNSt3__14coutE", "_ZNSt3__113basic_filebufIcE4openE"}
)
DEBUG = (
    '!3 = !DIFile(filename: "op_host/toy.cpp", directory: "/tmp")\n'
    '!5 = distinct !DISubprogram(name: "plan", scope: !3, file: !3, line: 1)\n'
    "!7 = !DILocation(line: 2, column: 5, scope: !5)\n"
)


def module(*declarations: str, body: str = "ret void") -> str:
    """Return a module with one function."""
    return "\n".join([*declarations, "define void @plan() {", f"  {body}", "}", DEBUG])


@pytest.mark.parametrize(
    "declaration",
    [
        "declare ptr @malloc(i64)",
        "declare noundef i32 @_ZN4gert13TilingContext11SetBlockDimEj(ptr, i32)",
        '@_ZNSt3__14coutE = external global %"class.std::__1::basic_ostream", align 8',
        "declare float @powf(float, float)",
        "declare i32 @llvm.umax.i32(i32, i32)",
        "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
        "declare void @_ZN8optiling4planEv()",
        '@.str = private unnamed_addr constant [10 x i8] c"call asm \\22\\00"',
    ],
)
def test_what_computes_is_allowed(declaration: str) -> None:
    assert refused_modules([module(declaration)], OFFERED, SOURCES) is None


@pytest.mark.parametrize(
    ("declaration", "named"),
    [
        ("declare ptr @getenv(ptr)", "getenv"),
        ('declare i32 @"\\01getenv"(ptr)', "getenv"),
        ("declare extern_weak i64 @time(ptr)", "time"),
        ("@environ = external global ptr", "environ"),
        ("@environ = extern_weak global ptr", "environ"),
        ("define available_externally i32 @getpid() {", "getpid"),
        ("declare i64 @llvm.x86.rdtsc()", "llvm.x86.rdtsc"),
        ("declare i64 @llvm.readcyclecounter()", "llvm.readcyclecounter"),
        ("declare void @_ZNSt3__113basic_filebufIcE4openE(ptr)", "basic_filebuf"),
        ("declare i32 @_ZNSt3__16thread20hardware_concurrencyEv()", "thread"),
        ("@resolved = ifunc void (), ptr @plan", "unusual kind"),
        ('module asm "nop"', "inline assembly"),
    ],
)
def test_what_asks_the_machine_is_refused(declaration: str, named: str) -> None:
    refused = refused_modules([module(declaration)], OFFERED, SOURCES)
    assert refused is not None
    assert refused.status is Status.GUARD_REJECTED
    assert f"{named}" in refused.diagnostics[0].message.partition(": a tiling program")[0]


def test_assembly_and_calls_are_told_with_their_line() -> None:
    for text in (
        module(body='call void asm sideeffect "rdtsc", ""(), !dbg !7'),
        module("declare ptr @getenv(ptr)", body="%1 = call ptr @getenv(ptr null), !dbg !7"),
    ):
        refused = refused_modules([text], OFFERED, SOURCES)
        assert refused is not None
        assert (refused.diagnostics[0].file, refused.diagnostics[0].line) == ("op_host/toy.cpp", 2)


def test_one_module_may_use_what_another_defines() -> None:
    user = module("declare void @helper()", body="call void @helper()").replace("@plan", "@other")
    owner = module().replace("@plan", "@helper")
    assert refused_modules([user, owner], OFFERED, SOURCES) is None
    assert refused_modules([user], OFFERED, SOURCES) is not None


def test_many_names_that_no_instruction_uses_cost_time_in_proportion() -> None:
    """A table of addresses of foreign variables: where each is used would be looked for in vain."""
    seconds: dict[int, float] = {}
    for count in (500, 4000):
        names = [f"@taken{number}" for number in range(count)]
        table = f"@table = global [{count} x ptr] [{', '.join(f'ptr {name}' for name in names)}]"
        text = module(*(f"{name} = external global i32" for name in names), table)
        seconds[count] = min(_seconds(text) for _ in range(3))  # a neighbour may be in the way
    assert seconds[4000] < 0.01 + 20 * seconds[500]


def _seconds(text: str) -> float:
    started_s = time.process_time()
    assert refused_modules([text], OFFERED, SOURCES) is not None
    return time.process_time() - started_s
