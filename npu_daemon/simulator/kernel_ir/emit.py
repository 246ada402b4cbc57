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
from itertools import islice
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm

from npu_daemon.simulator.kernel_ir.block_marks import BlockMarks
from npu_daemon.simulator.kernel_ir.debug_info import places_of
from npu_daemon.simulator.kernel_ir.device_language import (
    LOOK,
    LOOK_AT_MARKED,
    may_offend,
    offences,
)
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
_MAX_OFFENCES = 2048  # different ones: a spelt cast may follow many conversions that nothing spells
_STDOUT = 1
_UNMARKED_ARGUMENTS = 2  # interface and processor

llvm.initialize_native_target()
llvm.initialize_native_asmprinter()


def emitted(text: str, interface: KernelInterface, processor: str, marks: BlockMarks | None = None) -> bytes:
    """Return the object file of a module.

    Args:
        text: of the module, as clang has written it.
        interface: functions that it may call.
        processor: to emit for.
        marks: takes the places of its blocks, which are marked then.

    Raises:
        RefusedIr: it has something that is not allowed.
    """
    try:
        checked = verified(text, interface)
    except RefusedIr as refused:
        refused.places = _places(text, refused.debug)
        raise
    module = _module_of(instrumented(checked, marks))
    check_again(str(module), interface)
    return _object_of(module, processor)


def counted_program(text: str) -> bytes:
    """Return the bitcode of a user's own program with callbacks that count, not verified."""
    counted: bytes = _module_of(instrumented_program(text)).as_bitcode()
    return counted


def main(arguments: Sequence[str]) -> int:
    """Emit a kernel's bitcode into an object file, count a program's, or look at one before optimisation.

    Args:
        arguments: paths of bitcode and output, and for a kernel the path of the interface and the processor,
            and where its blocks are to be marked the path of their table; ``LOOK`` or ``LOOK_AT_MARKED`` and
            the path of bitcode that is not optimised, to list what the compiler of devices refuses.

    Returns:
        The exit status.
    """
    try:
        first, second, *kernel = arguments
        answer = (
            _looked(second, first) if first in (LOOK, LOOK_AT_MARKED) else _written(first, second, kernel)
        )
    except RefusedIr as refused:
        answer = {
            "refused": refused.message,
            "places": refused.places[:_MAX_PLACES],
            "unprovided": refused.unprovided,
        }
    os.write(_STDOUT, json.dumps(answer).encode())
    return 0


def _written(bitcode: str, output: str, kernel: Sequence[str]) -> dict[str, Any]:
    text = _text_of(Path(bitcode).read_bytes())
    if kernel:
        described = json.loads(Path(kernel[0]).read_text("utf-8"))
        headers = {mark: frozenset(names) for mark, names in described["headers"].items()}
        interface = KernelInterface.of_texts(described["functions"], headers, described["constants"])
        marks = BlockMarks() if len(kernel) > _UNMARKED_ARGUMENTS else None
        data = emitted(text, interface, kernel[1], marks)
        if marks is not None:
            marks.write(Path(kernel[_UNMARKED_ARGUMENTS]))
    else:
        data = counted_program(text)
    Path(output).write_bytes(data)
    return {"written_bytes": len(data), "may_offend": may_offend(text, with_host_code=not kernel)}


def _looked(bitcode: str, which: str) -> dict[str, Any]:
    found = offences(_text_of(Path(bitcode).read_bytes()), marked_only=which == LOOK_AT_MARKED)
    return {"offences": list(islice(dict.fromkeys(found), _MAX_OFFENCES))}


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
