"""Writes a checked module anew, with a callback before all that a kernel does to memory or control.

What is written comes from what the verifier understood: attributes and metadata of the candidate are not
among it, but for source lines. What is checked at run time is used as the callback returns it: of undefined
values code generation makes another one for each use, and concludes what is not so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from npu_daemon.simulator.kernel_ir.block_marks import BlockMarks
from npu_daemon.simulator.kernel_ir.checked import (
    ENTRY_POINTS,
    CheckedFunction,
    CheckedModule,
    CheckedStep,
    StepKind,
    Variable,
)
from npu_daemon.simulator.kernel_ir.instructions import ScalarClass
from npu_daemon.simulator.kernel_ir.signatures import FunctionParameter, Signature
from npu_daemon.simulator.kernel_ir.symbols import SECTION_ENDS

CALLBACKS = (
    "declare ptr @asim_load(ptr, i64)",
    "declare ptr @asim_store(ptr, i64)",
    "declare void @asim_memcpy(ptr, ptr, i64)",
    "declare void @asim_memmove(ptr, ptr, i64)",
    "declare void @asim_memset(ptr, i32, i64)",
    "declare i32 @asim_memcmp(ptr, ptr, i64)",
    "declare void @asim_count(i64)",
    "declare ptr @asim_call(ptr, ptr, i64)",
    "declare i64 @asim_value(i64)",
    "declare i64 @asim_divide(i64, i64, i64)",
    "declare void @asim_unreachable()",
    "declare void @asim_reached(i32)",
)
MAX_COUNT = 255  # of a class, in one call of asim_count
_ATTRIBUTES = (
    'attributes #0 = { nounwind safestack uwtable "frame-pointer"="all" "no-builtins"'
    ' "probe-stack"="inline-asm" }'
)
# Calls go straight to where the loader put the function: a linkage table has no unwind information, and a run
# that is interrupted in one could not tell where it was. RtLibUseGOT says the same of LLVM's own calls.
DIRECT = " nonlazybind"
NUMBER = re.compile(r"-?\d+|true|false")  # all else may be undefined
DIVISION = re.compile(r"  (%\S+ = )([us])(div|rem)(?: exact)? (i(?:8|16|32|64)) (\S+), (\S+)")
_FLAGS = (
    'i32 7, !"RtLibUseGOT", i32 1',
    'i32 7, !"Dwarf Version", i32 4',
    'i32 2, !"Debug Info Version", i32 3',
)
_KEPT_NODES = (
    *("!DILocation(", "distinct !DILocation(", "!DISubprogram(", "distinct !DISubprogram(", "!DIFile("),
    *("distinct !DICompileUnit(", "!DILexicalBlock", "distinct !DILexicalBlock", "!DISubroutineType(", "!{}"),
    *("!DINamespace(", "!DICompositeType(", "!DIBasicType(", "!{null}"),
)
_UNIT = "distinct !DICompileUnit("


def instrumented(module: CheckedModule, marks: BlockMarks | None = None) -> str:
    """Return the text of a module that does what ``module`` says, counted and within bounds.

    Args:
        module: what the verifier understood.
        marks: takes the source places of its blocks, each of which says then that it was reached; ``None``
            for a module whose blocks do not.
    """
    targets = _Targets(module)
    functions = [_FunctionWriter(function, module, targets, marks).text() for function in module.functions]
    return "\n".join(
        [
            f"target datalayout = {module.data_layout}",
            f"target triple = {module.triple}",
            *(f"{name} = type {body}" for name, body in module.types.items()),
            *(_variable(variable) for variable in module.variables),
            *targets.arrays(),
            *(f"{each}{DIRECT}" for each in CALLBACKS),
            *(_declaration(name, signature) for name, signature in module.outer.items()),
            *(
                f"declare {result} @{name}({', '.join(types)})"
                for name, (result, types) in module.intrinsics.items()
            ),
            *(_stub(name, signature) for name, signature in module.stubs.items()),
            *functions,
            _ATTRIBUTES,
            *_module_flags(module),
            *_debug_metadata(module),
            "",
        ]
    )


class _Targets:
    """Arrays of the functions that calls by a pointer may lead to, one for each function type."""

    def __init__(self, module: CheckedModule) -> None:
        self._names: dict[tuple[str, tuple[str, ...]], list[str]] = {}
        for function in module.functions:
            if function.name in module.address_taken:
                self._names.setdefault(function.signature.plain, []).append(function.name)
        self._numbers = {plain: number for number, plain in enumerate(self._names)}

    def operands(self, plain: tuple[str, tuple[str, ...]]) -> str:
        """Return array and length for ``asim_call``."""
        if plain not in self._names:
            return "ptr null, i64 0"
        return f"ptr @asim.targets.{self._numbers[plain]}, i64 {len(self._names[plain])}"

    def arrays(self) -> Iterator[str]:
        """Yield the definitions of the arrays."""
        for plain, names in self._names.items():
            members = ", ".join(f"ptr @{name}" for name in names)
            yield f"@asim.targets.{self._numbers[plain]} = internal constant [{len(names)} x ptr] [{members}]"


class _FunctionWriter:
    """Writes one function."""

    def __init__(
        self,
        function: CheckedFunction,
        module: CheckedModule,
        targets: _Targets,
        marks: BlockMarks | None,
    ) -> None:
        self._function = function
        self._module = module
        self._targets = targets
        self._marks = marks
        self._begin = ""
        self._places: set[str] = set()
        self._entry: list[str] = []
        self._lines: list[str] = []
        self._costs = [0] * len(ScalarClass)
        self._count_at = 0
        self._number = 0

    def text(self) -> str:
        """Return the definition."""
        function = self._function
        writers = {
            StepKind.LABEL: self._label,
            StepKind.PHI: self._phi,
            StepKind.PLAIN: self._plain,
            StepKind.LOAD: self._load,
            StepKind.STORE: self._store,
            StepKind.SWITCH: self._switch,
            StepKind.OWN_CALL: self._own_call,
            StepKind.OUTER_CALL: self._outer_call,
            StepKind.POINTER_CALL: self._pointer_call,
            StepKind.MEMORY_CALL: self._memory_call,
            StepKind.UNREACHABLE: self._unreachable,
        }
        for step in function.steps:
            if step.cost is not None:
                self._costs[step.cost] += 1
            writers[step.kind](step)
        self._close_block()
        linkage = "" if function.name in ENTRY_POINTS else "internal "
        types = ", ".join(parameter.type for parameter in function.signature.parameters)
        debug = f" !dbg {function.debug}" if function.debug else ""
        head = f"define {linkage}{function.signature.result} @{function.name}({types}) #0{debug} {{"
        return "\n".join([head, *self._entry, *self._lines, "}"])

    def _label(self, step: CheckedStep) -> None:
        self._close_block()
        self._lines.append(step.head)
        self._count_at = len(self._lines)

    def _close_block(self) -> None:
        """Put the counts of the block that ends here at its start, and its mark."""
        calls = count_calls(self._costs, self._begin)
        if self._marks is not None:
            calls += self._marks.calls("asim_reached", self._places, self._module.nodes)
        self._lines[self._count_at : self._count_at] = calls
        self._costs = [0] * len(ScalarClass)
        self._begin = ""
        self._places = set()

    def _phi(self, step: CheckedStep) -> None:
        self._write(step.head, step)
        self._count_at = len(self._lines)

    def _plain(self, step: CheckedStep) -> None:
        self._write(guarded_division(step.head) or step.head, step)

    def _load(self, step: CheckedStep) -> None:
        self._access("asim_load", step)

    def _store(self, step: CheckedStep) -> None:
        self._access("asim_store", step)

    def _access(self, callback: str, step: CheckedStep) -> None:
        pointer = self._returned("ptr", f"@{callback}(ptr {step.operand}, i64 {step.bytes})", step)
        self._write(f"{step.head}{pointer}{step.tail}", step)

    def _switch(self, step: CheckedStep) -> None:
        condition = self._opaque(step.head.split()[1], step.operand, step)
        self._write(f"{step.head}{condition}{step.tail}", step)

    def _own_call(self, step: CheckedStep) -> None:
        self._write_call(step, step.operand, [self._own_argument(each, step) for each in step.parameters])

    def _pointer_call(self, step: CheckedStep) -> None:
        plain = (step.result_type, tuple(parameter.type for parameter in step.parameters))
        arguments = [self._own_argument(each, step) for each in step.parameters]
        callback = f"@asim_call(ptr {step.operand}, {self._targets.operands(plain)})"
        target = self._returned("ptr", callback, step)
        self._write_call(step, target, arguments)

    def _own_argument(self, parameter: FunctionParameter, step: CheckedStep) -> str:
        """Return an argument; what the callee gets a copy of is copied here, and passed by its address."""
        if not parameter.copied:
            return f"{parameter.type} {parameter.value}"
        copy = self._new_name()
        self._entry.append(f"  {copy} = alloca {parameter.copied}, align 16")
        size = self._module.bytes_of(parameter.copied)
        self._write(f"  call void @asim_memcpy(ptr {copy}, ptr {parameter.value}, i64 {size})", step)
        return f"ptr {copy}"

    def _outer_call(self, step: CheckedStep) -> None:
        arguments = []
        for parameter in step.parameters:
            value = parameter.value
            size = self._module.bytes_of(parameter.copied) if parameter.copied else parameter.readable_bytes
            if size:
                value = self._returned("ptr", f"@asim_load(ptr {value}, i64 {size})", step)
            elif parameter.extension:
                value = self._opaque(parameter.type, value, step)
            arguments.append(f"{parameter.type}{_marks(parameter)} {value}")
        self._write_call(step, step.operand, arguments)

    def _write_call(self, step: CheckedStep, target: str, arguments: Sequence[str]) -> None:
        signature = self._module.outer.get(target[1:]) if step.kind is StepKind.OUTER_CALL else None
        types = (
            f" ({', '.join([each.type for each in signature.parameters] + ['...'])})"
            if signature and signature.variadic
            else ""
        )
        extension = f"{signature.result_extension} " if signature and signature.result_extension else ""
        self._write(
            f"  {step.result}call {extension}{step.result_type}{types} {target}({', '.join(arguments)})", step
        )

    def _memory_call(self, step: CheckedStep) -> None:
        what = step.operand
        values = [parameter.value for parameter in step.parameters]
        types = [parameter.type for parameter in step.parameters]
        if what == "memset" and types[1] == "i8":
            values[1], types[1] = self._wide(values[1], step), "i32"
        arguments = ", ".join(f"{type_} {value}" for type_, value in zip(types, values, strict=True))
        if what == "memcmp":
            self._write(f"  {step.result}call i32 @asim_memcmp({arguments})", step)
            return
        self._write(f"  call void @asim_{what}({arguments})", step)
        if step.result:  # the C functions return where they wrote to
            self._write(f"  {step.result}getelementptr i8, ptr {values[0]}, i64 0", step)

    def _wide(self, value: str, step: CheckedStep) -> str:
        """Return a byte as a value of 32 bits."""
        wide = self._new_name()
        self._write(f"  {wide} = zext i8 {value} to i32", step)
        self._costs[ScalarClass.INTEGER] += 1
        return wide

    def _unreachable(self, step: CheckedStep) -> None:
        self._write("  call void @asim_unreachable()", step)
        self._write(step.head, step)

    def _opaque(self, type_: str, value: str, step: CheckedStep) -> str:
        """Return an integer of which code generation knows nothing, unless it is a number."""
        if NUMBER.fullmatch(value):
            return value
        return self._returned(type_, f"@asim_value({type_} {value})", step)

    def _returned(self, type_: str, callback: str, step: CheckedStep) -> str:
        """Write a callback and return its result."""
        name = self._new_name()
        self._write(f"  {name} = call {type_} {callback}", step)
        return name

    def _new_name(self) -> str:
        self._number += 1
        return f"%asim.{self._number}"

    def _write(self, line: str, step: CheckedStep) -> None:
        debug = f", !dbg {step.debug}" if step.debug else ""
        if step.debug:
            self._places.add(step.debug[1:])
        self._begin = self._begin or debug
        self._lines.append(line + debug)


def guarded_division(line: str) -> str | None:
    """Return the call of ``asim_divide`` in the place of a division that a processor may refuse.

    Returns:
        ``None`` for all other lines, and for divisions by a number that is neither 0 nor -1.
    """
    found = DIVISION.fullmatch(line)
    if found is None or (NUMBER.fullmatch(found[6]) and found[6] not in ("0", "-1")):
        return None
    result, sign, what, type_, dividend, divisor = found.groups()
    how = int(type_[1:]) | (sign == "s") << 8 | (what == "rem") << 9
    return f"  {result}call {type_} @asim_divide({type_} {dividend}, {type_} {divisor}, i64 {how})"


def count_calls(costs: Sequence[int], debug: str) -> list[str]:
    """Return the calls that count a block: none for a block without cost.

    Args:
        costs: instructions by class.
        debug: what a call ends with that is at the block's place: ``, !dbg !7``, or nothing.
    """
    left = list(costs)
    calls = []
    while any(left):
        now = [min(count, MAX_COUNT) for count in left]
        packed = sum(count << (8 * index) for index, count in enumerate(now))
        signed = packed - (1 << 64) if packed >> 63 else packed
        calls.append(f"  call void @asim_count(i64 {signed}){debug}")
        left = [count - taken for count, taken in zip(left, now, strict=True)]
    return calls


def _marks(parameter: FunctionParameter) -> str:
    """Return the attributes that decide how an argument is passed."""
    marks = [parameter.extension] if parameter.extension else []
    marks += [f"byval({parameter.copied}) align 8"] if parameter.copied else []
    marks += [f"sret({parameter.result_of}) align 8"] if parameter.result_of else []
    return "".join(f" {mark}" for mark in marks)


def _declaration(name: str, signature: Signature) -> str:
    parameters = [
        f"{each.type}{f' {each.extension}' if each.extension else ''}" for each in signature.parameters
    ]
    dots = ["..."] if signature.variadic else []
    extension = f"{signature.result_extension} " if signature.result_extension else ""
    return f"declare {extension}{signature.result} @{name}({', '.join([*parameters, *dots])}){DIRECT}"


def _stub(name: str, signature: Signature) -> str:
    types = ", ".join(parameter.type for parameter in signature.parameters)
    body = "  call void @asim_unreachable()\n  unreachable"
    return f"define internal {signature.result} @{name}({types}) #0 {{\n{body}\n}}"


def _variable(variable: Variable) -> str:
    if variable.name in SECTION_ENDS:
        return f"@{variable.name} = extern_weak hidden global {variable.type}"
    kind = "global" if variable.mutable else "constant"
    section = f', section "{variable.section}"' if variable.section else ""
    placed = f"{section}, align {variable.alignment}"
    return f"@{variable.name} = internal {kind} {variable.type} {variable.value}{placed}"


def _module_flags(module: CheckedModule) -> Iterator[str]:
    """Yield what holds for the whole module, behind its metadata."""
    numbers = range(first := max(map(int, module.nodes), default=-1) + 1, first + len(_FLAGS))
    yield f"!llvm.module.flags = !{{{', '.join(f'!{number}' for number in numbers)}}}"
    yield from (f"!{number} = !{{{flag}}}" for number, flag in zip(numbers, _FLAGS, strict=True))


def _debug_metadata(module: CheckedModule) -> Iterator[str]:
    """Yield what says on which source lines instructions are."""
    units = [number for number, node in module.nodes.items() if node.startswith(_UNIT)]
    if not units:
        return
    yield f"!llvm.dbg.cu = !{{{', '.join(f'!{number}' for number in units)}}}"
    for number, node in module.nodes.items():
        if node.startswith(_KEPT_NODES):
            yield f"!{number} = {node}"
