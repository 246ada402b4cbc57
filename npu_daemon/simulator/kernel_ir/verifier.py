"""Reads every line of a kernel's IR and refuses what is not on the lists of what is allowed.

The text comes from LLVM's printer, so that it has one form for each thing; a line that no pattern here
matches as a whole is refused. Nothing is decided by names of the source.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from npu_daemon.simulator.kernel_ir.calls import CallReader
from npu_daemon.simulator.kernel_ir.checked import CheckedFunction, CheckedModule, CheckedStep, StepKind
from npu_daemon.simulator.kernel_ir.instructions import (
    ALLOCA,
    BRANCH,
    FAST_MATH,
    LOAD,
    LOCAL,
    PLAIN,
    REFUSED_OPCODES,
    RETURN,
    STORE,
    TYPE,
    UNPROVIDED_OPCODES,
    VALUE,
    OpcodePattern,
    ScalarClass,
)
from npu_daemon.simulator.kernel_ir.ir_text import split_module
from npu_daemon.simulator.kernel_ir.ir_types import TypeTable
from npu_daemon.simulator.kernel_ir.library_use import LibraryUse
from npu_daemon.simulator.kernel_ir.refusal import RefusedIr, readable_name
from npu_daemon.simulator.kernel_ir.signatures import KernelInterface
from npu_daemon.simulator.kernel_ir.symbols import OwnFunction, read_symbols
from npu_daemon.simulator.kernel_ir.values import ValueChecker

DATA_LAYOUT = '"e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"'
TRIPLE = '"x86_64-unknown-linux-musl"'
MAX_FRAME_BYTES = 2**20
_DEBUG = re.compile(r", !dbg (!\d+)")
_LABEL = re.compile(r"(\d+):(?: +; preds = .*)?")
_OPENING = re.compile(r"  (%\d+ = )?([a-z]\w*)")
_PHI = re.compile(rf"{FAST_MATH} ({TYPE}) (\[ {VALUE}, {LOCAL} \](?:, \[ {VALUE}, {LOCAL} \])*)")
_INCOMING = re.compile(rf"\[ ({VALUE}), {LOCAL} \]")
_ADDRESS = re.compile(rf"(?: inbounds| nusw| nuw)* ({TYPE}), ptr ({VALUE})((?:, i\d+ (?:{LOCAL}|-?\d+))*)")
_SWITCH = re.compile(rf" (i\d+) ({VALUE}), label {LOCAL} \[(?: i\d+ -?\d+, label {LOCAL})* \]")
_VECTOR = re.compile(r"<(?:vscale x )?\d+ x ")
# What an instruction promises of its operands. Code generation leaves work out where it believes that, such
# as the mask of a truth value, and functions outside the kernel would get what their types do not allow.
_PROMISES = re.compile(r"^(  (?:%\d+ = )?[a-z]+)(?: (?:nuw|nsw|nneg|exact|disjoint|samesign))+(?= )")
_METADATA = ", !"
_STEPS_OUTSIDE_BLOCKS = ("#dbg_",)


def verified(text: str, interface: KernelInterface) -> CheckedModule:
    """Return what a module consists of.

    Args:
        text: as LLVM prints the module.
        interface: functions that it may call besides its own.

    Raises:
        RefusedIr: it has something that is not allowed; the message says what, and what to write instead.
    """
    module = split_module(text)
    if (module.data_layout, module.triple) != (DATA_LAYOUT, TRIPLE):
        raise RefusedIr("the kernel was compiled for another machine")
    types = TypeTable(module.types)
    for body in module.types.values():
        types.check(body)
    symbols = read_symbols(module, types)
    checked = CheckedModule(module.data_layout, module.triple, module.types, nodes=module.nodes)
    checked.variables.extend(symbols.variables.values())
    values = ValueChecker(checked, types, symbols)
    for variable in checked.variables:
        values.check(variable.value or "null")
    library = LibraryUse(module.nodes)
    calls = CallReader(checked, types, values, symbols, interface, library)
    reader = _FunctionReader(types, values, calls, library)
    for function in symbols.functions.values():
        checked.functions.append(reader.read(function))
    _refuse_recursion(checked.functions)
    return checked


def _refuse_recursion(functions: Sequence[CheckedFunction]) -> None:
    """Refuse functions that come back to themselves by calls that name them: devices have no recursion."""
    calls = {
        f"@{each.name}": [step for step in each.steps if step.kind is StepKind.OWN_CALL] for each in functions
    }
    done: set[str] = set()
    for name in calls:
        path = [(name, iter(calls[name]))]
        on_path = {name}
        while path and name not in done:
            step = next(path[-1][1], None)
            if step is None:
                left = path.pop()[0]
                on_path.discard(left)
                done.add(left)
            elif step.operand in on_path:
                raise RefusedIr(
                    f"{readable_name(step.operand[1:])} calls itself; kernels have no recursion: use a loop",
                    step.debug.removeprefix(", !dbg ").lstrip("!"),
                    unprovided=True,
                )
            elif step.operand not in done and step.operand in calls:
                path.append((step.operand, iter(calls[step.operand])))
                on_path.add(step.operand)


class _FunctionReader:
    """Reads functions line by line."""

    def __init__(
        self, types: TypeTable, values: ValueChecker, calls: CallReader, library: LibraryUse
    ) -> None:
        self._library = library
        self._types = types
        self._values = values
        self._frame_bytes = 0
        self._readers: dict[str, Callable[[str, str, str], CheckedStep | None]] = {
            "load": self._load,
            "store": self._store,
            "alloca": self._alloca,
            "getelementptr": self._address,
            "phi": self._phi,
            "br": self._branch,
            "switch": self._switch,
            "ret": self._return,
            "unreachable": self._unreachable,
            "call": calls.read,
            "tail": calls.read_tail,
            "notail": calls.read_tail,
            "musttail": calls.read_tail,
        }

    def read(self, function: OwnFunction) -> CheckedFunction:
        """Return a function of which every line is allowed."""
        signature = function.signature
        for type_ in (signature.result, *(each.type for each in signature.parameters)):
            if type_ != "void":
                self._types.check(type_)
        self._frame_bytes = 0
        steps: list[CheckedStep] = []
        debug = ""
        try:
            for line in _whole_lines(function.lines):
                body, _, attached = line.partition(_METADATA)
                found = _DEBUG.match(f"{_METADATA}{attached}") if attached else None
                debug = found[1] if found else ""
                self._library.check(debug[1:])
                step = self._step(body, debug)
                if step is not None:
                    steps.append(step)
        except RefusedIr as refused:
            refused.debug = refused.debug or debug[1:] or function.debug
            raise
        return CheckedFunction(
            function.name, signature, f"!{function.debug}" if function.debug else "", steps
        )

    def _step(self, line: str, debug: str) -> CheckedStep | None:
        opening = _OPENING.match(line)
        if opening is None:
            return self._label(line)
        result, opcode = opening[1] or "", opening[2]
        rest = line[opening.end() :]
        row = PLAIN.get(opcode)
        if row is not None:
            self._operands(row, opcode, rest)
            return CheckedStep(StepKind.PLAIN, _PROMISES.sub(r"\1", line), debug, row.cost)
        reader = self._readers.get(opcode)
        if reader is None:
            what = REFUSED_OPCODES.get(opcode, f"an instruction that is not known here: {opcode}")
            raise RefusedIr(f"the kernel uses {what}", unprovided=opcode in UNPROVIDED_OPCODES)
        return reader(result, rest, debug)

    def _operands(self, row: OpcodePattern, opcode: str, rest: str) -> tuple[str | None, ...]:
        """Return the groups of a row's pattern, each checked for what it is."""
        found = row.pattern.fullmatch(rest)
        if found is None:
            raise _unknown(opcode, rest)
        groups = found.groups()
        for kind, group in zip(row.kinds, groups, strict=True):
            if kind == "V" and group is not None:
                self._values.check(group)
            elif kind == "T" and group != "void":
                self._types.check(group)
        if opcode == "fptrunc" and groups[0] == "double" and groups[2] == "half":
            raise RefusedIr("the kernel converts double to half: convert to float first")
        return groups

    def _label(self, line: str) -> CheckedStep | None:
        label = _LABEL.fullmatch(line)
        if label is not None:
            return CheckedStep(StepKind.LABEL, f"{label[1]}:")
        if line.lstrip().startswith(_STEPS_OUTSIDE_BLOCKS):
            return None
        raise _unknown("", line)

    def _load(self, result: str, rest: str, debug: str) -> CheckedStep:
        volatile, type_, pointer = self._access(LOAD, "load", rest)
        return CheckedStep(
            StepKind.LOAD,
            f"  {result}load{volatile} {type_}, ptr ",
            debug,
            operand=pointer,
            tail=rest[rest.rindex(", align ") :],
            bytes=self._types.stored_bytes(type_),
        )

    def _store(self, result: str, rest: str, debug: str) -> CheckedStep:
        volatile, type_, value, pointer = self._access(STORE, "store", rest)
        return CheckedStep(
            StepKind.STORE,
            f"  store{volatile} {type_} {value}, ptr ",
            debug,
            operand=pointer,
            tail=rest[rest.rindex(", align ") :],
            bytes=self._types.stored_bytes(type_),
        )

    def _access(self, row: OpcodePattern, opcode: str, rest: str) -> list[str]:
        if rest.startswith(" atomic"):
            raise RefusedIr("the kernel uses atomic accesses of the host: use SetAtomicAdd or SyncAll")
        groups = [group or "" for group in self._operands(row, opcode, rest)]
        if groups[1][0] in "[{<%":
            raise RefusedIr(f"the kernel {opcode}s a whole structure at once: copy it with its members")
        return groups

    def _alloca(self, result: str, rest: str, debug: str) -> CheckedStep:
        (type_,) = self._operands(ALLOCA, "alloca", rest)
        self._frame_bytes += self._types.occupied_bytes(type_ or "")
        if self._frame_bytes > MAX_FRAME_BYTES:
            raise RefusedIr(
                f"the variables of a function take more than {MAX_FRAME_BYTES} bytes of stack: "
                "keep large arrays in UB or in the workspace"
            )
        return CheckedStep(StepKind.PLAIN, f"  {result}alloca{rest}", debug)

    def _address(self, result: str, rest: str, debug: str) -> CheckedStep:
        found = _ADDRESS.fullmatch(rest)
        if found is None:
            raise _unknown("getelementptr", rest)
        self._types.check(found[1])
        self._values.check(found[2])
        cost = ScalarClass.INTEGER if "%" in found[3] else None
        return CheckedStep(StepKind.PLAIN, f"  {result}getelementptr{rest}", debug, cost)

    def _phi(self, result: str, rest: str, debug: str) -> CheckedStep:
        found = _PHI.fullmatch(rest)
        if found is None:
            raise _unknown("phi", rest)
        self._types.check(found[1])
        for incoming in _INCOMING.finditer(found[2]):
            self._values.check(incoming[1])
        return CheckedStep(StepKind.PHI, f"  {result}phi{rest}", debug)

    def _branch(self, result: str, rest: str, debug: str) -> CheckedStep:
        self._operands(BRANCH, "br", rest)
        return CheckedStep(StepKind.PLAIN, f"  br{rest}", debug, BRANCH.cost)

    def _switch(self, result: str, rest: str, debug: str) -> CheckedStep:
        found = _SWITCH.fullmatch(rest)
        if found is None:
            raise _unknown("switch", rest)
        self._types.check(found[1])
        self._values.check(found[2])
        head = f"  switch {found[1]} "
        return CheckedStep(
            StepKind.SWITCH, head, debug, ScalarClass.BRANCH, operand=found[2], tail=rest[found.end(2) :]
        )

    def _return(self, result: str, rest: str, debug: str) -> CheckedStep:
        self._operands(RETURN, "ret", rest)
        return CheckedStep(StepKind.PLAIN, f"  ret{rest}", debug, RETURN.cost)

    def _unreachable(self, result: str, rest: str, debug: str) -> CheckedStep:
        if rest:
            raise _unknown("unreachable", rest)
        return CheckedStep(StepKind.UNREACHABLE, "  unreachable", debug)


def _whole_lines(lines: list[str]) -> Iterator[str]:
    """Yield lines, those of a ``switch`` as one."""
    rest = iter(lines)
    for line in rest:
        if line.startswith("  switch ") and line.endswith("["):
            parts = [line]
            for part in rest:
                parts.append(part.strip())
                if part.startswith("  ]"):
                    break
            yield " ".join(parts)
        else:
            yield line


def _unknown(opcode: str, rest: str) -> RefusedIr:
    if _VECTOR.search(rest):
        return RefusedIr("the kernel uses vectors of the host: use vector instructions")
    return RefusedIr(f"the kernel has an instruction of a form that is not known here: {opcode}{rest[:120]}")
