"""Counts what the code of a user's own program does: the same callbacks as in kernels, and no boundary.

A program with a main function is trusted as its user is, and has all that C++ has: exceptions, variables,
files. Its text stays as it is, but for calls before accesses and at the start of each block.
"""

from __future__ import annotations

import re

from npu_daemon.simulator.kernel_ir.instructions import PLAIN, TYPE, ScalarClass
from npu_daemon.simulator.kernel_ir.instrumenter import CALLBACKS, DIRECT, count_calls, guarded_division
from npu_daemon.simulator.kernel_ir.intrinsics import cost_of
from npu_daemon.simulator.kernel_ir.ir_text import with_plain_names
from npu_daemon.simulator.kernel_ir.ir_types import TypeTable
from npu_daemon.simulator.kernel_ir.refusal import RefusedIr
from npu_daemon.simulator.kernel_ir.signatures import read_parameters

_TYPE_LINE = re.compile(r"^(%[\w.$-]+) = type (.+)$", re.MULTILINE)
_DEFINED = re.compile(r"^define [^@]*@([\w.$-]+)\(", re.MULTILINE)
_ADDRESS_OPERAND = r"(?:[^(),]|\((?:[^()]|\([^()]*\))*\))+"  # commas only in parentheses
_ACCESSES = {
    "load": re.compile(rf"  %[\w.]+ = load (?:volatile )?({TYPE}), ptr (.+), align \d+"),
    "store": re.compile(rf"  store (?:volatile )?({TYPE}) .+, ptr ({_ADDRESS_OPERAND}), align \d+"),
}
_MEMORY = re.compile(
    r"  (?:tail )?call void @llvm\.(memcpy|memmove|memset)(?:\.inline)?(?:\.p0)+\.i64"
    r"\((.*), i1 (?:true|false)\)(?: #\d+)?"
)
_MEMORY_FUNCTION = re.compile(
    r"  (?:(%\d+) = )?(?:tail )?call [\w ()]*(?:ptr|i32) @(memcpy|memmove|memset|memcmp)\((.*)\)(?: #\d+)?"
)
_OPENING = re.compile(r"  (?:%[\w.]+ = )?([a-z]\w*)")
_CALLED = re.compile(r"(?:call|invoke) [^@%]*(?:@([\w.$-]+)|%[\w.]+)\(")
_ADDRESS = re.compile(r".*, i\d+ %")
_PLACE = re.compile(r", !dbg !\d+")
_FIRST = ("phi", "landingpad", "catchpad", "cleanuppad")
_CONTINUED = ("          ", "    ")


def instrumented_program(text: str) -> str:
    """Return the text of a module with callbacks.

    Args:
        text: as LLVM prints the module.
    """
    plain = with_plain_names(text, symbols_too=False)
    writer = _Writer(TypeTable(dict(_TYPE_LINE.findall(plain))), set(_DEFINED.findall(plain)))
    lines: list[str] = []
    inside = False
    for line in plain.split("\n"):
        if inside and line == "}":
            lines += [*writer.flushed(), line]
            inside = False
        elif inside:
            lines += writer.taken(line)
        else:
            lines.append(line)
            inside = line.startswith("define ") and line.endswith("{")
    callbacks = [each.replace("declare ptr", "declare void") for each in CALLBACKS]
    declared = [each for each in callbacks if f"@{each.partition('@')[2].partition('(')[0]}(" not in plain]
    return "\n".join([*lines, *(f"{each}{DIRECT}" for each in declared)])


class _Writer:
    """Writes the lines of functions, a block at a time."""

    def __init__(self, types: TypeTable, own: set[str]) -> None:
        self._types = types
        self._own = own
        self._first: list[str] = []
        self._rest: list[str] = []
        self._costs = [0] * len(ScalarClass)

    def taken(self, line: str) -> list[str]:
        """Take the next line of a function; return what is finished."""
        opening = _OPENING.match(line)
        if opening is None or line.startswith(_CONTINUED):
            return self._other(line)
        body, comma, attached = line.partition(", !")
        debug = _debug(comma + attached)
        opcode = opening[1]
        if opcode in _FIRST and not self._rest:
            self._first.append(line)
            return []
        self._count(opcode, body)
        in_its_place = _memory_callback(body, debug)
        if (division := guarded_division(body)) is not None:
            in_its_place = division + debug
        self._rest.append(in_its_place or f"{self._callback(opcode, body, debug)}{line}")
        return []

    def flushed(self) -> list[str]:
        """Return the lines of the block that ends here."""
        begin = next((found[0] for found in map(_PLACE.search, self._rest) if found), "")
        lines = [*self._first, *count_calls(self._costs, begin), *self._rest]
        self._first, self._rest, self._costs = [], [], [0] * len(ScalarClass)
        return lines

    def _other(self, line: str) -> list[str]:
        if line[:1].isdigit() or (line and not line.startswith(" ")):  # a label
            return [*self.flushed(), line]
        (self._rest if self._rest else self._first).append(line)
        return []

    def _count(self, opcode: str, body: str) -> None:
        row = PLAIN.get(opcode)
        cost = row.cost if row is not None else None
        if opcode in ("br", "ret", "switch", "indirectbr"):
            cost = ScalarClass.BRANCH
        elif opcode == "getelementptr" and _ADDRESS.match(body):
            cost = ScalarClass.INTEGER
        elif opcode in ("call", "tail", "notail", "invoke"):
            cost = self._call_cost(body)
        if cost is not None:
            self._costs[cost] += 1

    def _call_cost(self, body: str) -> ScalarClass | None:
        called = _CALLED.search(body)
        if called is None or called[1] is None:
            return ScalarClass.BRANCH
        return ScalarClass.CALL if called[1] in self._own else cost_of(called[1])

    def _callback(self, opcode: str, body: str, debug: str) -> str:
        """Return the line before an access, or nothing."""
        pattern = _ACCESSES.get(opcode)
        found = pattern.fullmatch(body) if pattern is not None else None
        size = self._size(found[1]) if found is not None else 0
        return f"  call void @asim_{opcode}(ptr {found[2]}, i64 {size}){debug}\n" if found and size else ""

    def _size(self, type_: str) -> int:
        try:
            return self._types.stored_bytes(type_)
        except RefusedIr:
            return 0  # a type that no kernel has


def _memory_callback(body: str, debug: str) -> str:
    """Return what stands in the place of a memory function, or nothing where a line is none."""
    intrinsic, function = _MEMORY.fullmatch(body), _MEMORY_FUNCTION.fullmatch(body)
    if intrinsic is not None:
        what, result, texts = intrinsic[1], "", intrinsic[2]
    elif function is not None:
        what, result, texts = function[2], function[1] or "", function[3]
    else:
        return ""
    arguments = _byte_as_word([(each.type, each.value) for each in read_parameters(texts)[0]])
    if arguments is None:
        return ""
    shown = ", ".join(f"{type_} {value}" for type_, value in arguments)
    if what == "memcmp":
        return f"  {f'{result} = ' if result else ''}call i32 @asim_memcmp({shown}){debug}"
    returned = f"\n  {result} = getelementptr i8, ptr {arguments[0][1]}, i64 0{debug}" if result else ""
    return f"  call void @asim_{what}({shown}){debug}{returned}"


def _byte_as_word(arguments: list[tuple[str, str]]) -> list[tuple[str, str]] | None:
    """Return arguments with the byte of ``memset`` as a word; ``None`` for a byte that is no constant."""
    type_, value = arguments[1]
    if type_ != "i8":
        return arguments
    if not value.lstrip("-").isdigit():
        return None
    return [arguments[0], ("i32", str(int(value) & 255)), *arguments[2:]]


def _debug(attached: str) -> str:
    found = _PLACE.match(attached)
    return found[0] if found else ""
