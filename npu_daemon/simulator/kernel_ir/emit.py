"""The program that makes an object file of a kernel's bitcode: verified, instrumented, checked again.

It runs confined and with limits, since parsers and code generation of LLVM were not written for hostile
input. It writes the object to a file, and one line of JSON about the module to standard output. The
process server of the sandbox loads it once and forks for each kernel; nothing here may import more than
the standard library and llvmlite.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm

from npu_daemon.simulator.kernel_ir.block_marks import BlockMarks
from npu_daemon.simulator.kernel_ir.debug_info import places_of
from npu_daemon.simulator.kernel_ir.instrumenter import instrumented
from npu_daemon.simulator.kernel_ir.ir_text import ModuleText, split_module
from npu_daemon.simulator.kernel_ir.program_instrumenter import instrumented_program
from npu_daemon.simulator.kernel_ir.refusal import RefusedIr
from npu_daemon.simulator.kernel_ir.second_check import check_again
from npu_daemon.simulator.kernel_ir.signatures import KernelInterface
from npu_daemon.simulator.kernel_ir.verifier import verified

# clang has optimised the module already. What the optimiser of code generation adds costs four times as long
# here, and kernels, which spend their time in the callbacks and in Ascend C, do not become faster by it.
_OPTIMISATION = 0
_MAX_PLACES = 64
_STDOUT = 1
_UNMARKED_ARGUMENTS = 2  # interface and processor

llvm.initialize_native_target()
llvm.initialize_native_asmprinter()


def emitted(
    bitcode: bytes, interface: KernelInterface, processor: str, marks: BlockMarks | None = None
) -> bytes:
    """Return the object file of a module.

    Args:
        bitcode: as clang has written it.
        interface: functions that it may call.
        processor: to emit for.
        marks: takes the places of its blocks, which are marked then.

    Raises:
        RefusedIr: it has something that is not allowed.
        RuntimeError: LLVM cannot read it.
    """
    text = _text_of(bitcode)
    try:
        checked = verified(text, interface)
    except RefusedIr as refused:
        refused.places = _places(text, refused.debug)
        raise
    module = _module_of(instrumented(checked, marks))
    check_again(str(module), interface)
    return _object_of(module, processor)


def counted_program(bitcode: bytes) -> bytes:
    """Return the bitcode of a user's own program with callbacks that count, not verified.

    Raises:
        RuntimeError: LLVM cannot read it.
    """
    counted: bytes = _module_of(instrumented_program(_text_of(bitcode))).as_bitcode()
    return counted


def main(arguments: Sequence[str]) -> int:
    """Emit a kernel's bitcode into an object file, or count a program's; return the exit status.

    Args:
        arguments: paths of bitcode and output, and for a kernel the path of the interface and the processor,
            and where its blocks are to be marked the path of their table.
    """
    bitcode, output, *kernel = arguments
    data = Path(bitcode).read_bytes()
    answer: dict[str, Any]
    try:
        if kernel:
            described = json.loads(Path(kernel[0]).read_text("utf-8"))
            headers = {mark: frozenset(names) for mark, names in described["headers"].items()}
            interface = KernelInterface.of_texts(described["functions"], headers, described["constants"])
            marks = BlockMarks() if len(kernel) > _UNMARKED_ARGUMENTS else None
            data = emitted(data, interface, kernel[1], marks)
            if marks is not None:
                marks.write(Path(kernel[_UNMARKED_ARGUMENTS]))
        else:
            data = counted_program(data)
        Path(output).write_bytes(data)
        answer = {"written_bytes": len(data)}
    except RefusedIr as refused:
        answer = {
            "refused": refused.message,
            "places": refused.places[:_MAX_PLACES],
            "unprovided": refused.unprovided,
        }
    os.write(_STDOUT, json.dumps(answer).encode())
    return 0


def _places(text: str, debug: str) -> list[tuple[str, int]]:
    try:
        module: ModuleText = split_module(text)
    except RefusedIr:
        return []
    return places_of(module.nodes, debug)


def _text_of(bitcode: bytes) -> str:
    return str(llvm.parse_bitcode(bitcode, llvm.create_context()))


def _module_of(text: str) -> llvm.ModuleRef:
    module = llvm.parse_assembly(text, llvm.create_context())
    module.verify()
    return module


def _object_of(module: llvm.ModuleRef, processor: str) -> bytes:
    target = llvm.Target.from_triple(module.triple)
    machine = target.create_target_machine(cpu=processor, opt=_OPTIMISATION, reloc="pic", codemodel="default")
    data: bytes = machine.emit_object(module)
    return data


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
