"""Calls: of the module's own functions, of the interface, by a pointer, of intrinsics."""

from __future__ import annotations

import re

from npu_daemon.simulator.kernel_ir.checked import CheckedModule, CheckedStep, StepKind
from npu_daemon.simulator.kernel_ir.instructions import FAST_MATH, LOCAL, ScalarClass
from npu_daemon.simulator.kernel_ir.intrinsics import (
    MEMORY_FUNCTIONS,
    NEVER_REACHED,
    PREFIX,
    cost_of,
    is_dropped,
    is_library_function,
    memory_intrinsic,
)
from npu_daemon.simulator.kernel_ir.ir_types import TypeTable
from npu_daemon.simulator.kernel_ir.library_use import LibraryUse
from npu_daemon.simulator.kernel_ir.origins import Origins
from npu_daemon.simulator.kernel_ir.refusal import RefusedIr, readable_name
from npu_daemon.simulator.kernel_ir.signatures import (
    RESULT,
    FunctionParameter,
    KernelInterface,
    Signature,
    read_parameters,
    same_for_calls,
    signature_of,
)
from npu_daemon.simulator.kernel_ir.symbols import Symbols
from npu_daemon.simulator.kernel_ir.values import ValueChecker

_DROPPED_CALL = re.compile(r" void @(llvm\.[\w.]+)\(")
_CALL = re.compile(
    rf"(?P<flags>{FAST_MATH}) (?:(?:ccc|fastcc) )?{RESULT}(?: \((?P<types>[^()]*)\))? "
    rf"(?:@(?P<name>[\w.$-]+)|(?P<pointer>{LOCAL}))"
    r"\((?P<arguments>.*)\)(?: #\d+)?"
)
_SIMULATOR_SYMBOL = re.compile(r"_ZNK?(?:4asim|7AscendC)")
_REFUSED_INTRINSICS = (
    (re.compile(r"va_"), "functions with a variable number of arguments: use templates"),
    (re.compile(r"stack(?:save|restore)"), "arrays of a variable length: give them a constant length"),
    (re.compile(r"debugtrap"), "traps for debuggers: leave them out"),
    (re.compile(r"prefetch"), "prefetch instructions of the host: leave them out"),
    (re.compile(r"x86\.|aarch64\."), "instructions of the host: use Ascend C"),
    (re.compile(r"(?:return|frame|addressof)\w*address|localescape"), "addresses of the code that called it"),
    (re.compile(r"masked\.|vector\.|vp\."), "vectors of the host: use vector instructions"),
    (re.compile(r"threadlocal"), "thread-local variables: keep what changes in the kernel's class"),
    (re.compile(r"readcyclecounter|readsteadycounter"), "the clock of the host: use GetSystemCycle"),
)


class CallReader:
    """Reads the calls of one module."""

    def __init__(
        self,
        checked: CheckedModule,
        types: TypeTable,
        values: ValueChecker,
        symbols: Symbols,
        interface: KernelInterface,
        library: LibraryUse,
    ) -> None:
        self._library = library
        self._checked = checked
        self._types = types
        self._values = values
        self._symbols = symbols
        self._interface = interface
        headers = interface.headers
        self._origins = Origins(checked.nodes, headers) if headers is not None else None

    def read_tail(self, result: str, rest: str, debug: str) -> CheckedStep | None:
        """Return a call behind ``tail``, ``notail`` or ``musttail``."""
        if not rest.startswith(" call "):
            raise _unknown(rest)
        return self.read(result, rest.removeprefix(" call"), debug)

    def read(self, result: str, rest: str, debug: str) -> CheckedStep | None:
        """Return a call that is allowed; ``None`` for one that is left out."""
        dropped = _DROPPED_CALL.match(rest)
        if dropped is not None and is_dropped(dropped[1]):
            return None
        found = _CALL.fullmatch(rest)
        if found is None:
            raise _unknown(rest)
        parameters, dots = read_parameters(found["arguments"])
        if dots:
            raise _unknown(rest)
        if found["type"] != "void":
            self._types.check(found["type"])
        for parameter in parameters:
            self._types.check(parameter.type)
            self._values.check(parameter.value)
            if parameter.copied:
                self._types.check(parameter.copied)
        step = CheckedStep(
            StepKind.POINTER_CALL, "", debug, parameters=parameters, result=result, result_type=found["type"]
        )
        if found["pointer"]:
            return step._replace(operand=found["pointer"], cost=ScalarClass.BRANCH)
        return self._named(found, step)

    def _named(self, found: re.Match[str], step: CheckedStep) -> CheckedStep:
        name = found["name"]
        if name.startswith(PREFIX):
            return self._intrinsic(found, step)
        plain = (step.result_type, tuple(parameter.type for parameter in step.parameters))
        own = self._symbols.functions.get(name)
        if own is not None or name in NEVER_REACHED:
            signature = own.signature if own is not None else self._symbols.declared[name]
            if signature.plain != plain:
                raise _mismatch(name)
            if own is None:
                self._checked.stubs[name] = signature
            else:
                self._library.check_call(step.debug[1:], own.debug)
            return step._replace(kind=StepKind.OWN_CALL, operand=f"@{name}", cost=ScalarClass.CALL)
        if MEMORY_FUNCTIONS.get(name) == plain:
            return step._replace(kind=StepKind.MEMORY_CALL, operand=name)
        return self._outer(found, step)

    def _outer(self, found: re.Match[str], step: CheckedStep) -> CheckedStep:
        name = found["name"]
        declared = self._interface.functions.get(name)
        if declared is None:
            raise _undefined(name)
        used = signature_of(found["marks"], found["type"], found["arguments"])
        if (found["types"] or "").endswith("..."):
            used = used._replace(parameters=used.parameters[: len(declared.parameters)], variadic=True)
        if not same_for_calls(used, declared, self._types):
            raise _mismatch(name)
        if name not in self._interface.constants:
            self._check_caller(name, step.debug)
        self._checked.outer[name] = declared
        return step._replace(
            kind=StepKind.OUTER_CALL, operand=f"@{name}", parameters=_as_declared(step, declared)
        )

    def _check_caller(self, name: str, debug: str) -> None:
        if self._origins is not None and not self._origins.in_ascend_c(debug, name):
            raise RefusedIr(
                f"the kernel calls {readable_name(name)}, the inside of the simulator: use Ascend C, "
                "whose functions do so for it",
                unprovided=True,
            )

    def _intrinsic(self, found: re.Match[str], step: CheckedStep) -> CheckedStep:
        name = found["name"]
        memory = memory_intrinsic(name)
        if memory is not None:
            return step._replace(kind=StepKind.MEMORY_CALL, operand=memory, parameters=step.parameters[:3])
        cost = cost_of(name)
        if cost is None:
            inner = name.removeprefix(PREFIX)
            if is_library_function(inner.partition(".")[0]):
                raise _undefined(inner.partition(".")[0])
            reasons = (what for pattern, what in _REFUSED_INTRINSICS if pattern.match(inner))
            raise RefusedIr(f"the kernel uses {next(reasons, f'what is not part of Ascend C: {inner}')}")
        self._checked.intrinsics[name] = (step.result_type, tuple(each.type for each in step.parameters))
        arguments = ", ".join(f"{each.type} {each.value}" for each in step.parameters)
        text = f"  {step.result}call{found['flags']} {step.result_type} @{name}({arguments})"
        return CheckedStep(StepKind.PLAIN, text, step.debug, cost)


def _as_declared(step: CheckedStep, declared: Signature) -> tuple[FunctionParameter, ...]:
    """Return the arguments with what the interface says of its parameters."""
    extra = step.parameters[len(declared.parameters) :]
    named = zip(declared.parameters, step.parameters, strict=False)
    copied = [
        its._replace(value=mine.value, copied=mine.copied, result_of=mine.result_of) for its, mine in named
    ]
    return (*copied, *(FunctionParameter(each.type, each.extension, value=each.value) for each in extra))


def _undefined(name: str) -> RefusedIr:
    shown = readable_name(name)
    if is_library_function(name):
        message = (
            f"the kernel calls {shown} of the C library, which kernels do not have: "
            "use vector instructions, or compute it in the tiling program"
        )
        return RefusedIr(message, unprovided=True)
    if _SIMULATOR_SYMBOL.match(name):
        return RefusedIr(f"the kernel uses what the simulator does not provide: {shown}", unprovided=True)
    if name.startswith("__cxa_"):
        return RefusedIr(
            "the kernel needs what only programs of a host have: exceptions, or static variables that are "
            f"made when they are first used ({shown})"
        )
    return RefusedIr(
        f"the kernel calls {shown}, which is not part of Ascend C as the simulator knows it: "
        "no libc, threads or files"
    )


def _mismatch(name: str) -> RefusedIr:
    return RefusedIr(
        f"the kernel calls {readable_name(name)} with other types than it takes: include its header"
    )


def _unknown(rest: str) -> RefusedIr:
    if re.search(r"\basm\b", rest.partition("(")[0]):
        return RefusedIr("the kernel contains inline assembly: use Ascend C only")
    return RefusedIr(f"the kernel has a call of a form that is not known here: {rest[:120]}")
