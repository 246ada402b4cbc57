"""Intrinsics and C functions that kernels may call without an interface: what becomes of each."""

from __future__ import annotations

import re

from npu_daemon.simulator.kernel_ir.instructions import ScalarClass

PREFIX = "llvm."
# They say something to the optimiser, which has done its work, or stand before ``unreachable``: left out.
_DROPPED = re.compile(
    r"llvm\.(?:lifetime\.(?:start|end)\.p0|experimental\.noalias\.scope\.decl|assume|donothing|sideeffect|trap|ubsantrap"
    r"|dbg\.(?:value|declare|assign|label))"
)
_MEMORY = re.compile(r"llvm\.(?P<what>memcpy|memmove|memset)(?:\.inline)?(?:\.p0)+\.i64")
_INTEGER = r"\.i\d+"
# Code generation makes instructions of them, not library calls, for each processor that it is done for.
_COMPUTING: tuple[tuple[ScalarClass, str], ...] = (
    (
        ScalarClass.INTEGER,
        rf"(?:[us](?:min|max)|[us](?:add|sub)\.sat|[us](?:add|sub)\.with\.overflow){_INTEGER}",
    ),
    (ScalarClass.MULTIPLY, rf"[us]mul\.with\.overflow{_INTEGER}"),
    (ScalarClass.INTEGER, rf"(?:fsh[lr]|ctpop|ctlz|cttz|abs|bswap|bitreverse){_INTEGER}"),
    (ScalarClass.INTEGER, r"[us]cmp\.i\d+\.i\d+"),
    (
        ScalarClass.FLOAT,
        r"(?:fabs|copysign|minnum|maxnum|minimum|maximum|minimumnum|maximumnum)\.f(?:16|32|64)",
    ),
    (ScalarClass.FLOAT, r"(?:floor|ceil|trunc|rint|nearbyint|roundeven)\.f(?:16|32|64)"),
    (ScalarClass.FLOAT, r"fma\.f(?:32|64)"),
    (ScalarClass.FLOAT, r"is\.fpclass\.f(?:16|32|64)"),
    (ScalarClass.FLOAT_DIVIDE, r"sqrt\.f(?:16|32|64)"),
    (ScalarClass.CONVERT, rf"fpto[us]i\.sat{_INTEGER}\.f(?:32|64)"),
)
_COSTS = tuple((cost, re.compile(rf"llvm\.{pattern}")) for cost, pattern in _COMPUTING)
# C functions that compilers call by themselves; the simulator has its own, which counts.
MEMORY_FUNCTIONS = {
    "memcpy": ("ptr", ("ptr", "ptr", "i64")),
    "memmove": ("ptr", ("ptr", "ptr", "i64")),
    "memset": ("ptr", ("ptr", "i32", "i64")),
    "memcmp": ("i32", ("ptr", "ptr", "i64")),
}
# Parts of classes with virtual functions that a kernel never comes to: there is no heap, and no object of an
# abstract class. A call ends the run.
NEVER_REACHED = frozenset(
    {"__cxa_pure_virtual", "_ZdlPv", "_ZdlPvm", "_ZdlPvSt11align_val_t", "_ZdlPvmSt11align_val_t"}
)

# Of the C library of a host: what the device's compiler does not know, as a function or as an intrinsic.
_LIBRARY_FUNCTION = re.compile(
    r"a?(?:sin|cos|tan)h?[fl]?|atan2[fl]?|(?:exp|exp2|exp10|expm1|log|log2|log10|log1p|logb)[fl]?"
    r"|(?:pow|cbrt|hypot|erfc?|[lt]gamma|l?l?round|l?lrint|fmod|remainder|fdim|ldexp|frexp|modf)[fl]?"
    r"|(?:fabs|floor|ceil|fmax|fmin)[fl]?"
)


def is_library_function(name: str) -> bool:
    """Whether it is a function of ``math.h`` for which there is no instruction."""
    return _LIBRARY_FUNCTION.fullmatch(name) is not None


def is_dropped(name: str) -> bool:
    """Whether calls of an intrinsic are left out."""
    return _DROPPED.fullmatch(name) is not None


def memory_intrinsic(name: str) -> str | None:
    """Return ``memcpy``, ``memmove`` or ``memset`` for an intrinsic that is one of them."""
    found = _MEMORY.fullmatch(name)
    return found["what"] if found else None


def cost_of(name: str) -> ScalarClass | None:
    """Return the class of work of an intrinsic that computes, or ``None`` for one that is not allowed."""
    return next((cost for cost, pattern in _COSTS if pattern.fullmatch(name)), None)
