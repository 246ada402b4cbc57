"""What the verifier hands to the instrumenter: a module of which every line was understood and allowed."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from npu_daemon.simulator.kernel_ir.instructions import ScalarClass
from npu_daemon.simulator.kernel_ir.ir_types import TypeTable
from npu_daemon.simulator.kernel_ir.signatures import FunctionParameter, Signature

ENTRY_POINTS = frozenset({"asim_kernel_entry", "asim_task_type"})


class StepKind(Enum):
    """What the instrumenter has to do about a line."""

    LABEL = "label"
    PHI = "phi"
    PLAIN = "plain"
    LOAD = "load"
    STORE = "store"
    SWITCH = "switch"
    OWN_CALL = "call of the module's own function"
    OUTER_CALL = "call of the interface"
    POINTER_CALL = "call by a pointer"
    MEMORY_CALL = "memory function"
    UNREACHABLE = "unreachable"


class CheckedStep(NamedTuple):
    """A line of a function.

    Attributes:
        kind: see there.
        head: the line up to the operand that is checked at run time, without attributes and metadata; the
            whole line where there is none.
        debug: ``!N`` of its source place, or nothing.
        cost: class of its work, if it costs anything by itself.
        operand: pointer of an access, condition of a switch, target of a call.
        tail: what follows the operand in the line.
        bytes: size of an access.
        parameters: of a call, with the values.
        result: of a call: ``%N = ``, or nothing.
        result_type: of a call.
    """

    kind: StepKind
    head: str
    debug: str = ""
    cost: ScalarClass | None = None
    operand: str = ""
    tail: str = ""
    bytes: int = 0
    parameters: tuple[FunctionParameter, ...] = ()
    result: str = ""
    result_type: str = ""


@dataclass
class CheckedFunction:
    """A definition.

    Attributes:
        debug: ``!N`` of its ``DISubprogram``, or nothing.
    """

    name: str
    signature: Signature
    debug: str
    steps: list[CheckedStep]


class Variable(NamedTuple):
    """A constant, or a static array in global memory.

    Attributes:
        mutable: whether it is such an array.
        section: the section it lies in, or nothing.
    """

    name: str
    type: str
    value: str
    mutable: bool
    section: str
    alignment: str


@dataclass
class CheckedModule:
    """A module that may be instrumented.

    Attributes:
        types: bodies of named structures.
        outer: functions of the interface that it calls.
        stubs: functions that it names and never comes to.
        intrinsics: those that it calls, with result and parameter types.
        address_taken: own functions that are used as values.
        nodes: debug metadata by number.
    """

    data_layout: str
    triple: str
    types: dict[str, str]
    variables: list[Variable] = field(default_factory=list)
    functions: list[CheckedFunction] = field(default_factory=list)
    outer: dict[str, Signature] = field(default_factory=dict)
    stubs: dict[str, Signature] = field(default_factory=dict)
    intrinsics: dict[str, tuple[str, tuple[str, ...]]] = field(default_factory=dict)
    address_taken: set[str] = field(default_factory=set)
    nodes: dict[str, str] = field(default_factory=dict)

    def bytes_of(self, type_: str) -> int:
        """Return how many bytes an object of a type takes, or the number itself if it is one."""
        return int(type_) if type_.isdigit() else TypeTable(self.types).occupied_bytes(type_)
