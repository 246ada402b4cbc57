"""What the instrumenter writes, and that the second check misses none of it when it is taken away."""

from __future__ import annotations

import re
from collections.abc import Iterator

import llvmlite.binding as llvm
import pytest
from kernel_ir_samples import INTERFACE, module_text

from npu_daemon.simulator.kernel_ir.instructions import ScalarClass
from npu_daemon.simulator.kernel_ir.instrumenter import count_calls, instrumented
from npu_daemon.simulator.kernel_ir.refusal import RefusedIr
from npu_daemon.simulator.kernel_ir.second_check import check_again
from npu_daemon.simulator.kernel_ir.verifier import verified

BODY = """\
  %3 = alloca { i64, i64, i64 }, align 8
  %4 = load i32, ptr %0, align 4
  store i32 %4, ptr %3, align 4
  call void @_ZN4asim5shapeENS_5ShapeE(ptr byval([24 x i8]) align 8 %3)
  %5 = call i32 @_ZN4asim4readERKi(ptr dereferenceable(4) %0)
  %6 = call ptr @memcpy(ptr %3, ptr %0, i64 8)
  call void @llvm.memset.p0.i64(ptr %6, i8 0, i64 16, i1 false)
  %7 = load ptr, ptr %0, align 8
  call void %7(i32 %5)
  call void @own(ptr byval([24 x i8]) align 8 %3)
  %8 = mul i32 %4, %5
  %9 = fdiv float 1.0, 2.0
  switch i32 %8, label %never [
    i32 1, label %done
    i32 2, label %done
  ]
never:
  unreachable
done:
"""
OUTSIDE = "@table = internal constant ptr @target"
FUNCTIONS = """\
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
define internal void @target(i32 %n) {
  ret void
}
define internal void @own(ptr byval([24 x i8]) align 8 %copy) {
  ret void
}
"""


def _without_names(text: str) -> str:
    """Return a module with numbers for the labels that make it readable here."""
    return text.replace("never", "10").replace("done", "11")


def _instrumented() -> str:
    """Return the sample, instrumented, as LLVM prints it."""
    text = module_text(_without_names(BODY), OUTSIDE, FUNCTIONS)
    return _printed(instrumented(verified(text, INTERFACE)))


def _printed(text: str) -> str:
    module = llvm.parse_assembly(text, llvm.create_context())
    module.verify()
    return str(module)


def test_what_is_written_passes_the_second_check() -> None:
    check_again(_instrumented(), INTERFACE)


def test_every_kind_of_callback_is_written() -> None:
    text = _instrumented()
    called = set(re.findall(r"call \w+ @(asim_\w+)\(", text))
    assert called == {
        *(
            "asim_load",
            "asim_store",
            "asim_memcpy",
            "asim_memset",
            "asim_count",
            "asim_call",
            "asim_unreachable",
            "asim_value",
        )
    }


DIVISIONS = """\
  %3 = load i32, ptr %0, align 4
  %4 = sdiv i32 %3, %1
  %5 = urem i32 %4, %1
  %6 = srem i32 %5, -1
  %7 = udiv i32 %6, 6
  store i32 %7, ptr %0, align 4
"""


def test_a_division_that_a_processor_may_refuse_is_a_call() -> None:
    text = _printed(instrumented(verified(module_text(DIVISIONS), INTERFACE)))
    check_again(text, INTERFACE)
    assert re.findall(r"@asim_divide\(.*, i64 (\d+)\)", text) == ["288", "544", "800"]
    assert "udiv i32" in text
    guarded = next(line for line in text.split("\n") if "i64 288)" in line)
    dividend, divisor = re.findall(r"i32 (%\S+?)[,)]", guarded)
    bare = guarded[: guarded.index("call")] + f"sdiv i32 {dividend}, {divisor}"
    with pytest.raises(RefusedIr, match="a division that may end the process"):
        check_again(text.replace(guarded, bare), INTERFACE)


def test_objects_that_are_passed_by_copy_are_copied_by_the_caller() -> None:
    text = _instrumented()
    assert re.search(
        r"call void @asim_memcpy\(ptr (%asim\.\d+), ptr %3, i64 24\)\n +call void @own\(ptr \1\)", text
    )
    assert "byval" not in text.replace("@_ZN4asim5shapeENS_5ShapeE(ptr byval", "")


def test_calls_by_a_pointer_may_lead_to_functions_of_their_type_alone() -> None:
    assert "@asim.targets.0 = internal constant [1 x ptr] [ptr @target]" in _instrumented()


def test_what_the_candidate_says_of_functions_is_not_written() -> None:
    functions = (
        'define linkonce_odr noundef i32 @f(ptr noalias %p) nounwind memory(none) "probe-stack"="x" {\n'
        "  ret i32 1\n}"
    )
    text = instrumented(verified(module_text("  %3 = call i32 @f(ptr %0)", functions=functions), INTERFACE))
    assert "define internal i32 @f(ptr) #0" in text
    assert not re.search('noalias|memory|"x"|linkonce|noundef', text)


def _mutations(text: str) -> Iterator[tuple[str, str]]:
    """Yield the module without each line that the instrumenter has put in, and with it changed."""
    lines = text.split("\n")
    for number, line in enumerate(lines):
        returned = re.match(r"  (%asim\.\d+) = call \w+ @asim_\w+\(\w+ ([^,)]+)", line)
        if returned:
            unchecked = [re.sub(rf"{returned[1]}(?!\d)", returned[2], each) for each in lines[number + 1 :]]
            yield f"with its argument {line.strip()}", "\n".join([*lines[: number + 1], *unchecked])
            yield f"without {line.strip()}", "\n".join([*lines[:number], *unchecked])
        if re.search(r"call void @asim_(?:count|unreachable)\(", line):
            yield f"without {line.strip()}", "\n".join([*lines[:number], *lines[number + 1 :]])
        sized = re.search(r"@asim_(?:load|store)\(ptr \S+ i64 (\d+)\)", line)
        if sized:
            smaller = line.replace(f"i64 {sized[1]})", f"i64 {int(sized[1]) - 1})")
            yield f"smaller {line.strip()}", "\n".join([*lines[:number], smaller, *lines[number + 1 :]])
        for callback, other in (("asim_load", "asim_store"), ("asim_store", "asim_load")):
            if f"call ptr @{callback}(" in line:
                changed = line.replace(callback, other)
                yield (
                    f"{other} in {line.strip()}",
                    "\n".join([*lines[:number], changed, *lines[number + 1 :]]),
                )


MUTATIONS = dict(_mutations(_instrumented()))


def test_there_are_mutations_of_every_kind() -> None:
    assert len(MUTATIONS) >= 20


@pytest.mark.parametrize("what", MUTATIONS)
def test_the_second_check_sees_what_is_missing(what: str) -> None:
    text = _printed(MUTATIONS[what])
    with pytest.raises(RefusedIr, match="could not be made safe"):
        check_again(text, INTERFACE)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("define internal void @own(", "define void @own("),
        ('safestack uwtable "frame', 'uwtable "frame'),
        (' "no-builtins"', ""),
        ("internal constant", "internal global"),
        ("declare void @asim_count(i64)", "declare void @asim_count(i64)\ndeclare void @abort()"),
        ("mul i32", "add i32"),
        ("call void @own(", "call void @asim_memcpy(ptr %3, ptr %3, i64 8)\n  call void @own("),
        ("ret void\n}", "fence seq_cst\n  ret void\n}"),
        ("ret void\n}", "%99 = atomicrmw add ptr null, i32 1 seq_cst\n  ret void\n}"),
    ],
)
def test_the_second_check_sees_what_is_added(old: str, new: str) -> None:
    text = _instrumented()
    assert old in text
    changed = text.replace(old, new, 1)
    if new.startswith("call void @asim_memcpy"):
        check_again(_printed(changed), INTERFACE)  # what costs more and does no harm
        return
    with pytest.raises(RefusedIr, match="could not be made safe"):
        check_again(_printed(changed), INTERFACE)


def test_more_than_a_byte_holds_is_counted_in_several_calls() -> None:
    costs = [0] * len(ScalarClass)
    costs[ScalarClass.FLOAT], costs[ScalarClass.CONVERT] = 300, 255
    numbers = [int(re.findall(r"i64 (-?\d+)", call)[0]) % 2**64 for call in count_calls(costs, "")]
    assert [number >> 24 & 255 for number in numbers] == [255, 45]
    assert [number >> 56 for number in numbers] == [255, 0]


def test_calls_need_no_linkage_table() -> None:
    text = instrumented(verified(module_text(_without_names(BODY), OUTSIDE, FUNCTIONS), INTERFACE))
    bound = {
        line.endswith(" nonlazybind")
        for line in text.splitlines()
        if "declare" in line and "@llvm." not in line
    }
    assert bound == {True}
    assert '!"RtLibUseGOT", i32 1' in _printed(text)


def test_its_own_function_with_the_name_of_a_library_function_is_not_taken_for_one() -> None:
    functions = "define internal i32 @memcmp(ptr %a, ptr %b, i64 %n) {\n  ret i32 7\n}"
    body = "  %3 = call i32 @memcmp(ptr %0, ptr %0, i64 8)\n  store i32 %3, ptr %0, align 4"
    text = _printed(instrumented(verified(module_text(body, functions=functions), INTERFACE)))
    check_again(text, INTERFACE)
    assert "call i32 @memcmp(" in text
    assert "asim_memcmp" not in text.replace("declare i32 @asim_memcmp", "")


@pytest.mark.parametrize(
    "pointer",
    [
        "undef",
        "poison",
        "null",
        "inttoptr (i64 undef to ptr)",
        "getelementptr (i8, ptr undef, i64 8)",
        "inttoptr (i64 4096 to ptr)",
    ],
)
@pytest.mark.parametrize("access", ["%3 = load i32, ptr {}, align 4", "store i32 1, ptr {}, align 4"])
def test_an_access_is_by_the_pointer_that_its_check_returned(access: str, pointer: str) -> None:
    text = _printed(instrumented(verified(module_text(f"  {access.format(pointer)}"), INTERFACE)))
    check_again(text, INTERFACE)
    returned = re.search(r"(%asim\.\d+) = call ptr @asim_(?:load|store)\(", text)
    assert returned is not None
    assert len(re.findall(rf"ptr {returned[1]},", text)) == 1
    with pytest.raises(RefusedIr, match="could not be made safe"):
        check_again(_printed(re.sub(rf"ptr {returned[1]}(?=,)", f"ptr {pointer}", text)), INTERFACE)


@pytest.mark.parametrize("value", ["undef", "poison", "%1"])
def test_code_generation_concludes_nothing_of_a_condition(value: str) -> None:
    body = f"  switch i32 {value}, label %3 [\n    i32 1, label %3\n  ]\n3:"
    text = _printed(instrumented(verified(module_text(body), INTERFACE)))
    assert re.search(rf"(%asim\.\d+) = call i32 @asim_value\(i32 {value}\)\n.*\n? *switch i32 \1,", text)
    check_again(text, INTERFACE)


@pytest.mark.parametrize("value", ["poison", "%3"])
def test_an_argument_has_the_bits_of_its_type_alone(value: str) -> None:
    """A conversion to fewer bits, undefined beyond them, is believed to need no mask."""
    call = f"%4 = call zeroext i8 @_ZN4asim4takeEPvh(ptr %0, i8 zeroext {value})"
    body = f"  %3 = fptosi float 166.0 to i8\n  {call}"
    text = _printed(instrumented(verified(module_text(body), INTERFACE)))
    passed = re.search(rf"(%asim\.\d+) = call i8 @asim_value\(i8 {value}\)", text)
    assert passed is not None
    check_again(text, INTERFACE)
    with pytest.raises(RefusedIr, match="more bits than its type"):
        check_again(_printed(text.replace(f"zeroext {passed[1]})", f"zeroext {value})")), INTERFACE)
