"""What the verifier lets through, and a refusal for everything that it has a reason for."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from kernel_ir_samples import INTERFACE, module_text

from npu_daemon.simulator.kernel_ir.checked import CheckedModule, StepKind
from npu_daemon.simulator.kernel_ir.refusal import RefusedIr, readable_name
from npu_daemon.simulator.kernel_ir.verifier import verified


@dataclass(frozen=True)
class Part:
    """What stands in a module besides its frame."""

    body: str = ""
    outside: str = ""
    functions: str = ""

    def verified(self) -> CheckedModule:
        """Return what the verifier makes of it."""
        return verified(module_text(self.body, self.outside, self.functions), INTERFACE)


REFUSED: dict[str, tuple[Part, str]] = {
    # linkage and sections
    "a writable variable": (Part(outside="@kept = global i32 0"), "static or global variables: kept"),
    "an internal variable": (
        Part(
            "  %3 = load i32, ptr @kept, align 4\n  store i32 %3, ptr @kept, align 4",
            "@kept = internal global i32 0",
        ),
        "static or global variables",
    ),
    "a variable of elsewhere": (
        Part("  %3 = load i32, ptr @there, align 4", "@there = external global i32"),
        "not part of Ascend C",
    ),
    "a constant of elsewhere": (
        Part("  %3 = load i32, ptr @there, align 4", "@there = external constant i32"),
        "not part of Ascend C",
    ),
    "a thread-local variable": (Part(outside="@kept = thread_local global i32 0"), "thread-local"),
    "a section of its own": (
        Part(outside='@table = constant i32 1, section ".text"'),
        "section of its own",
    ),
    "a writable variable among the notes": (
        Part(outside='@note = global i32 1, section "asim_task_types"'),
        "static or global variables",
    ),
    "a function in a section": (
        Part(functions='define internal void @f() section ".init" {\n  ret void\n}'),
        "sections of its own",
    ),
    "an initialiser": (
        Part(
            outside="@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] "
            "[{ i32, ptr, ptr } { i32 65535, ptr @start_up, ptr null }]",
            functions="define internal void @start_up() {\n  ret void\n}",
        ),
        "before its launch (start_up)",
    ),
    "a destructor": (
        Part(
            outside="@llvm.global_dtors = appending global [1 x { i32, ptr, ptr }] "
            "[{ i32, ptr, ptr } { i32 65535, ptr @end, ptr null }]",
            functions="define internal void @end() {\n  ret void\n}",
        ),
        "before its launch (end)",
    ),
    "an alias": (
        Part(outside="@other = alias void (), ptr @f", functions="define void @f() {\n  ret void\n}"),
        "another name",
    ),
    "an ifunc": (
        Part(outside="@other = ifunc void (), ptr @f", functions="define ptr @f() {\n  ret ptr null\n}"),
        "another name",
    ),
    "assembly of the module": (Part(outside='module asm ".globl main"'), "assembly outside functions"),
    "a name in quotation marks": (
        Part(functions='define void @"a b"() {\n  ret void\n}'),
        "names a function or variable",
    ),
    "a callback of its own": (
        Part(functions="define void @asim_load(ptr %p, i64 %n) {\n  ret void\n}"),
        "a name of the simulator",
    ),
    "the stack pointer as a function": (
        Part(functions="define void @__safestack_unsafe_stack_ptr() {\n  ret void\n}"),
        "a name of the simulator",
    ),
    "data before a function": (
        Part(functions="define void @f() prefix i32 1 {\n  ret void\n}"),
        "data beside its code",
    ),
    "a function of a variable number of arguments": (
        Part(functions="define void @f(i32 %n, ...) {\n  ret void\n}"),
        "variable number of arguments",
    ),
    "a convention of its own": (
        Part(functions="define preserve_allcc void @f() {\n  ret void\n}"),
        "of a kind that is not known",
    ),
    "a garbage collector": (
        Part(functions='define void @f() gc "shadow-stack" {\n  ret void\n}'),
        "garbage collector",
    ),
    # calls
    "a function of elsewhere": (
        Part("  call void @abort()", functions="declare void @abort()"),
        "calls abort, which is not part of Ascend C",
    ),
    "a callback by its name": (
        Part("  call void @asim_count(i64 0)", functions="declare void @asim_count(i64)"),
        "calls asim_count, which is not part",
    ),
    "a function that the simulator does not provide": (
        Part("  call void @_ZN4asim4goneEv()", functions="declare void @_ZN4asim4goneEv()"),
        "the simulator does not provide: asim::gone",
    ),
    "an interface function with fewer arguments": (
        Part("  %3 = call i32 (ptr) @_ZN4asim5startEv(ptr %0)"),
        "with other types than it takes",
    ),
    "an interface function without extension": (
        Part("  %3 = call i8 @_ZN4asim4takeEPvh(ptr %0, i8 1)"),
        "with other types than it takes",
    ),
    "an interface function with another copy": (
        Part("  call void @_ZN4asim5shapeENS_5ShapeE(ptr byval([16 x i8]) align 8 %0)"),
        "with other types than it takes",
    ),
    "an interface function with an address for a copy": (
        Part("  call void @_ZN4asim5shapeENS_5ShapeE(ptr %0)"),
        "with other types than it takes",
    ),
    "the address of an interface function": (
        Part("  store ptr @_ZN4asim5startEv, ptr %0, align 8"),
        "takes the address of asim::start",
    ),
    "the address of an interface function in a constant": (
        Part(outside="@table = constant ptr @_ZN4asim5startEv"),
        "takes the address of asim::start",
    ),
    "its own function with other types": (
        Part("  call void @f(i64 1)", functions="define internal void @f(i32 %n) {\n  ret void\n}"),
        "with other types than it takes",
    ),
    "inline assembly": (Part('  call void asm sideeffect "nop", ""()'), "inline assembly"),
    "an argument in a register": (
        Part(
            "  call void @f(i32 inreg 1)", functions="define internal void @f(i32 inreg %n) {\n  ret void\n}"
        ),
        "inreg",
    ),
    "a nest argument": (
        Part(
            "  call void @f(ptr nest %0)", functions="define internal void @f(ptr nest %n) {\n  ret void\n}"
        ),
        "nest",
    ),
    "an operand bundle": (
        Part('  call void @_ZN4asim5startEv() [ "deopt"(i32 1) ]'),
        "a call of a form that is not known",
    ),
    # intrinsics
    "the address of the caller": (
        Part("  %3 = call ptr @llvm.returnaddress(i32 0)", functions="declare ptr @llvm.returnaddress(i32)"),
        "addresses of the code that called it",
    ),
    "the frame": (
        Part(
            "  %3 = call ptr @llvm.frameaddress.p0(i32 0)", functions="declare ptr @llvm.frameaddress.p0(i32)"
        ),
        "addresses of the code that called it",
    ),
    "the stack pointer": (
        Part("  %3 = call ptr @llvm.stacksave.p0()", functions="declare ptr @llvm.stacksave.p0()"),
        "arrays of a variable length",
    ),
    "a trap for debuggers": (
        Part("  call void @llvm.debugtrap()", functions="declare void @llvm.debugtrap()"),
        "traps for debuggers",
    ),
    "a prefetch": (
        Part(
            "  call void @llvm.prefetch.p0(ptr %0, i32 0, i32 3, i32 1)",
            functions="declare void @llvm.prefetch.p0(ptr, i32, i32, i32)",
        ),
        "prefetch",
    ),
    "the clock": (
        Part("  %3 = call i64 @llvm.readcyclecounter()", functions="declare i64 @llvm.readcyclecounter()"),
        "the clock of the host",
    ),
    "an instruction of the processor": (
        Part("  %3 = call i64 @llvm.x86.rdtsc()", functions="declare i64 @llvm.x86.rdtsc()"),
        "instructions of the host",
    ),
    "a function that becomes a library call": (
        Part("  %3 = call float @llvm.sin.f32(float 1.0)", functions="declare float @llvm.sin.f32(float)"),
        "calls sin of the C library",
    ),
    "variable arguments": (
        Part("  call void @llvm.va_start.p0(ptr %0)", functions="declare void @llvm.va_start.p0(ptr)"),
        "variable number of arguments",
    ),
    # types
    "a vector": (Part("  %3 = load <4 x float>, ptr %0, align 16"), "vectors of the host"),
    "a wide integer": (Part("  %3 = load i128, ptr %0, align 16"), "integers of 128 bits"),
    "a long double": (Part("  %3 = load x86_fp80, ptr %0, align 16"), "long double"),
    "a quad": (Part("  %3 = load fp128, ptr %0, align 16"), "a float of 128 bits"),
    "the compiler's bfloat": (Part("  %3 = load bfloat, ptr %0, align 2"), "bfloat"),
    "a structure at once": (Part("  %3 = load { i64, i64 }, ptr %0, align 8"), "a whole structure at once"),
    "an array at once": (
        Part("  store [2 x i64] zeroinitializer, ptr %0, align 8"),
        "a whole structure at once",
    ),
    "a huge stack": (Part("  %3 = alloca [2000000 x i8], align 1"), "bytes of stack"),
    "another address space": (
        Part("  %3 = load i32, ptr addrspace(1) null, align 4"),
        "not known here",
    ),
    # instructions
    "a remainder of floats": (
        Part("  %3 = frem float 1.0, 2.0\n  store float %3, ptr %0, align 4"),
        "remainder of floats",
    ),
    "an array of a variable length": (Part("  %3 = alloca i8, i32 %1, align 1"), "not known here"),
    "an atomic load": (Part("  %3 = load atomic i32, ptr %0 seq_cst, align 4"), "atomic accesses"),
    "an atomic store": (Part("  store atomic i32 1, ptr %0 seq_cst, align 4"), "atomic accesses"),
    "an exchange": (Part("  %3 = cmpxchg ptr %0, i32 1, i32 2 seq_cst seq_cst"), "atomic instructions"),
    "an atomic addition": (Part("  %3 = atomicrmw add ptr %0, i32 1 seq_cst"), "atomic instructions"),
    "a fence": (Part("  fence seq_cst"), "memory fences"),
    "a jump to a computed label": (
        Part("  indirectbr ptr %0, [label %a]\na:"),
        "jumps to computed labels",
    ),
    "the address of a label": (
        Part("  store ptr blockaddress(@asim_kernel_entry, %a), ptr %0, align 8\n  br label %a\na:"),
        "not known here",
    ),
    "a variable argument": (Part("  %3 = va_arg ptr %0, i32"), "variable number of arguments"),
    "an address space cast": (
        Part("  %3 = addrspacecast ptr %0 to ptr addrspace(1)"),
        "address spaces of the host",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused_with_its_reason(name: str) -> None:
    part, words = REFUSED[name]
    with pytest.raises(RefusedIr) as refused:
        part.verified()
    assert words in refused.value.message


def test_a_cast_that_no_compiler_of_kernels_takes_fails_the_build() -> None:
    with pytest.raises(RefusedIr, match="cast of a floating value to an unsigned integer") as refused:
        Part("  %3 = fptoui float 1.0 to i32").verified()
    assert refused.value.unprovided


ALLOWED: dict[str, Part] = {
    "a constant": Part(
        "  %3 = load i32, ptr @table, align 4", "@table = private unnamed_addr constant i32 7, align 4"
    ),
    "a table of its own functions": Part(
        outside="@table = internal constant [1 x ptr] [ptr @f]",
        functions="define internal void @f() {\n  ret void\n}",
    ),
    "a static array in global memory": Part(
        outside='@shared = internal global [4 x i32] zeroinitializer, section "asim_gm_static", align 4096'
    ),
    "a note": Part(
        outside='@note = internal constant { i64, i8, i32 } { i64 1, i8 0, i32 2 }, section "asim_task_types"'
    ),
    "functions that are merged": Part(
        "  call void @f()",
        "$f = comdat any",
        "define linkonce_odr void @f() comdat {\n  ret void\n}",
    ),
    "an interface function": Part("  call void @_ZN4asim5startEv()"),
    "a copied argument": Part("  call void @_ZN4asim5shapeENS_5ShapeE(ptr byval([24 x i8]) align 8 %0)"),
    "marks for the optimiser": Part(
        "  %3 = call noundef i32 @_ZN4asim4readERKi(ptr noundef nonnull align 4 dereferenceable(4) %0)"
    ),
    "memory functions of C": Part("  %3 = call ptr @memcpy(ptr %0, ptr %0, i64 8)"),
    "half precision": Part(
        "  %3 = load half, ptr %0, align 2\n  %4 = fadd half %3, 0xH3C00\n  store half %4, ptr %0, align 2"
    ),
    "odd integers": Part("  store i40 5, ptr %0, align 8\n  store i24 7, ptr %0, align 4"),
    "an address of an element": Part(
        "  %3 = load i8, ptr getelementptr inbounds nuw (i8, ptr @table, i64 2), align 1",
        '@table = internal constant [4 x i8] c"a,\\22]"',
    ),
    "an undefined value": Part("  store i32 undef, ptr %0, align 4"),
    "nested structures": Part(
        "  %3 = alloca %outer, align 8",
        '%"class.Outer<int>" = type <{ %inner, [3 x { i8, [2 x i16] }], i8 }>\n'
        '%inner = type { ptr, float }\n%outer = type { %"class.Outer<int>" }',
    ),
    "a table of a class": Part(
        "  store ptr getelementptr inbounds nuw inrange(-16, 8) (i8, ptr @table, i64 16), ptr %0, align 8",
        "@table = internal constant [3 x ptr] [ptr null, ptr null, ptr @__cxa_pure_virtual]",
        "declare void @__cxa_pure_virtual()",
    ),
    "a trap": Part("  call void @llvm.trap()", functions="declare void @llvm.trap()"),
    "volatile accesses": Part(
        "  %3 = load volatile i32, ptr %0, align 4\n  store volatile i32 %3, ptr %0, align 4"
    ),
}


@pytest.mark.parametrize("name", ALLOWED)
def test_it_is_let_through(name: str) -> None:
    checked = ALLOWED[name].verified()
    assert "asim_kernel_entry" in {function.name for function in checked.functions}


def test_accesses_are_found_with_their_sizes() -> None:
    body = "  %3 = load i40, ptr %0, align 8\n  store double 1.0, ptr %0, align 8"
    steps = Part(body).verified().functions[-1].steps
    found = [(step.kind, step.bytes) for step in steps if step.bytes]
    assert found == [(StepKind.LOAD, 5), (StepKind.STORE, 8)]


def test_functions_used_as_values_are_noted() -> None:
    part = Part("  store ptr @f, ptr %0, align 8", functions="define internal void @f() {\n  ret void\n}")
    assert part.verified().address_taken == {"f"}


def test_symbols_are_read_without_running_anything() -> None:
    assert readable_name("_ZN4asim5Queue8allocateEv") == "asim::Queue::allocate"
    assert readable_name("_ZNK7AscendC11LocalTensorIfE8GetValueEj") == "AscendC::LocalTensor"
    assert readable_name("memcpy") == "memcpy"


def test_a_hostile_symbol_takes_linear_time_and_space() -> None:
    symbol = "_ZN" + "1S" * 200_000
    assert len(readable_name(symbol)) <= 2 * len(symbol)
