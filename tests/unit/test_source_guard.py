"""What the source guard takes for code, and what it refuses."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascend_gym.core.records import Phase, SourceFile, Sources
from npu_daemon.simulator.source_guard import (
    pastes_names,
    refused_flags,
    refused_pasting,
    refused_source,
)
from npu_daemon.simulator.source_text import bare_code, without_comments

ASSEMBLY = 'asm volatile("nop");'
HIDING = [
    f'auto a = "/*"; {ASSEMBLY} auto b = "*/";',
    f'auto a = "//"; {ASSEMBLY}',
    f'auto a = R"(")"; {ASSEMBLY} auto b = R"(")";',
    f'auto a = R"x()" )x"; {ASSEMBLY} auto b = "";',
    f"char a = '\"'; {ASSEMBLY} char b = '\"';",
    f"int a = 1'000; {ASSEMBLY} int b = 1'000;",
    f'auto a = "\\\\"; {ASSEMBLY} auto b = "";',
    f"/* a */ {ASSEMBLY} /* b */",
    f"/\\\n* a *\\\n/ {ASSEMBLY}",
    'as\\\nm volatile("nop");',
]
HARMLESS = [
    f"// {ASSEMBLY}",
    f"// what \\\n{ASSEMBLY}",
    f"/* {ASSEMBLY}\n */",
    'const char* text = "asm";',
    'const char* text = R"(asm)";',
    "int quasimodal = 1;",
    "extern int first; int end = 1;",
    'extern "C" __global__ __aicore__ void lerp(GM_ADDR start, GM_ADDR end) {}',
    "constexpr int _ZERO = 0;",
    "__attribute__((aligned(32), always_inline)) int a;",
    "[[maybe_unused]] int a = b[c[0]];",
    "auto a = table[[&] { return 1; }()];",
    "#pragma once\n#pragma pack(push, 8)",
]
REFUSED = [
    ("__attribute__((unused, constructor)) void f();", "constructor"),
    ("__attribute((__constructor__)) void f();", "constructor"),
    ('[[gnu::section("x")]] int a;', "section"),
    ('[[using gnu: unused, section("x")]] int a;', "section"),
    ('<:<:gnu::section("x"):>:> int a;', "section"),
    ("%:pragma GCC optimize(3)", "pragma"),
    ('#line 7 "other.h"', "line numbers"),
    ('# 7 "other.h"', "line numbers"),
    ('extern "C" void _ZN4asim4emitEv();', "linker"),
    ('extern "C" char __bss_start[];', "names of the linker"),
    ('extern "C" char end[];', "names of the linker"),
    ("ASIM_UNARY(x)", "inside of the simulator"),
    ("#include <./asim/machine/gm.h>", "asim/machine/gm.h"),
    ('#include_next "asim/machine/gm.h"', "asim/machine/gm.h"),
    ("#include <sys//mman.h>", "sys"),
]


def sources(text: str) -> Sources:
    return Sources(files=(SourceFile(path="op_kernel/k.cpp", text=text),), main="op_kernel/k.cpp")


@pytest.mark.parametrize("text", HIDING)
def test_code_is_found_wherever_it_hides(text: str) -> None:
    refused = refused_source(sources(text), Phase.BUILD_KERNEL)
    assert refused is not None
    assert "inline assembly" in refused.diagnostics[0].message


@pytest.mark.parametrize("text", HARMLESS)
def test_text_that_only_looks_like_it_is_accepted(text: str) -> None:
    assert refused_source(sources(text), Phase.BUILD_KERNEL) is None


@pytest.mark.parametrize(("text", "named"), REFUSED)
def test_what_is_refused_is_named(text: str, named: str) -> None:
    refused = refused_source(sources(f"int first;\n{text}\n"), Phase.BUILD_KERNEL)
    assert refused is not None
    assert named in refused.diagnostics[0].message
    assert refused.diagnostics[0].line == 2


@given(st.text(alphabet="a\"'/*\\\n R(x)1#", max_size=60))
def test_lines_keep_their_numbers(text: str) -> None:
    assert bare_code(text).count("\n") == text.count("\n")
    assert without_comments(text).count("\n") == text.count("\n")


@pytest.mark.parametrize("paste", ["a##b", "a#\\\n#b", "a%:%:b", "a%:\\\n%:b"])
def test_every_way_to_paste_is_seen(paste: str) -> None:
    assert pastes_names(sources(f"#define GLUE(a, b) {paste}\n"))
    assert not pastes_names(sources('const char* text = "##"; // ##\n'))


def test_only_macros_of_the_simulator_expand_to_its_inside() -> None:
    def expansion(text: str) -> str:
        return f'# 1 "op_kernel/../op_kernel/k.cpp"\n{text}\n# 1 "/usr/include/x.h"\nasm("");\n'

    assert refused_pasting(expansion('asim :: assertion_failed("x");')) is None
    assert refused_pasting(expansion("asim::begin_turn(1);")) is not None
    assert refused_pasting(expansion("asim::read<int>(a);")) is not None
    assert refused_pasting(expansion("asim::read<int>(a);"), "#define GET(a) asim::read<int>(a)\n") is None


@pytest.mark.parametrize("flag", ["-DX=asim", "-Dprivate=public", "-Demit=nothing", "-DX=asm", "-fwhole"])
def test_flags_give_nothing_another_meaning(flag: str) -> None:
    assert refused_flags(["-O2", flag]) is not None


def test_own_flags_are_accepted() -> None:
    assert refused_flags(["-O2", "-DTILE_OF_MINE", "-DROWS_AT_ONCE=4"]) is None
