"""The functions and variables of a module: their headers, checked against the lists of what is allowed."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from npu_daemon.simulator.kernel_ir.checked import ENTRY_POINTS, Variable
from npu_daemon.simulator.kernel_ir.instructions import TYPE
from npu_daemon.simulator.kernel_ir.ir_text import ModuleText
from npu_daemon.simulator.kernel_ir.ir_types import TypeTable
from npu_daemon.simulator.kernel_ir.refusal import RefusedIr, readable_name
from npu_daemon.simulator.kernel_ir.signatures import RESULT, Signature, signature_of

GM_SECTION = "asim_gm_static"
NOTE_SECTION = "asim_task_types"
# Where the linker says that these sections begin and end.
SECTION_ENDS = frozenset(
    f"__{end}_{name}" for name in (GM_SECTION, NOTE_SECTION) for end in ("start", "stop")
)
_ENTRY_PREFIX = "asim_entry_"
_VIRTUAL_TABLE = "_ZTV"
_RESERVED = re.compile(r"asim[_.]|llvm\.|__safestack|__(?:start|stop)_")
_LINKAGE = (
    r"(?:(?:private|internal|linkonce|linkonce_odr|weak|weak_odr|available_externally|external|extern_weak)"
    r" )?"
)
_SCOPE = r"(?:(?:dso_local|dso_preemptable) )?(?:(?:default|hidden|protected) )?"
_NAME = r"@(?P<name>[\w.$-]+)"
_UNNAMED = r"(?: (?:local_)?unnamed_addr)?"
_CONVENTION = r"(?:(?:ccc|fastcc) )?"
_DEFINE = re.compile(
    rf"define {_LINKAGE}{_SCOPE}{_CONVENTION}{RESULT} {_NAME}\((?P<parameters>.*?)\){_UNNAMED}(?: #\d+)?"
    r"(?: comdat(?:\(\$[\w.$-]+\))?)?(?: align \d+)?(?: !dbg !(?P<debug>\d+))?"
)
_DECLARE = re.compile(
    rf"declare (?:!dbg !\d+ )?{_LINKAGE}{_SCOPE}{_CONVENTION}{RESULT} {_NAME}\((?P<parameters>.*?)\)"
    rf"{_UNNAMED}(?: #\d+)?"
)
_VARIABLE = re.compile(
    rf"{_NAME} = (?P<linkage>{_LINKAGE}){_SCOPE}(?:(?:local_)?unnamed_addr )?"
    rf"(?P<kind>global|constant) (?P<type>{TYPE})(?: (?P<value>.*?))?"
    r'(?:, section "(?P<section>[^"]*)")?(?:, comdat(?:\(\$[\w.$-]+\))?)?(?:, align (?P<alignment>\d+))?'
    r"(?:, !dbg !\d+)?"
)
_SECTION_OF_FUNCTION = re.compile(r'section "([^"]*)"')
_INITIALISERS = re.compile(r"ptr (@[\w.$-]+)")
_FUNCTION_WORDS = {
    "section ": "sections of its own: leave out the attribute",
    "gc ": "a garbage collector",
    "prefix ": "data beside its code",
    "prologue ": "data beside its code",
    "personality ": "exceptions: return a value",
    "partition ": "sections of its own: leave out the attribute",
}
_VARIABLES_HELP = (
    "Expected only constants there (constexpr or const with constant values): keep what changes in the "
    "kernel's class, in UB or in the workspace, or share it in global memory (static __gm__ T name[count])"
)


class OwnFunction(NamedTuple):
    """The header of a definition."""

    name: str
    signature: Signature
    debug: str
    lines: list[str]


@dataclass
class Symbols:
    """Everything that a module defines or declares.

    Attributes:
        functions: definitions by name.
        declared: functions that are only declared.
        variables: constants and static arrays in global memory by name.
    """

    functions: dict[str, OwnFunction] = field(default_factory=dict)
    declared: dict[str, Signature] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)


def read_symbols(text: ModuleText, types: TypeTable) -> Symbols:
    """Return what a module defines and declares.

    Raises:
        RefusedIr: something of it is not on the lists; initial values are not looked at yet.
    """
    symbols = Symbols()
    for line in text.variables:
        variable = _variable(line, types)
        if variable is not None:
            symbols.variables[variable.name] = variable
    for function in text.functions:
        own = _definition(function.header, function.lines)
        symbols.functions[own.name] = own
    for line in text.declarations:
        found = _DECLARE.fullmatch(line)
        if found is None:
            raise RefusedIr(f"the kernel declares what is not known here: {line[:100]}")
        symbols.declared[found["name"]] = signature_of(found["marks"], found["type"], found["parameters"])
    return symbols


def read_definition(line: str) -> Signature:
    """Return the signature of a ``define`` line, whatever its body needs.

    Raises:
        RefusedIr: the line has another form.
    """
    header = line.removesuffix(" {").partition(" personality ")[0]
    found = _DEFINE.fullmatch(header)
    if found is None:
        raise _refused_header(header)
    return signature_of(found["marks"], found["type"], found["parameters"])


def _definition(header: str, lines: list[str]) -> OwnFunction:
    found = _DEFINE.fullmatch(header)
    if found is None:
        raise _refused_header(header)
    name = found["name"]
    signature = signature_of(found["marks"], found["type"], found["parameters"])
    debug = found["debug"] or ""
    if _RESERVED.match(name) and name not in ENTRY_POINTS and not name.startswith(_ENTRY_PREFIX):
        raise RefusedIr(f"the kernel defines {name}, a name of the simulator: choose another", debug)
    if signature.variadic:
        message = f"{readable_name(name)} takes a variable number of arguments: use templates"
        raise RefusedIr(message, debug)
    return OwnFunction(name, signature, debug, lines)


def _refused_header(header: str) -> RefusedIr:
    tail = header.rpartition(") ")[2]
    for word, what in _FUNCTION_WORDS.items():
        if word in f"{tail} ":
            return RefusedIr(f"a function of the kernel has {what}")
    return RefusedIr(f"the kernel has a function of a kind that is not known here: {header[:160]}")


def _variable(line: str, types: TypeTable) -> Variable | None:
    """Return a variable, or ``None`` for lists that only the optimiser and the linker read."""
    if line.startswith(("@llvm.used ", "@llvm.compiler.used ")):
        return None
    if line.startswith(("@llvm.global_ctors ", "@llvm.global_dtors ")):
        raise _initialiser(line)
    found = _VARIABLE.fullmatch(line)
    if found is None:
        raise _refused_variable(line)
    name, section = found["name"], found["section"] or ""
    declared = not found["value"]
    if declared and name in SECTION_ENDS:
        return Variable(name, found["type"], "", False, "", found["alignment"] or "1")
    if name.startswith(_VIRTUAL_TABLE):
        raise RefusedIr(
            f"the kernel has virtual functions ({readable_name(name)}), which no compiler of devices takes: "
            "use templates",
            unprovided=True,
        )
    if declared or _RESERVED.match(name):
        raise RefusedIr(f"the kernel uses the variable {readable_name(name)}, which is not part of Ascend C")
    mutable = found["kind"] == "global"
    if mutable and section != GM_SECTION:
        raise RefusedIr(
            f"the kernel keeps data in static or global variables: {readable_name(name)}. {_VARIABLES_HELP}"
        )
    if section not in ("", GM_SECTION, NOTE_SECTION) or (not mutable and section == GM_SECTION):
        raise RefusedIr(
            f"{readable_name(name)} has a section of its own ({section[:40]}): leave out the attribute"
        )
    types.check(found["type"])
    return Variable(name, found["type"], found["value"], mutable, section, found["alignment"] or "1")


def _initialiser(line: str) -> RefusedIr:
    names = [
        readable_name(name[1:]) for name in _INITIALISERS.findall(line) if not name.startswith("@_GLOBAL_")
    ]
    which = f" ({', '.join(names[:3])})" if names else ""
    return RefusedIr(
        f"the kernel runs code before its launch{which}, for static or global variables. {_VARIABLES_HELP}"
    )


def _refused_variable(line: str) -> RefusedIr:
    name = readable_name(line[1:].partition(" ")[0])
    if " thread_local" in line:
        return RefusedIr(f"the kernel keeps data in thread-local variables: {name}. {_VARIABLES_HELP}")
    if re.search(r" (?:alias|ifunc) ", line):
        return RefusedIr(f"{name} is another name of a function or variable: call the function itself")
    return RefusedIr(f"the kernel has a variable of a kind that is not known here: {line[:100]}")
