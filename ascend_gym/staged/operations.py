"""The vector instructions of the language: operands, meaning in numpy, and the call of Ascend C."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

VECTOR = "v"  # a buffer of the type of dst
SCALAR = "s"
MASK = "m"  # a buffer of bits (u8)
OTHER = "o"  # a buffer of another type

_F = frozenset({"f32", "f16", "T"})
_N = _F | {"i32"}

WHOLE_BYTES = 256
"""Compare and Select take whole repeats of this size: buffers have room for the count rounded up."""

_SYMBOLS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
_COMPARISONS: dict[str, Callable[..., Any]] = {
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
}


@dataclass(frozen=True)
class Operation:
    """One instruction.

    Attributes:
        operands: kinds of what stands between ``dst`` and the count.
        types: element types of ``dst``.
        meaning: numpy function of the operands, given as arrays and numbers of ``count`` elements.
        call: the call of Ascend C, over ``{dst}``, ``{0}``, ``{1}`` .., ``{n}`` and ``{type}``.
        writes: elements that it writes; ``None`` for all ``count``.
        accumulates: whether it reads ``dst`` too.
        whole: whether it works on whole repeats, so that buffers need room for the count rounded up.
        reduces: whether its second operand is room to work in, of which nothing is read.
        bits: whether it writes one bit for each element.
        notes: a sentence for people and prompts.
        unit: what ``count`` is a multiple of.
    """

    operands: str
    types: frozenset[str]
    meaning: Callable[..., Any]
    call: str
    writes: int | None = None
    accumulates: bool = False
    whole: bool = False
    reduces: bool = False
    bits: bool = False
    notes: str = ""
    unit: int = 1

    @property
    def operand_names(self) -> tuple[str, ...]:
        """What ``notes`` call the operands: buffers ``a`` and ``b``, numbers ``s`` and ``t``."""
        buffers, numbers = iter("ab"), iter("st")
        if self.reduces:
            buffers = iter(("a", "work"))
        names = {SCALAR: numbers, MASK: iter(("bits",))}
        return tuple(next(names.get(kind, buffers)) for kind in self.operands)


def _binary(function: Callable[..., Any], name: str, result: str, types: frozenset[str] = _N) -> Operation:
    call = f"{name}({{dst}}, {{0}}, {{1}}, {{n}})"
    return Operation("vv", types, function, call, notes=f"dst = {result}")


def _scalar(function: Callable[..., Any], name: str, result: str, types: frozenset[str] = _N) -> Operation:
    call = f"{name}({{dst}}, {{0}}, {{1}}, {{n}})"
    return Operation("vs", types, function, call, notes=f"dst = {result}")


def _unary(function: Callable[..., Any], name: str, result: str) -> Operation:
    return Operation("v", _F, function, f"{name}({{dst}}, {{0}}, {{n}})", notes=f"dst = {result}")


def _reduction(function: Callable[..., Any], name: str, what: str) -> Operation:
    call = f"{name}({{dst}}, {{0}}, {{1}}, {{n}})"
    note = f"dst[0] = {what} of a; work has n // 4 + 128 elements at least"
    return Operation("vv", _F, function, call, writes=1, reduces=True, notes=note)


def _comparison(mode: str, function: Callable[..., Any], *, scalar: bool) -> Operation:
    name = "CompareScalar" if scalar else "Compare"
    call = f"{name}({{dst}}, {{0}}, {{1}}, CMPMODE::{mode.upper()}, {{whole}})"
    kinds = OTHER + (SCALAR if scalar else OTHER)
    note = f"one bit of dst an element: a {_SYMBOLS[mode]} {'s' if scalar else 'b'}"
    return Operation(kinds, frozenset({"u8"}), function, call, whole=True, bits=True, notes=note)


def _sum(a: Any, _: Any) -> Any:
    return np.add.reduce(a, dtype=np.float32).astype(a.dtype)


OPERATIONS: dict[str, Operation] = {
    "add": _binary(np.add, "Add", "a + b"),
    "sub": _binary(np.subtract, "Sub", "a - b"),
    "mul": _binary(np.multiply, "Mul", "a * b"),
    "div": _binary(np.divide, "Div", "a / b", _F),
    "vmax": _binary(np.maximum, "Max", "max(a, b)"),
    "vmin": _binary(np.minimum, "Min", "min(a, b)"),
    "adds": _scalar(np.add, "Adds", "a + s"),
    "muls": _scalar(np.multiply, "Muls", "a * s"),
    "maxs": _scalar(np.maximum, "Maxs", "max(a, s)"),
    "mins": _scalar(np.minimum, "Mins", "min(a, s)"),
    "leaky_relu": _scalar(
        lambda a, s: np.where(a >= 0, a, a * s), "LeakyRelu", "a where it is not negative, else a * s", _F
    ),
    "exp": _unary(np.exp, "Exp", "exp(a)"),
    "ln": _unary(np.log, "Ln", "log(a)"),
    "sqrt": _unary(np.sqrt, "Sqrt", "sqrt(a)"),
    "abs": _unary(np.abs, "Abs", "|a|"),
    "relu": _unary(lambda a: np.maximum(a, a.dtype.type(0)), "Relu", "max(a, 0)"),
    "muladd": Operation(
        "vv",
        _F,
        lambda a, b, dst: dst + a * b,
        "MulAddDst({dst}, {0}, {1}, {n})",
        accumulates=True,
        notes="dst += a * b",
    ),
    "axpy": Operation(
        "vs",
        _F,
        lambda a, s, dst: dst + a * s,
        "Axpy({dst}, {0}, {1}, {n})",
        accumulates=True,
        notes="dst += a * s",
    ),
    "fill": Operation("s", _N, lambda s: s, "Duplicate({dst}, {0}, {n})", notes="dst = s"),
    "copy": Operation("v", _N, lambda a: a, "Adds({dst}, {0}, static_cast<{type}>(0), {n})", notes="dst = a"),
    "arange": Operation(
        "s",
        frozenset({"i32"}),
        lambda s: s,
        "CreateVecIndex({dst}, {0}, {n})",
        notes="dst = s, s + 1, ..",
    ),
    "cast": Operation(
        "o",
        frozenset({"f32", "f16", "i32", "T"}),
        lambda a: a,
        "Cast({dst}, {0}, RoundMode::{mode}, {n})",
        notes="dst = a in the type of dst: f16, i32 or T from and to f32, f16 from u8; to i32 it truncates "
        "(CAST_TRUNC), to f16 it rounds (CAST_RINT), to wider types it is exact (CAST_NONE)",
    ),
    "gather": Operation(
        "oos",
        _N,
        lambda a, at, base: a,
        "Gather({dst}, {0}, {1}.ReinterpretCast<uint32_t>(), static_cast<uint32_t>({2}), {n})",
        notes="dst[i] = a at byte b[i] + s; b is an i32 buffer of byte offsets",
    ),
    "select": Operation(
        "mvv",
        _F,
        np.where,
        "Select({dst}, {0}, {1}, {2}, SELMODE::VSEL_TENSOR_TENSOR_MODE, {n})",
        whole=True,
        notes="dst = a where the bit is 1, else b",
    ),
    "selects": Operation(
        "mvs",
        _F,
        np.where,
        "Select({dst}, {0}, {1}, {2}, SELMODE::VSEL_TENSOR_SCALAR_MODE, {n})",
        whole=True,
        notes="dst = a where the bit is 1, else s",
    ),
    "rows_to_lanes": Operation(
        "oss",
        frozenset({"f32"}),
        lambda a, pitch, rows: a,
        "RowsToLanes({dst}, {0}, {1}, {2}, {n})",
        unit=256,
        notes="dst = columns of 16, of t rows of a (the last one again for those that are missing) "
        "that begin s elements apart; n is a multiple of 256",
    ),
    "lanes_to_rows": Operation(
        "os",
        frozenset({"f32"}),
        lambda a, step: a,
        "LanesToRows({dst}, {0}, {1}, {n})",
        unit=256,
        notes="dst = 16 rows of n // 16, of every s-th column of 16 in a; n is a multiple of 256",
    ),
    "reduce_sum": _reduction(_sum, "ReduceSum", "the sum"),
    "reduce_max": _reduction(lambda a, _: np.maximum.reduce(a), "ReduceMax", "the maximum"),
    "reduce_min": _reduction(lambda a, _: np.minimum.reduce(a), "ReduceMin", "the minimum"),
    **{f"compare_{mode}": _comparison(mode, each, scalar=False) for mode, each in _COMPARISONS.items()},
    **{f"compares_{mode}": _comparison(mode, each, scalar=True) for mode, each in _COMPARISONS.items()},
}
"""Instructions by name."""
