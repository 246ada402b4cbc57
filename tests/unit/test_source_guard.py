"""What the source guard takes for code, and what it refuses."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascend_gym.core.records import Phase, SourceFile, Sources
from npu_daemon.simulator.source_guard import (
    needs_expansion,
    refused_flags,
    refused_pasting,
    refused_source,
)
from npu_daemon.simulator.source_text import ambiguous_literals, bare_code, without_comments

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
    'as\\ \t\nm volatile("nop");',
    f"// a \\ \n/*\n{ASSEMBLY}\n// */",
    f"// a\r{ASSEMBLY}",
    f"#if 0\nit's /*\n#endif\n{ASSEMBLY}\n// */",
    f"#define A it's /*\n{ASSEMBLY}\n// */",
    f'#define $R\nauto a = $R"x("; {ASSEMBLY} auto b = ")x";',
    f'#define \u00e9R\nauto a = \u00e9R"x("; {ASSEMBLY} auto b = ")x";',
    f'#define \U0001f600R\nauto a = \U0001f600R"x("; {ASSEMBLY} auto b = ")x";',
]
AMBIGUOUS = [
    (f"#define D(a)\nD(1') {ASSEMBLY} D(1')", "a number's quote", 2),
    (f'#define D(a)\nD("a"R"(") {ASSEMBLY} D(")")', "raw string", 2),
    (f'auto a = R"x( )\\\nx" /* )x"; {ASSEMBLY} /* */', "raw string", 1),
    ('auto a = R"(\n)";', "raw string", 1),
    ('auto a = R"x(', "raw string", 1),
    (f"int a;\n#include <a/*b.h>\n{ASSEMBLY}\n// */", "header name", 2),
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
    'auto text = R"({"a": "b"})"; // it\'s one line',
    "#define likely(x) __builtin_expect(!!(x), 1)\nif (likely(a)) [[unlikely]] {}",
    "#if 0\nit isn't compiled\n#endif",
    "#define BYTES 32\n__attribute__((aligned(BYTES))) int a;",
    "#define NOTE __attribute__((unused))\nNOTE int a;",
    "auto a = b[c[d[0]]] + e[f[0]];",
    "constexpr char mark = '\\'', quote = '\"';",
    "constexpr uint64_t mask = 0xFF'FF'00ULL + 1'000;",
    "#include <sys/types.h>",
    '#include "../op_kernel/tiles.h"\n#include <type_traits>',
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
    ("#include <./x86intrin.h>", "x86intrin"),
    ("#include <ia32intrin.h>", "ia32intrin"),
    ("#include <experimental/simd>", "experimental"),
    ("#include HEADER", "#include of a macro (HEADER)"),
    ("auto a = __rdtsc();", "registers of the host"),
    ("#if __has_include(<a/*b>)", "questions about the build"),
    ("__attribute__( (constructor) ) void f();", "constructor"),
    ("__attribute__ A", "compiler attributes"),
    ("[A gnu::constructor]] void f();", "compiler attributes"),
    ("[[gnu::unused]] int a;\n#define unused constructor", "unused"),
    ("__attribute__((aligned(8) A)) int a;", "compiler attributes"),
    (f"[[{'x' * 3000}]] int a;", "compiler attributes"),
]
# What would keep a guard busy that reads some of it again and again.
LARGE = 300_000
BOMBS = [
    "\n" * LARGE,
    "extern " * (LARGE // 7),
    "[" * LARGE,
    "(" * LARGE,
    "__attribute__((" * (LARGE // 15),
    f"__attribute__(({'(' * LARGE}{')' * LARGE}))",
    "[[a]] " * (LARGE // 6),
    'R"(' * (LARGE // 3),
    "'" * LARGE,
    "/* " * (LARGE // 3),
    "#include <" * (LARGE // 10),
    "#define A (\n" * (LARGE // 12),
    "\\\n" * (LARGE // 2),
    "a<<<" * (LARGE // 4),
    "a<<<" * (LARGE // 8) + ">>>(" * (LARGE // 8) + ";",
    "LoadData<" * (LARGE // 9),
    "# " * (LARGE // 2),
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


@pytest.mark.parametrize(("text", "named", "line"), AMBIGUOUS)
def test_what_readers_may_disagree_about_is_refused(text: str, named: str, line: int) -> None:
    refused = refused_source(sources(text), Phase.BUILD_KERNEL)
    assert refused is not None
    assert named in refused.diagnostics[0].message
    assert refused.diagnostics[0].line == line


READER = """
import json, resource, sys
resource.setrlimit(resource.RLIMIT_CPU, (120, 120))  # seconds of this process, however busy the machine is
from ascend_gym.core.records import Phase, SourceFile, Sources
from npu_daemon.simulator.kernel_build import without_launches
from npu_daemon.simulator.source_guard import needs_expansion, refused_source
from npu_daemon.simulator.task_type import kernel_task_types
for text in json.load(sys.stdin):
    file = SourceFile(path="op_kernel/k.cpp", text=without_launches(text))
    sources = Sources(files=(file,), main=file.path)
    refused_source(sources, Phase.BUILD_KERNEL)
    needs_expansion(sources)
    kernel_task_types(sources)
"""


def test_no_source_keeps_the_guard_busy() -> None:
    """Quadratic time would be minutes for each of these, and days for the largest candidate."""
    subprocess.run([sys.executable, "-c", READER], input=json.dumps(BOMBS), text=True, check=True)


FRAGMENTS = [
    *(
        "/*",
        "*/",
        "//",
        '"',
        "'",
        "\\",
        "\n",
        "\r",
        " ",
        'R"(',
        ')"',
        'R"x(',
        ')x"',
        "1",
        "u8",
        "$",
        "\u00e9",
    ),
    *(
        "MARK",
        "#if 0\n",
        "\n#endif\n",
        "#define A ",
        "#define N(x)\n",
        "N(",
        ")",
        "??/",
        "??'",
        "<:",
        "%:",
        "\t",
        "\f",
    ),
]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(FRAGMENTS), max_size=14).map("".join))
def test_the_compiler_sees_no_code_that_the_guard_does_not(text: str) -> None:
    command = ["g++", "-std=c++17", "-w", "-E", "-P", "-x", "c++", "-"]
    expanded = subprocess.run(command, input=text.encode(), capture_output=True, check=False)
    if expanded.returncode == 0 and "MARK" in bare_code(expanded.stdout.decode("utf-8", "replace")):
        assert "MARK" in bare_code(text) or any(ambiguous_literals(text))


@given(st.text(alphabet="a\"'/*\\\n R(x)1#", max_size=60))
def test_lines_keep_their_numbers(text: str) -> None:
    assert bare_code(text).count("\n") == text.count("\n")
    assert without_comments(text).count("\n") == text.count("\n")


@pytest.mark.parametrize("paste", ["a##b", "a#\\\n#b", "a%:%:b", "a%:\\\n%:b"])
def test_every_way_to_paste_is_seen(paste: str) -> None:
    assert needs_expansion(sources(f"#define GLUE(a, b) {paste}\n"))
    assert not needs_expansion(sources('const char* text = "##"; // ##\n'))


@pytest.mark.parametrize("body", ["8), a(8", "(", "[", ")(", "([)]"])
def test_macros_with_half_a_bracket_are_expanded(body: str) -> None:
    assert needs_expansion(sources(f"#define A {body}\n"))
    assert not needs_expansion(sources("#define A(b) f((b)[0])\n"))


def test_only_macros_of_the_simulator_expand_to_its_inside() -> None:
    def expansion(text: str) -> str:
        return f'# 1 "op_kernel/../op_kernel/k.cpp"\n{text}\n# 1 "/usr/include/x.h"\nasm("");\n'

    assert refused_pasting(expansion('asim :: assertion_failed("x");')) is None
    assert refused_pasting(expansion("asim::begin_turn(1);")) is not None
    assert refused_pasting(expansion("asim::read<int>(a);")) is not None
    assert refused_pasting(expansion("asim::read<int>(a);"), "#define GET(a) asim::read<int>(a)\n") is None


@pytest.mark.parametrize(
    "flag",
    [
        "-DX=asim",
        "-Dprivate=public",
        "-Demit=nothing",
        "-DX=asm",
        "-fwhole",
        "-Dunused=constructor",
        "-DG=gnu",
    ],
)
def test_flags_give_nothing_another_meaning(flag: str) -> None:
    assert refused_flags(["-O2", flag]) is not None


def test_own_flags_are_accepted() -> None:
    assert refused_flags(["-O2", "-DTILE_OF_MINE", "-DROWS_AT_ONCE=4"]) is None
