"""Looks at an instrumented module once more, as LLVM has read it, without the writer's notes.

It knows the rules and nothing of how they were followed: directly before each access stands its callback
with the size of the access, whose result is the pointer, and so on. What it finds is a fault of this
program, or worse, so that nothing is made of the module.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from npu_daemon.simulator.kernel_ir.checked import ENTRY_POINTS
from npu_daemon.simulator.kernel_ir.instructions import PLAIN, ScalarClass
from npu_daemon.simulator.kernel_ir.instrumenter import NUMBER, guarded_division
from npu_daemon.simulator.kernel_ir.intrinsics import cost_of
from npu_daemon.simulator.kernel_ir.refusal import RefusedIr
from npu_daemon.simulator.kernel_ir.signatures import KernelInterface, read_parameters

_WORD = re.compile(r"  (?:%[\w.$-]+ = )?([a-z]\w*)")
_LOAD = re.compile(r"  %[\w.]+ = load (?:volatile )?(ptr|half|float|double|i\d+), ptr (\S+), align \d+")
_STORE = re.compile(r"  store (?:volatile )?(ptr|half|float|double|i\d+) .+, ptr (\S+), align \d+")
_CALL = re.compile(r"  (?:%[\w.]+ = )?call [^@%]*?(?:\{[^{}]*\} )?(?:\([^()]*\) )?([@%][\w.$-]+)\((.*)\)$")
_CHECKED = re.compile(r"  (%[\w.]+) = call ptr @(asim_load|asim_store)\(ptr .+, i64 (\d+)\)")
_OPAQUE = re.compile(r"  (%[\w.]+) = call (i\d+) @asim_value\(i\d+ .+\)")
_COUNTED = re.compile(r"  call void @asim_count\(i64 (-?\d+)\)")
_TARGETS = re.compile(
    r"  (%[\w.]+) = call ptr @asim_call\(ptr .+, ptr (?:null|@asim\.targets\.\d+), i64 \d+\)"
)
_SWITCH = re.compile(r"  switch i\d+ (\S+), label ")
_ADDRESS = re.compile(r"  %[\w.]+ = getelementptr .*, i\d+ %")
_HEADER = re.compile(r"define (internal |dso_local )?.*@([\w.$-]+)\(.*\) #(\d+)(?: !dbg !\d+)? \{")
_DECLARED = re.compile(r"declare .*@([\w.$-]+)\(")
_VARIABLE = re.compile(
    r"@\S+ = (?:internal constant .*|internal global .*, section \"asim_gm_static\", align \d+"
    r"|extern_weak hidden global .*)"
)
_GROUP = re.compile(r"attributes #(\d+) = \{(.*)\}")
_SAFE_ATTRIBUTES = {"safestack", '"no-builtins"'}
_ALLOWED_BESIDE = frozenset(
    {"alloca", "phi", "br", "ret", "unreachable", "switch", "getelementptr", "call", "load", "store"}
)
_FLOAT_BYTES = {"half": 2, "float": 4, "double": 8, "ptr": 8}
_CALLBACKS = frozenset(
    f"@asim_{name}"
    for name in (
        "load",
        "store",
        "memcpy",
        "memmove",
        "memset",
        "memcmp",
        "count",
        "call",
        "unreachable",
        "value",
        "divide",
        "reached",
    )
)
_CLASSES = len(ScalarClass)


def check_again(text: str, interface: KernelInterface) -> None:
    """Read the text of an instrumented module.

    Raises:
        RefusedIr: some rule is not followed.
    """
    lines = text.split("\n")
    own = {found[2] for line in lines if (found := _HEADER.fullmatch(line))}
    groups = [found for line in lines if (found := _GROUP.fullmatch(line))]
    safe = {found[1] for found in groups if set(found[2].split()) >= _SAFE_ATTRIBUTES}
    checker = _Checker(own, safe, interface)
    body: list[str] | None = None
    for line in lines:
        if body is None:
            body = checker.outside(line)
        elif line == "}":
            checker.function(body)
            body = None
        elif line:
            body.append(line.partition(", !dbg !")[0])
    if body is not None or not ENTRY_POINTS & own:
        raise _broken("the module has no end or no entry", "")


class _Checker:
    """Checks the lines of one module."""

    def __init__(self, own: set[str], safe_groups: set[str], interface: KernelInterface) -> None:
        self._own = own
        self._safe_groups = safe_groups
        self._interface = interface

    def outside(self, line: str) -> list[str] | None:
        """Check a line outside functions; return the list for the body of a function that begins."""
        if line.startswith("define"):
            header = _HEADER.fullmatch(line)
            if header is None or (header[1] != "internal ") != (header[2] in ENTRY_POINTS):
                raise _broken("a function of another kind", line)
            if header[3] not in self._safe_groups:
                raise _broken("a function without a data stack", line)
            return []
        if line.startswith("declare"):
            declared = _DECLARED.match(line)
            name = declared[1] if declared else ""
            if (
                f"@{name}" not in _CALLBACKS
                and name not in self._interface.functions
                and cost_of(name) is None
            ):
                raise _broken("a function of elsewhere", line)
        elif line.startswith("@") and _VARIABLE.fullmatch(line) is None:
            raise _broken("a variable", line)
        elif line.startswith(("module asm", "$")):
            raise _broken("what is not allowed", line)
        return None

    def function(self, lines: Sequence[str]) -> None:
        """Check the lines of a function: block by block, what each does and what it says that it costs."""
        costs, counted = [0] * _CLASSES, [0] * _CLASSES
        switch_at = -1
        for number, line in enumerate(lines):
            if switch_at >= 0:
                switch_at = -1 if line.startswith("  ]") else switch_at
                continue
            word = _WORD.match(line)
            if word is None:
                if not line[0].isdigit() and not line.startswith("asim."):
                    raise _broken("a line", line)
                _compare(costs, counted, line)
                costs, counted = [0] * _CLASSES, [0] * _CLASSES
                continue
            counts = _COUNTED.fullmatch(line)
            if counts is not None:
                packed = int(counts[1]) % 2**64
                counted = [each + (packed >> 8 * index & 255) for index, each in enumerate(counted)]
                continue
            cost = self._instruction(word[1], lines, number)
            if cost is not None:
                costs[cost] += 1
            if word[1] == "switch" and line.endswith("["):
                switch_at = number
        _compare(costs, counted, "the last block")

    def _instruction(self, opcode: str, lines: Sequence[str], number: int) -> ScalarClass | None:
        line = lines[number]
        row = PLAIN.get(opcode)
        if row is not None:
            if row.cost is ScalarClass.DIVIDE and guarded_division(line) is not None:
                raise _broken("a division that may end the process", line)
            return row.cost
        if opcode not in _ALLOWED_BESIDE:
            raise _broken("an instruction", line)
        before = lines[number - 1] if number else ""
        if opcode in ("load", "store"):
            _access(opcode, line, before)
        elif opcode == "call":
            return self._call(line, lines, number)
        elif opcode == "switch":
            condition = _SWITCH.match(line)
            if condition is None or not _is_opaque(condition[1], before):
                raise _broken("a switch", line)
            return ScalarClass.BRANCH
        elif opcode == "unreachable" and before != "  call void @asim_unreachable()":
            raise _broken("unreachable", line)
        elif opcode in ("br", "ret"):
            return ScalarClass.BRANCH
        elif opcode == "getelementptr" and _ADDRESS.match(line):
            return ScalarClass.INTEGER
        return None

    def _call(self, line: str, lines: Sequence[str], number: int) -> ScalarClass | None:
        found = _CALL.fullmatch(line)
        if found is None:
            raise _broken("a call", line)
        callee, arguments = found.groups()
        if callee in _CALLBACKS:
            return ScalarClass.DIVIDE if callee == "@asim_divide" else None
        if callee[0] == "%":
            target = _TARGETS.fullmatch(lines[number - 1]) if number else None
            if target is None or target[1] != callee:
                raise _broken("a call by a pointer", line)
            return ScalarClass.BRANCH
        if callee[1:] in self._own:
            return ScalarClass.CALL
        if callee.startswith("@llvm."):
            return cost_of(callee[1:])
        self._outer(callee[1:], arguments, line, lines, number)
        return None

    def _outer(self, name: str, arguments: str, line: str, lines: Sequence[str], number: int) -> None:
        declared = self._interface.functions.get(name)
        if declared is None:
            raise _broken("a function of elsewhere", line)
        checked, opaque = set(), set()
        while number:
            number -= 1
            if (found := _CHECKED.fullmatch(lines[number])) and found[2] == "asim_load":
                checked.add((found[1], int(found[3])))
            elif found := _OPAQUE.fullmatch(lines[number]):
                opaque.add(found[1])
            else:
                break
        parameters, _ = read_parameters(arguments)
        for its, mine in zip(declared.parameters, parameters, strict=False):
            size = int(its.copied) if its.copied.isdigit() else its.readable_bytes
            if size and (mine.value, size) not in checked:
                raise _broken("an argument that is read", line)
            if its.extension and mine.value not in opaque and not NUMBER.fullmatch(mine.value):
                raise _broken("an argument that may have more bits than its type", line)


def _access(opcode: str, line: str, before: str) -> None:
    """Check that a load or store has its callback before it, and uses the pointer that this returns."""
    pattern = _LOAD if opcode == "load" else _STORE
    found = pattern.fullmatch(line)
    checked = _CHECKED.fullmatch(before)
    if checked is None or checked[2] != f"asim_{opcode}":
        raise _broken("an access without a check", line)
    if found is None:
        raise _broken("an access", line)
    type_, pointer = found.groups()
    size = _FLOAT_BYTES.get(type_) or (int(type_[1:]) + 7) // 8
    if (checked[1], int(checked[3])) != (pointer, size):
        raise _broken("an access with the check of another one", line)


def _is_opaque(value: str, before: str) -> bool:
    """Whether code generation knows a number, or nothing of a value."""
    found = _OPAQUE.fullmatch(before)
    return NUMBER.fullmatch(value) is not None or (found is not None and found[1] == value)


def _compare(costs: Sequence[int], counted: Sequence[int], line: str) -> None:
    if list(costs) != list(counted):
        raise _broken("a block that is not counted as it is", line)


def _broken(what: str, line: str) -> RefusedIr:
    return RefusedIr(f"the kernel could not be made safe to run: {what} ({line.strip()[:120]})")
