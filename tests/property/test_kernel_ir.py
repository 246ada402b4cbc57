"""Whatever a module does to memory, each access is bounded before it happens, and nothing else is changed."""

from __future__ import annotations

import contextlib
import re
import sys
from pathlib import Path

import llvmlite.binding as llvm
from hypothesis import given
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[1] / "unit"))

from kernel_ir_samples import INTERFACE, module_text

from npu_daemon.simulator.kernel_ir.instrumenter import instrumented
from npu_daemon.simulator.kernel_ir.ir_types import TypeTable
from npu_daemon.simulator.kernel_ir.refusal import RefusedIr
from npu_daemon.simulator.kernel_ir.second_check import check_again
from npu_daemon.simulator.kernel_ir.verifier import verified

BYTES = {
    "i8": 1,
    "i16": 2,
    "i24": 3,
    "i32": 4,
    "i40": 5,
    "i64": 8,
    "half": 2,
    "float": 4,
    "double": 8,
    "ptr": 8,
}
_ZERO = {"half": "0xH0000", "float": "0.0", "double": "0.0", "ptr": "null"}


@st.composite
def bodies(draw: st.DrawFn) -> tuple[str, list[tuple[str, int]]]:
    """Return lines of a function, and what each access of them is."""
    lines, accesses, pointers = [], [], ["%0", "null", "@table"]
    number = 3
    for _ in range(draw(st.integers(1, 12))):
        pointer, type_ = draw(st.sampled_from(pointers)), draw(st.sampled_from(sorted(BYTES)))
        what = draw(st.sampled_from(["load", "store", "address", "stack", "read"]))
        if what == "load":
            lines.append(f"  %{number} = load {type_}, ptr {pointer}, align 1")
            pointers += [f"%{number}"] if type_ == "ptr" else []
            number += 1
        elif what == "store":
            lines.append(f"  store {type_} {_ZERO.get(type_, '1')}, ptr {pointer}, align 1")
        elif what == "address":
            lines.append(f"  %{number} = getelementptr {type_}, ptr {pointer}, i32 %1")
            pointers.append(f"%{number}")
            number += 1
        elif what == "stack":
            lines.append(f"  %{number} = alloca [{draw(st.integers(1, 9))} x {type_}], align 8")
            pointers.append(f"%{number}")
            number += 1
        else:
            lines.append(f"  %{number} = call i32 @_ZN4asim4readERKi(ptr dereferenceable(4) {pointer})")
            number += 1
        if what in ("load", "store"):
            accesses.append((f"asim_{what}", BYTES[type_]))
        elif what == "read":
            accesses.append(("asim_load", 4))
    return "\n".join(lines), accesses


@given(bodies())
def test_every_access_is_bounded_and_in_its_order(sample: tuple[str, list[tuple[str, int]]]) -> None:
    body, accesses = sample
    text = module_text(body, "@table = internal constant [4 x i32] zeroinitializer")
    new = str(llvm.parse_assembly(instrumented(verified(text, INTERFACE)), llvm.create_context()))
    check_again(new, INTERFACE)
    found = re.findall(r"@(asim_load|asim_store)\(ptr .*, i64 (\d+)\)", new)
    assert [(name, int(size)) for name, size in found] == accesses


TYPES = st.recursive(
    st.sampled_from(sorted(BYTES)),
    lambda inner: st.one_of(
        st.tuples(st.integers(0, 5), inner).map(lambda pair: f"[{pair[0]} x {pair[1]}]"),
        st.lists(inner, max_size=4).map(lambda parts: f"{{ {', '.join(parts)} }}" if parts else "{}"),
        st.lists(inner, min_size=1, max_size=4).map(lambda parts: f"<{{ {', '.join(parts)} }}>"),
    ),
    max_leaves=12,
)


@given(TYPES)
def test_sizes_of_types_are_those_of_llvm(type_: str) -> None:
    text = module_text(outside=f"@table = constant {type_} zeroinitializer")
    module = llvm.parse_assembly(text, llvm.create_context())
    data = llvm.create_target_data(module.data_layout)
    variable = module.get_global_variable("table")
    assert TypeTable({}).occupied_bytes(type_) == data.get_abi_size(variable.global_value_type)


@given(st.text(st.sampled_from('%@"!{}[]<>()=,. abi8x123\n\\'), max_size=80))
def test_text_that_is_no_module_is_refused_and_does_no_harm(text: str) -> None:
    with contextlib.suppress(RefusedIr):
        verified(f"{module_text()}{text}", INTERFACE)
