"""Hand-written modules around which tests of the kernel path build what they try."""

from __future__ import annotations

import llvmlite.binding as llvm

from npu_daemon.simulator.kernel_ir.signatures import KernelInterface
from npu_daemon.simulator.kernel_ir.verifier import DATA_LAYOUT, TRIPLE

INTERFACE = KernelInterface.of_texts(
    {
        "_ZN4asim5startEv": "void ()",
        "_ZN4asim4takeEPvh": "zeroext i8 (ptr, zeroext i8)".replace("(ptr, zeroext i8)", "(ptr, i8 zeroext)"),
        "_ZN4asim5shapeENS_5ShapeE": "void (ptr byval(24))",
        "_ZN4asim4readERKi": "i32 (ptr dereferenceable(4))",
    }
)
_FRAME = """\
target datalayout = {layout}
target triple = {triple}
{outside}
declare void @_ZN4asim5startEv()
declare zeroext i8 @_ZN4asim4takeEPvh(ptr, i8 zeroext)
declare void @_ZN4asim5shapeENS_5ShapeE(ptr byval([24 x i8]) align 8)
declare i32 @_ZN4asim4readERKi(ptr dereferenceable(4))
declare ptr @memcpy(ptr, ptr, i64)
{functions}
define void @asim_kernel_entry(ptr %0, i32 %1) {{
{body}
  ret void
}}
"""


def module_text(body: str = "", outside: str = "", functions: str = "") -> str:
    """Return a module as LLVM prints it: the entry with ``body``, after ``%0`` and ``%1``, and more."""
    text = _FRAME.format(layout=DATA_LAYOUT, triple=TRIPLE, body=body, outside=outside, functions=functions)
    return str(llvm.parse_assembly(text, llvm.create_context()))
