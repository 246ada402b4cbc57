"""The grammar of instructions that compute: how LLVM prints them, and what scalar work they are.

Each row is a pattern of what follows the opcode. In it ``<T>`` is a type, ``<V>`` an operand, ``<L>`` a
label. Instructions that touch memory, call or branch have readers of their own (``verifier``).
"""

from __future__ import annotations

import re
from enum import IntEnum

from npu_daemon.simulator.kernel_ir.ir_constants import NUMBER, SYMBOL


class ScalarClass(IntEnum):
    """Classes of scalar work, in the order of the enumeration of that name (include/asim/trace/record.h)."""

    INTEGER = 0
    MULTIPLY = 1
    DIVIDE = 2
    FLOAT = 3
    FLOAT_DIVIDE = 4
    BRANCH = 5
    CALL = 6
    CONVERT = 7


LOCAL = r"%[\w.$-]+"
_BRACES = r"<?\{[^{}]*(?:\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}[^{}]*)*\}>?"
_PARENTHESES = r"\([^()]*(?:\([^()]*(?:\([^()]*\)[^()]*)*\)[^()]*)*\)"
TYPE = rf"(?:\[\d+ x )*(?:ptr|[a-z]\w*|{LOCAL}|{_BRACES})\]*"
_ATOM = rf"{LOCAL}|{NUMBER}|true|false|null|undef|poison|zeroinitializer|{SYMBOL}"
VALUE = rf"(?:{_ATOM}|[a-z]+(?: [a-z]+(?:\(-?\d+, -?\d+\))?)* {_PARENTHESES}|{_BRACES}|\[[^\[\]]*\])"
FAST_MATH = r"(?: (?:nnan|ninf|nsz|arcp|contract|afn|reassoc|fast))*"
_INTEGER_FLAGS = "(?: nuw)?(?: nsw)?"
_INTEGER_ORDER = "(?:eq|ne|ugt|uge|ult|ule|sgt|sge|slt|sle)"
_FLOAT_ORDER = "(?:false|oeq|ogt|oge|olt|ole|one|ord|ueq|ugt|uge|ult|ule|une|uno|true)"

_ROWS: tuple[tuple[str, ScalarClass | None, str], ...] = (
    ("add sub shl", ScalarClass.INTEGER, f"{_INTEGER_FLAGS} <T> <V>, <V>"),
    ("mul", ScalarClass.MULTIPLY, f"{_INTEGER_FLAGS} <T> <V>, <V>"),
    ("udiv sdiv", ScalarClass.DIVIDE, "(?: exact)? <T> <V>, <V>"),
    ("urem srem", ScalarClass.DIVIDE, " <T> <V>, <V>"),
    ("lshr ashr", ScalarClass.INTEGER, "(?: exact)? <T> <V>, <V>"),
    ("and xor", ScalarClass.INTEGER, " <T> <V>, <V>"),
    ("or", ScalarClass.INTEGER, "(?: disjoint)? <T> <V>, <V>"),
    ("fadd fsub fmul", ScalarClass.FLOAT, f"{FAST_MATH} <T> <V>, <V>"),
    ("fdiv", ScalarClass.FLOAT_DIVIDE, f"{FAST_MATH} <T> <V>, <V>"),
    ("fneg", ScalarClass.FLOAT, f"{FAST_MATH} <T> <V>"),
    ("icmp", ScalarClass.INTEGER, f"(?: samesign)? {_INTEGER_ORDER} <T> <V>, <V>"),
    ("fcmp", ScalarClass.FLOAT, f"{FAST_MATH} {_FLOAT_ORDER} <T> <V>, <V>"),
    ("trunc", ScalarClass.INTEGER, f"{_INTEGER_FLAGS} <T> <V> to <T>"),
    ("zext", ScalarClass.INTEGER, "(?: nneg)? <T> <V> to <T>"),
    ("sext", ScalarClass.INTEGER, " <T> <V> to <T>"),
    ("fptosi", ScalarClass.CONVERT, " <T> <V> to <T>"),
    # Clang makes it of casts of signed values that are known not to be negative.
    ("uitofp", ScalarClass.CONVERT, "(?: nneg)? <T> <V> to <T>"),
    ("sitofp", ScalarClass.CONVERT, " <T> <V> to <T>"),
    # The host adds halfs as floats, with these around it, where the device has one instruction: the scalar
    # additions of add_high_performance case 0 agree with the device when they cost next to nothing.
    ("fptrunc fpext", ScalarClass.INTEGER, f"{FAST_MATH} <T> <V> to <T>"),
    ("ptrtoint ptrtoaddr inttoptr bitcast", None, " <T> <V> to <T>"),
    ("freeze", None, " <T> <V>"),
    ("select", ScalarClass.BRANCH, f"{FAST_MATH} i1 <V>, <T> <V>, <T> <V>"),
    ("extractvalue", ScalarClass.INTEGER, r" <T> <V>(?:, \d+)+"),
    ("insertvalue", ScalarClass.INTEGER, r" <T> <V>, <T> <V>(?:, \d+)+"),
)


class OpcodePattern:
    """The pattern of one opcode.

    Attributes:
        cost: the class of its work, if it costs anything.
        pattern: of what follows the opcode.
        kinds: what the pattern's groups are: ``T``, ``V``, ``L`` or ``F`` for words of its own.
    """

    def __init__(self, cost: ScalarClass | None, template: str) -> None:
        self.cost = cost
        self.kinds = tuple(kind or "F" for kind in re.findall(r"<([TVL])>|\((?!\?)", template))
        text = template.replace("<T>", f"({TYPE})").replace("<V>", f"({VALUE})").replace("<L>", f"({LOCAL})")
        self.pattern = re.compile(text)


PLAIN = {
    opcode: OpcodePattern(cost, template) for opcodes, cost, template in _ROWS for opcode in opcodes.split()
}
RETURN = OpcodePattern(ScalarClass.BRANCH, " <T>(?: <V>)?")
BRANCH = OpcodePattern(ScalarClass.BRANCH, " (?:label <L>|i1 <V>, label <L>, label <L>)")
LOAD = OpcodePattern(None, r"( volatile)? <T>, ptr <V>, align \d+")
STORE = OpcodePattern(None, r"( volatile)? <T> <V>, ptr <V>, align \d+")
ALLOCA = OpcodePattern(None, r" <T>, align \d+")

# What is refused with a reason of its own; everything else that is on no list is "not known here".
REFUSED_OPCODES = {
    "fptoui": "a cast of a floating value to an unsigned integer: cast to int32_t",
    "frem": "the remainder of floats: compute it from the quotient",
    "fence": "memory fences: use PipeBarrier, flags or SyncAll",
    "cmpxchg": "atomic instructions of the host: use SetAtomicAdd or SyncAll",
    "atomicrmw": "atomic instructions of the host: use SetAtomicAdd or SyncAll",
    "indirectbr": "jumps to computed labels: use switch",
    "invoke": "exceptions: return a value",
    "landingpad": "exceptions: return a value",
    "resume": "exceptions: return a value",
    "va_arg": "functions with a variable number of arguments: use templates",
    "addrspacecast": "address spaces of the host: use __gm__ and LocalTensor",
    "extractelement": "vectors of the host: use vector instructions",
    "insertelement": "vectors of the host: use vector instructions",
    "shufflevector": "vectors of the host: use vector instructions",
}
UNPROVIDED_OPCODES = ("fptoui",)  # of them, those that no compiler of kernels takes: a build fails
