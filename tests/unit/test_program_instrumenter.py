"""Programs of users are counted like kernels, and stay programs: exceptions, memory functions, tables."""

from __future__ import annotations

import re

import llvmlite.binding as llvm

from npu_daemon.simulator.kernel_ir.program_instrumenter import instrumented_program

PROGRAM = """
%pair = type { i32, [3 x i64] }
@text = private constant [3 x i8] c"x%\\00"
declare i32 @__gxx_personality_v0(...)
declare void @may_throw()
declare ptr @memcpy(ptr, ptr, i64)
declare i32 @memcmp(ptr, ptr, i64)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
define i32 @work(ptr %0, i32 %1) personality ptr @__gxx_personality_v0 {
  %3 = alloca %pair, align 8
  call void @llvm.memset.p0.i64(ptr align 8 %3, i8 -1, i64 32, i1 false)
  %4 = call ptr @memcpy(ptr noundef %3, ptr noundef %0, i64 noundef 8)
  %5 = call i32 @memcmp(ptr %3, ptr %4, i64 8)
  %6 = load i32, ptr %3, align 4
  %7 = mul i32 %6, %1
  store i32 %7, ptr %0, align 4
  invoke void @may_throw() to label %8 unwind label %11
8:
  %9 = phi i32 [ %7, %2 ]
  %10 = load <2 x i64>, ptr %0, align 16
  switch i32 %9, label %13 [
    i32 1, label %13
    i32 2, label %13
  ]
11:
  %12 = landingpad { ptr, i32 } cleanup
  resume { ptr, i32 } %12
13:
  ret i32 %5
}
"""


def counted() -> str:
    text = str(llvm.parse_assembly(PROGRAM, llvm.create_context()))
    module = llvm.parse_assembly(instrumented_program(text), llvm.create_context())
    module.verify()
    return str(module)


def test_accesses_are_bounded_where_kernels_have_such() -> None:
    accesses = re.findall(r"call void @asim_(load|store)\(ptr (\S+), i64 (\d+)\)", counted())
    assert accesses == [("load", "%3", "4"), ("store", "%0", "4")]


def test_memory_functions_are_replaced() -> None:
    text = counted()
    assert "call void @asim_memset(ptr %3, i32 255, i64 32)" in text
    assert re.search(
        r"call void @asim_memcpy\(ptr %3, ptr %0, i64 8\)\n +%4 = getelementptr i8, ptr %3, i64 0", text
    )
    assert "%5 = call i32 @asim_memcmp(ptr %3, ptr %4, i64 8)" in text


def test_each_block_is_counted_behind_what_has_to_be_first() -> None:
    text = counted()
    blocks = re.split(r"\n\d+:.*\n", text.partition("define")[2].partition("\n}")[0])
    packed = [int(number) for block in blocks for number in re.findall(r"@asim_count\(i64 (\d+)\)", block)]
    multiply, branch = 1 << 8, 1 << 40
    assert packed == [multiply, branch, branch]  # the block that only resumes costs nothing
    assert re.search(r"phi i32.*\n +call void @asim_count", text)


def test_addresses_that_are_expressions_are_taken_whole() -> None:
    text = """
@table = internal global [4 x i64] zeroinitializer
define void @fill(ptr %0) {
  store ptr %0, ptr getelementptr inbounds (i8, ptr @table, i64 8), align 8
  store ptr getelementptr inbounds (i8, ptr @table, i64 16), ptr %0, align 8
  ret void
}
"""
    plain = str(llvm.parse_assembly(text, llvm.create_context()))
    module = llvm.parse_assembly(instrumented_program(plain), llvm.create_context())
    module.verify()
    stores = re.findall(r"call void @asim_store\(ptr (.+), i64 8\)", str(module))
    assert stores == ["getelementptr inbounds (i8, ptr @table, i64 8)", "%0"]
