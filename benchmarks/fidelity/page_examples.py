"""Runs the examples of asc-devkit's API pages for Atlas A2 that can be completed into kernels mechanically.

``python benchmarks/fidelity/page_examples.py --asc-devkit DIR [--pages TEXT] [--json FILE]`` takes each block
of code below "example" of a page. What a block does not declare is declared by its name: tensors in the
unified buffer or in global memory, temporary buffers, counts. Element types are tried one after the other. A
block that names anything else (a plan, a structure of the page's prose) is not completed. The last line tells
how many blocks end without a fault.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import tempfile
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from ascend_gym.core.config import cache_root
from ascend_gym.core.protocols import Failure
from npu_daemon.backends.simulator import SimulatorBackend
from npu_daemon.profiling.asc_build import AscProgram, build_program
from npu_daemon.profiling.asc_program import ProgramJob, run_program
from npu_daemon.simulator.call_pages import applying_pages, section
from npu_daemon.simulator.chips import load_chip
from npu_daemon.simulator.kernel_ir.clang import overlay, syntax_command
from npu_daemon.simulator.task_type import CoreKind

TYPES = ("half", "float", "int32_t", "int16_t", "uint8_t", "int8_t", "uint32_t", "bfloat16_t")
TENSOR_BYTES = 8192
NUMBERS = {
    "mask": 64,
    "repeat": 1,
    "repeatTime": 1,
    "repeatTimes": 1,
    "count": 128,
    "calCount": 128,
    "dataLen": 128,
}
_BLOCK = re.compile(r"^( *)```\w*\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
_UNDECLARED = re.compile(r"use of undeclared identifier '(\w+)'")
_CALL = re.compile(r"\b[A-Za-z]\w*\s*(?:<[^;{}]*>)?\s*\(")
_GLOBAL = re.compile(r"(?i)g(?:m|lobal)")
_SCRATCH = re.compile(r"(?i)tmp|work|stackbuffer")
_TENSOR = re.compile(r"(?i)local|tensor|dst|src|buf")
_COUNT = re.compile(r"(?i)size|len|count|num|total")
_OTHERWISE = re.compile(r"__global__|\bclass\b|TilingFunc|gert::|optiling|EXPECT_|REGIST_MATMUL_OBJ|\.\.\.")


class Example(NamedTuple):
    """A block of code of a page; the outcome is ``ok``, ``fault``, ``build_error`` or ``not completed``."""

    page: str
    number: int
    outcome: str
    told: str


def blocks_of(text: str) -> list[str]:
    """Return the code below the headings of a page that are about examples."""
    return [
        found[2]
        for found in _BLOCK.finditer(section(text, "示例") + "\n")
        if ";" in found[2] and _CALL.search(found[2])
    ]


def declaration(name: str, element: str, place: int) -> str | None:
    """Return what declares a name by what it is called, or ``None``."""
    if name in NUMBERS:
        return f"constexpr int {name} = {NUMBERS[name]};"
    if _GLOBAL.search(name):
        return f"GlobalTensor<{element}> {name}; {name}.SetGlobalBuffer((__gm__ {element} *)gm);"
    if _SCRATCH.search(name) or _TENSOR.search(name):
        kind = "uint8_t" if _SCRATCH.search(name) else element
        begin, elements = place * TENSOR_BYTES, f"{TENSOR_BYTES} / sizeof({kind})"
        filled = f"Duplicate({name}.ReinterpretCast<int16_t>(), int16_t(1), {TENSOR_BYTES // 2});"
        made = f"LocalTensor<{kind}> {name}(TPosition::VECCALC, {begin}, {elements});"
        return f"{made} {filled} PipeBarrier<PIPE_ALL>();"
    return f"constexpr int {name} = 128;" if _COUNT.search(name) else None


def program(body: str, declarations: list[str]) -> str:
    """Return a program that launches the example once on a vector core."""
    return (
        '#include "acl/acl.h"\n#include "kernel_operator.h"\nusing namespace AscendC;\n'
        "__global__ __vector__ void example(GM_ADDR gm) {\n    TPipe pipe;\n"
        + "\n".join(declarations)
        + f"\n{body}\n}}\n"
        "int main() {\n    aclInit(nullptr); aclrtSetDevice(0);\n"
        "    aclrtStream stream = nullptr; aclrtCreateStream(&stream);\n"
        "    uint8_t *gm; aclrtMalloc((void **)&gm, 1 << 20, ACL_MEM_MALLOC_HUGE_FIRST);\n"
        "    example<<<1, nullptr, stream>>>(gm);\n    return aclrtSynchronizeStream(stream);\n}\n"
    )


def kernel_errors(body: str, declarations: list[str], folder: Path) -> list[str]:
    """Return the compiler's errors about an example as the body of a function."""
    text = '#include "kernel_operator.h"\nusing namespace AscendC;\n'
    text += "void example(GM_ADDR gm) {\n    TPipe pipe;\n"
    (folder / "example.cpp").write_text(text + "\n".join(declarations) + f"\n{body}\n}}\n", encoding="utf-8")
    (folder / "overlay.json").write_text(overlay(folder, folder), encoding="utf-8")
    command = syntax_command(CoreKind.VECTOR, "/kernel/example.cpp", folder / "overlay.json")
    run = subprocess.run([*command, "-ferror-limit", "30"], capture_output=True, text=True, check=False)
    return [line.partition("error: ")[2] for line in run.stderr.splitlines() if "error: " in line]


def completed(body: str, folder: Path) -> tuple[list[str], list[str]]:
    """Return declarations that complete an example, and the errors that are left."""
    errors: list[str] = []
    for element in TYPES:
        names: list[str] = []
        while True:
            declarations = [declaration(name, element, place) or "" for place, name in enumerate(names)]
            errors = kernel_errors(body, declarations, folder)
            missing = [name for name in _UNDECLARED.findall("\n".join(errors)) if name not in names]
            if not errors or not missing or any(declaration(name, element, 0) is None for name in missing):
                break
            names += list(dict.fromkeys(missing))
        if not errors or any(
            declaration(name, element, 0) is None for name in _UNDECLARED.findall("\n".join(errors))
        ):
            return declarations, errors
    return declarations, errors


def outcome_of(body: str, backend: SimulatorBackend) -> tuple[str, str]:
    """Complete, build and run one example."""
    if _OTHERWISE.search(body):
        return "not completed", "a whole program, a part of one, or with parts left out"
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        declarations, errors = completed(body, folder)
        if errors:
            foreign = [
                name
                for name in _UNDECLARED.findall("\n".join(errors))
                if declaration(name, "half", 0) is None
            ]
            return (
                ("not completed", f"names {', '.join(dict.fromkeys(foreign))}")
                if foreign
                else ("build_error", errors[0])
            )
        (folder / "source").mkdir()
        source = AscProgram(folder / "source" / "example.asc")
        source.source.write_text(program(body, declarations), encoding="utf-8")
        build = build_program(source, folder, backend.toolchain, 60.0)
        if isinstance(build, Failure):
            return "build_error", str(build.diagnostics[0])
        run = run_program(ProgramJob(source, build, folder, backend.toolchain, load_chip("910B2"), 20.0))
        return ("fault", str(run.diagnostics[0])) if isinstance(run, Failure) else ("ok", "")


def main() -> None:
    """Run the examples and print what became of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--asc-devkit", type=Path, required=True, help="checkout of asc-devkit")
    parser.add_argument("--pages", default="", help="only pages whose path has this text")
    parser.add_argument("--json", type=Path, help="where to write the outcomes")
    options = parser.parse_args()
    backend = SimulatorBackend(cache_root())
    examples: list[Example] = []
    for page, text in applying_pages(options.asc_devkit):
        if options.pages not in page:
            continue
        for number, body in enumerate(blocks_of(text)):
            examples.append(Example(page, number, *outcome_of(body, backend)))
            print(*examples[-1], sep="\t", flush=True)
    if options.json:
        options.json.write_text(
            json.dumps([each._asdict() for each in examples], ensure_ascii=False, indent=1), encoding="utf-8"
        )
    told = Counter(each.outcome for each in examples)
    tried = len(examples) - told["not completed"]
    print(f"{len(examples)} examples, {tried} completed, {told['ok']} of them end without a fault")


if __name__ == "__main__":
    main()
