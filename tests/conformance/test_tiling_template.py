"""Tiling keys by template: what declarations may say, and how values make a key (asc-devkit, Utils-API)."""

from __future__ import annotations

import os
import random
import struct
import subprocess
from pathlib import Path

import pytest
from host_side_machine import CHIP, SIMPLE_CASE, Host, sources_of, tensor, toolchain, toy

from ascend_gym.core.records import Case, SourceFile, Sources
from npu_daemon.simulator.compiler import clang
from npu_daemon.simulator.host_side import (
    OperatorDefinition,
    TilingOutcome,
    build_host,
    describe_operator,
    run_tiling,
)
from npu_daemon.simulator.own_sources import INCLUDE
from npu_daemon.simulator.task_type import TaskType, task_types

__all__ = ["toolchain"]

ASC_DEVKIT = "ASCEND_GYM_ASC_DEVKIT"
PUBLISHED_HEADER = "include/utils/tiling/template_argument.h"
INCLUDES = '#include "ascendc/host_api/tiling/template_argument.h"\n'
# The keys that asc-devkit's own tests expect of such parameters (tests/api/utils/tiling).
PARAMETERS = """
ASCENDC_TPL_ARGS_DECL(Toy,
    ASCENDC_TPL_DTYPE_DECL(X, 10, 20, 30),
    ASCENDC_TPL_FORMAT_DECL(Y, 15, 25),
    ASCENDC_TPL_UINT_DECL(N, 8, ASCENDC_TPL_UI_MIX, 2, 0, 2, 3, 5, 7, 6),
    ASCENDC_TPL_BOOL_DECL(S, 0, 1), );
"""
KEYS = {(10, 15, 7, 1): 17174282, (20, 25, 4, 0): 268564}

BAD_DECLARATIONS = {
    "ASCENDC_TPL_UINT_DECL(N, 1, ASCENDC_TPL_UI_LIST, 4, 5, 6)": (
        "ASCENDC_TPL_UINT_DECL N has 3 values, too many for a bit width of 1"
    ),
    "ASCENDC_TPL_UINT_DECL(N, 0, ASCENDC_TPL_UI_LIST, 4)": "N has a bit width of 0: expected 1 to 64",
    "ASCENDC_TPL_UINT_DECL(N, 8, 8, 4)": "N must begin with ASCENDC_TPL_UI_RANGE, ASCENDC_TPL_UI_LIST",
    "ASCENDC_TPL_UINT_DECL(N, 8, ASCENDC_TPL_UI_RANGE, 2, 0, 3)": "N has fewer ranges than it says",
    "ASCENDC_TPL_UINT_DECL(N, 8, ASCENDC_TPL_UI_RANGE, 1, 0, 3, 9)": "N has more numbers than ranges",
    "ASCENDC_TPL_UINT_DECL(N, 8, ASCENDC_TPL_UI_RANGE, 1, 3, 0)": "N has a range that ends before it begins",
    "ASCENDC_TPL_UINT_DECL(N, 8, ASCENDC_TPL_UI_MIX, 1, 0, 3, 2)": "N has a value twice",
    "ASCENDC_TPL_UINT_DECL(N, 8, ASCENDC_TPL_UI_LIST)": "ASCENDC_TPL_UINT_DECL N lists no value",
    "ASCENDC_TPL_BOOL_DECL(S, 0, 2)": "S has the value 2, which does not fit in its 1 bit",
    "ASCENDC_TPL_DTYPE_DECL(T, 256)": "T has the value 256, which does not fit in its 8 bits",
    "ASCENDC_TPL_DATATYPE_DECL(T, ASCENDC_TPL_INPUT(0))": "ASCENDC_TPL_DATATYPE_DECL T lists no value",
    "ASCENDC_TPL_BOOL_DECL(S, 0), ASCENDC_TPL_BOOL_DECL(S, 1)": "has the parameter S twice",
    "ASCENDC_TPL_UINT_DECL(N, 60, ASCENDC_TPL_UI_LIST, 4), ASCENDC_TPL_DTYPE_DECL(T, 1)": (
        "the parameters of ASCENDC_TPL_ARGS_DECL have 68 bits together: a tiling key has 64"
    ),
}
N, T, S = (
    "ASCENDC_TPL_UINT_SEL(N, ASCENDC_TPL_UI_LIST, 5)",
    "ASCENDC_TPL_DATATYPE_SEL(T, C_DT_FLOAT)",
    "ASCENDC_TPL_BOOL_SEL(S, 1)",
)
DECLARED = (
    "ASCENDC_TPL_UINT_DECL(N, 2, ASCENDC_TPL_UI_RANGE, 1, 5, 8), "
    "ASCENDC_TPL_DATATYPE_DECL(T, C_DT_FLOAT, C_DT_FLOAT16, ASCENDC_TPL_INPUT(1)), "
    "ASCENDC_TPL_BOOL_DECL(S, 0, 1)"
)
BAD_SELECTIONS = {
    f"{N}, {T}": "an ASCENDC_TPL_ARGS_SEL lacks the parameter S",
    f"{N}, {T}, {S}, {S}": "an ASCENDC_TPL_ARGS_SEL has a parameter twice",
    f"{N}, {T}, {S.replace('S,', 'R,')}": "ASCENDC_TPL_BOOL_SEL R is not in ASCENDC_TPL_ARGS_DECL",
    f"{N}, {T}, ASCENDC_TPL_DTYPE_SEL(S, 1)": "ASCENDC_TPL_DTYPE_SEL S is declared by ASCENDC_TPL_BOOL_DECL",
    f"{N.replace('5', '5, 9')}, {T}, {S}": (
        "ASCENDC_TPL_UINT_SEL N has the value 9, which its ASCENDC_TPL_UINT_DECL does not list: 5 to 8"
    ),
    f"{N}, {T.replace('C_DT_FLOAT', 'C_DT_INT8')}, {S}": "T has the value 2, which its ASCENDC_TPL",
    f"{N}, {T}, {S}, ASCENDC_TPL_KERNEL_TYPE_SEL(9)": "takes one kind of kernel that this chip has",
    f"{N}, {T}, {S}, ASCENDC_TPL_DETERMINISTIC_SEL(2)": "ASCENDC_TPL_DETERMINISTIC_SEL takes true or false",
}


def compiled(text: str, folder: Path, *include: str) -> str:
    """Return what the compiler says of a text."""
    (folder / "text.cpp").write_text(text)
    folders = [f"-I{INCLUDE / name}" for name in include]
    command = clang("-std=c++17", "-w", "-fsyntax-only", "-ferror-limit=0", *folders, "text.cpp")
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False).stderr


def test_bad_declarations_do_not_build(tmp_path: Path) -> None:
    spaces = [
        f"namespace n{number} {{ ASCENDC_TPL_ARGS_DECL(Toy, {text}); }}\n"
        for number, text in enumerate(BAD_DECLARATIONS)
    ]
    said = compiled(INCLUDES + "".join(spaces), tmp_path, "host")
    assert said.count(" error: ") == len(BAD_DECLARATIONS), said
    assert [message for message in BAD_DECLARATIONS.values() if message not in said] == [], said


def test_bad_combinations_do_not_build(tmp_path: Path) -> None:
    spaces = [
        f"namespace n{number} {{ constexpr asim::tiling_template::Declaration declared({{{DECLARED}}});\n"
        "constexpr auto problem = asim::tiling_template::problem_of("
        f"declared, {{ASCENDC_TPL_ARGS_SEL({text})}});\n"
        "static_assert(problem.size() == 0, problem); }\n"
        for number, text in enumerate(BAD_SELECTIONS)
    ]
    said = compiled(INCLUDES + "".join(spaces), tmp_path, "", "kernel")
    assert said.count(" error: ") == len(BAD_SELECTIONS), said
    assert [message for message in BAD_SELECTIONS.values() if message not in said] == [], said


def test_what_a_key_chooses(tmp_path: Path) -> None:
    """Parameters stand in any order; kind of kernel, reproducible sums and types of tensors are known."""
    aiv = "ASCENDC_TPL_KERNEL_TYPE_SEL(ASCENDC_TPL_MIX_AIC_1_1)"
    exact, quick = (f"ASCENDC_TPL_DETERMINISTIC_SEL({value})" for value in ("true", "false"))
    text = f"""{INCLUDES}
namespace somewhere {{
ASCENDC_TPL_ARGS_DECL(Toy, {DECLARED});
ASCENDC_TPL_SEL(
    ASCENDC_TPL_ARGS_SEL({aiv}, {S}, {T}, {N.replace("5", "6, 5")}, {quick}),
    ASCENDC_TPL_ARGS_SEL({N.replace("5", "8")}, {T}, {S}, {exact}, ASCENDC_TPL_TILING_STRUCT_SEL(a::Later)), )
}}
using namespace asim::tiling_template;
extern "C" constexpr Choice asim_tpl_choice(const Ask &);
constexpr Tensors floats({{{{C_DT_INT8, C_FORMAT_ND}}, {{C_DT_FLOAT, C_FORMAT_ND}}}}, {{}}), none({{}}, {{}});
constexpr Choice first = asim_tpl_choice({{floats, true, 0}}), second = asim_tpl_choice({{floats, true, 1}});
constexpr Choice third = asim_tpl_choice({{floats, true, 2}}), fourth = asim_tpl_choice({{floats, true, 3}});
static_assert(first.key == (1 | 1 << 10) && first.values[0] == 6 && second.key == 1 << 10);
static_assert(first.built() && second.built() && third.found == 1 && third.deterministic);
static_assert(fourth.found == 0);
static_assert(first.kernel_type == ASCENDC_TPL_MIX_AIC_1_1 && third.kernel_type == ASCENDC_TPL_MAX);
static_assert(task_type_of(first.kernel_type, 77) == KERNEL_TYPE_MIX_AIC_1_1);
static_assert(task_type_of(third.kernel_type, 77) == 77);
constexpr Choice other = asim_tpl_choice({{none, false, 1 << 10}});
static_assert(other.found == 1 && !other.built() && same(other.other, "T"));
static_assert(asim_tpl_choice({{floats, false, 2 | 1 << 10}}).found == 0);
static_assert(asim_tpl_choice({{floats, false, 1 << 11}}).found == 0);
constexpr Declaration three({{{DECLARED}}});
static_assert(mismatch_of(three, {{false, true, false}}).size() == 0);
static_assert(mismatch_of(three, {{false, true}}).size() > 0);
static_assert(mismatch_of(three, {{true, true, false}}).size() > 0);
static_assert(std::is_same_v<TypeFromId<C_DT_BF16>::type, bfloat16_t>);
static_assert(std::is_same_v<TypeFromId<99>::type, void>);
"""
    assert compiled(text, tmp_path, "", "kernel") == ""


def test_values_make_a_key(toolchain: Path, tmp_path: Path) -> None:
    body = "context->SetBlockDim(1);\n" + "".join(
        f"if (GET_TPL_TILING_KEY{call} != {key}ull) return ge::GRAPH_FAILED;\n"
        for values, key in KEYS.items()
        for call in (values, f"({{{', '.join(map(str, values))}}})")
    )
    body += "ASCENDC_TPL_SEL_PARAM(context, 10, 15, 7, 1); return ge::GRAPH_SUCCESS;"
    host = Host(INCLUDES + toy(body, PARAMETERS), tmp_path, toolchain)
    assert host.decide().tiling_key == KEYS[10, 15, 7, 1]


def test_a_value_that_is_not_declared_has_no_key(toolchain: Path, tmp_path: Path) -> None:
    """The first extent of the case says which call to make."""
    calls = {
        "10, 15, 9, 1": "N has no value 9: ASCENDC_TPL_UINT_DECL lists 0 to 2, 3 to 5, 7, 6",
        "10, 15, 7, 2": "S has no value 2: ASCENDC_TPL_BOOL_DECL lists 0, 1",
        "{10, 15, 7}": "take a value for each of the 4 parameters (X, Y, N, S), in this order; got 3",
    }
    branches = "".join(
        f"if (extent == {number}) context->SetTilingKey(GET_TPL_TILING_KEY({values}));\n"
        for number, values in enumerate(calls, 1)
    )
    extent = "const auto extent = context->GetInputShape(0)->GetStorageShape().GetDim(0);\n"
    host = Host(
        INCLUDES + toy(f"{extent}{branches}return ge::GRAPH_SUCCESS;", PARAMETERS), tmp_path, toolchain
    )
    for number, message in enumerate(calls.values(), 1):
        shape = (number, 128)
        case = Case(case_id="c", inputs=(tensor("x", shape),), outputs=(tensor("y", shape),))
        assert message in str(host.tile(case))


def test_combinations_name_the_cores_that_a_kernel_is_built_for() -> None:
    named = "ASCENDC_TPL_KERNEL_TYPE_SEL(ASCENDC_TPL_MIX_AIC_1_2)"
    assert task_types("", [named]) == [TaskType.MIX_1_2]
    assert task_types(named.replace("MIX_AIC_1_2", "AIC_ONLY")) == [TaskType.AIC_ONLY]


def random_parameter(choose: random.Random, name: str) -> tuple[str, int]:
    """Return a declaration and one of its values."""
    kind = choose.choice(("DTYPE", "FORMAT", "BOOL", "LIST", "RANGE", "MIX"))
    if kind in ("DTYPE", "FORMAT", "BOOL"):
        values = choose.sample(range(2 if kind == "BOOL" else 256), choose.randint(1, 2))
        return f"ASCENDC_TPL_{kind}_DECL({name}, {', '.join(map(str, values))})", choose.choice(values)
    pool = choose.sample(range(1000), 5)
    ranges = [(1000 + 10 * place, 1000 + 10 * place + choose.randint(0, 9)) for place in range(2)]
    ranges = [] if kind == "LIST" else ranges
    singles = [] if kind == "RANGE" else pool
    values = [value for first, last in ranges for value in range(first, last + 1)] + singles
    numbers = [*([len(ranges)] if ranges else []), *(end for each in ranges for end in each), *singles]
    said = ", ".join(map(str, numbers))
    return f"ASCENDC_TPL_UINT_DECL({name}, 7, ASCENDC_TPL_UI_{kind}, {said})", choose.choice(values)


def keys_of(text: str, header: str | None, folder: Path, toolchain: Path) -> list[int]:
    """Return the keys that a host program computes, with our header or another one."""
    folder.mkdir()
    files = sources_of(text).files
    if header is not None:
        files += (SourceFile(path="ascendc/host_api/tiling/template_argument.h", text=header),)
    library = build_host(Sources(files=files, main=files[0].path), folder, toolchain)
    assert isinstance(library, Path), library
    definition = describe_operator(library, CHIP, toolchain)
    assert isinstance(definition, OperatorDefinition), definition
    outcome = run_tiling(library, definition, SIMPLE_CASE, CHIP, folder, toolchain)
    assert isinstance(outcome, TilingOutcome), outcome
    return list(struct.unpack(f"<{len(outcome.tiling_data) // 8}Q", outcome.tiling_data))


@pytest.mark.skipif(ASC_DEVKIT not in os.environ, reason=f"{ASC_DEVKIT} names no checkout of asc-devkit")
def test_keys_are_those_of_the_published_header(toolchain: Path, tmp_path: Path) -> None:
    """Random parameters: what the published header computes in the same host program is the same."""
    choose = random.Random(7)
    spaces, body = "", "auto *keys = context->GetTilingData<Keys>();\n"
    for number in range(40):
        made = [random_parameter(choose, f"P{place}") for place in range(choose.randint(1, 6))]
        spaces += (
            f"namespace n{number} {{ ASCENDC_TPL_ARGS_DECL(Toy, {', '.join(text for text, _ in made)});\n"
        )
        values = ", ".join(str(value) for _, value in made)
        spaces += f"inline uint64_t key() {{ return GET_TPL_TILING_KEY({values}); }} }}\n"
        body += f"keys->key[{number}] = n{number}::key();\n"
    text = toy(
        f"{body}context->SetBlockDim(1); return ge::GRAPH_SUCCESS;",
        f"{spaces}struct Keys {{ uint64_t key[40]; }};",
    )
    published = (Path(os.environ[ASC_DEVKIT]) / PUBLISHED_HEADER).read_text("utf-8")
    ours = keys_of(INCLUDES + text, None, tmp_path / "ours", toolchain)
    assert len(set(ours)) > 35
    assert keys_of(INCLUDES + text, published, tmp_path / "published", toolchain) == ours
