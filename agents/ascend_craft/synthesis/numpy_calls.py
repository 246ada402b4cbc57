"""What calls of numpy come to in the graph: functions, reductions, scans, reshapes, windows."""

from __future__ import annotations

import ast
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agents.ascend_craft.synthesis.graph import (
    Dim,
    Node,
    NotCoveredError,
    Number,
    computed,
    product_of,
)
from agents.ascend_craft.synthesis.slicing import LOOP, Slicing
from agents.ascend_craft.synthesis.views import ONE, Shift, Term, placed, shifted, simple
from agents.ascend_craft.synthesis.windows import Windows, padded, pooled, viewed

_OPPOSITE = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt", "eq": "ne", "ne": "eq"}
_UNARY = {
    "exp": "exp",
    "log": "log",
    "sqrt": "sqrt",
    "abs": "abs",
    "absolute": "abs",
    "fabs": "abs",
    "tanh": "tanh",
    "negative": "neg",
    "erf": "erf",
    "sin": "sin",
    "cos": "cos",
    "round": "round",
    "rint": "round",
    "around": "round",
}
_BINARY = {
    "add": "add",
    "subtract": "sub",
    "multiply": "mul",
    "divide": "div",
    "true_divide": "div",
    "maximum": "max",
    "minimum": "min",
    "fmax": "max",
    "fmin": "min",
    "power": "pow",
}
_REDUCTIONS = {"sum": "sum", "max": "max", "amax": "max", "min": "min", "amin": "min", "prod": "prod"}
_COMPARING = {
    "less": "lt",
    "less_equal": "le",
    "greater": "gt",
    "greater_equal": "ge",
    "equal": "eq",
    "not_equal": "ne",
}
_KEYWORDS = {
    "axis",
    "keepdims",
    "ord",
    "mode",
    "constant_values",
    "window_shape",
    "ddof",
    "k",
    "shape",
    "newshape",
}
_SAME = {
    "astype",
    "asarray",
    "array",
    "ascontiguousarray",
    "copy",
    "float64",
    "float32",
    "float",
    "broadcast_to",
}


@dataclass(frozen=True)
class Function:
    """A function of the reference's own, or one of numpy's under another name."""

    name: str
    definition: ast.FunctionDef | ast.Lambda | None = None


def _is_zero(node: Node) -> bool:
    """Say whether a node is nothing but zeros, or the number 0."""
    while node.op == "as":
        (node,) = node.args
    return node.op == "number" and node.extra.literal and node.extra.value == 0


class SplitNeededError(Exception):
    """An axis has to be split in two before tracing starts again."""

    def __init__(self, axis: str, outer: str, outer_size: int) -> None:
        super().__init__(axis)
        self.axis, self.outer, self.outer_size = axis, outer, outer_size


class NumpyCalls(Slicing):
    """Makes nodes of calls; arguments and results are nodes, numbers, windows and tuples of these."""

    def __init__(self) -> None:
        super().__init__()
        self._counted = 0
        self._outputs: dict[str, tuple[Dim, ...]] = {}

    def _function(self, name: str, given: list[Any], keywords: dict[str, Any]) -> Any:
        if name == "vectorize" and isinstance(given[0], Function):
            return given[0]
        if name in _SAME:
            return given[0]
        if name in _UNARY:
            return self._apply(_UNARY[name], given[0])
        if name in _BINARY:
            return self._apply(_BINARY[name], *given[:2])
        if name in _COMPARING:
            return self._apply(_COMPARING[name], *given[:2])
        if name == "square":
            return self._apply("mul", given[0], given[0])
        if name == "reciprocal":
            return self._apply("div", Number.of(1.0), given[0])
        if name == "log1p":
            return self._apply("log", self._apply("add", given[0], Number.of(1.0)))
        if name == "expm1":
            return self._apply("sub", self._apply("exp", given[0]), Number.of(1.0))
        if name == "where":
            return self._where(*given)
        if name == "clip":
            return self._apply("min", self._apply("max", given[0], given[1]), given[2])
        keywords = {key: value for key, value in keywords.items() if key not in ("dtype", "copy")}
        if set(keywords) - _KEYWORDS:
            raise NotCoveredError(f"{name} with {', '.join(sorted(set(keywords) - _KEYWORDS))}=")
        handler = getattr(self, f"_np_{name}", None)
        if handler is not None:
            return handler(*given, **keywords)
        if name in _REDUCTIONS:
            return self._reduced(_REDUCTIONS[name], *given, **keywords)
        raise NotCoveredError(f"the function {name}")

    def _node(self, value: Any) -> Node:
        if isinstance(value, (bool, int, float)):
            value = Number.of(float(value))
        if isinstance(value, Number):
            return self._turn(value) if LOOP in value.text else self._graph.number(value)
        if isinstance(value, tuple) and len(value) == 1:
            inner = self._node(value[0])
            return self._graph.node("as", (inner,), [(), *inner.dims])
        if isinstance(value, Windows):
            return self._bordered(value)
        if not isinstance(value, Node):
            raise NotCoveredError(f"{type(value).__name__} where a tensor is expected")
        return value

    def _apply(self, op: str, *values: Any) -> Any:
        if all(isinstance(each, Number) for each in values):
            return computed(op, *values)
        if op == "pow" and isinstance(values[1], Number):
            return self._power(self._node(values[0]), values[1])
        if op == "pow":
            return self._power_of(values[0], self._node(values[1]))
        if op == "mod":
            return self._np_mod(*values)
        if op == "floordiv":
            return self._np_floor(self._apply("div", *values))
        nodes = [self._node(each) for each in values]
        if op == "add" and any(_is_zero(each) for each in nodes):
            zero, other = sorted(nodes, key=lambda each: not _is_zero(each))
            if len(zero.dims) <= len(other.dims):
                return other
        return self._elementwise(op, *(self._counting(each) for each in nodes))

    def _counting(self, node: Node) -> Node:
        """Return the outcome of a comparison as 1 and 0; other nodes as they are."""
        inner = node
        while inner.op == "as":
            (inner,) = inner.args
        if inner.op not in _OPPOSITE:
            return node
        one, zero = (self._graph.number(Number.of(each)) for each in (1.0, 0.0))
        return self._elementwise("where", node, one, zero)

    def _turn(self, number: Number) -> Node:
        """Return a number that differs from turn to turn of a loop."""
        terms, offset = self._without_loops(number)
        return placed(self._graph, Shift((), terms, offset), ())

    def _power_of(self, base: Any, exponent: Node) -> Any:
        """Return a power by the logarithm of its base."""
        if isinstance(base, Number) and base.literal and base.value > 0:
            logarithm: Any = Number.of(math.log(base.value))
        else:
            logarithm = self._apply("log", self._node(base))
        return self._apply("exp", self._apply("mul", logarithm, exponent))

    def _power(self, base: Node, exponent: Number) -> Any:
        if LOOP in exponent.text:
            return self._power_of(base, self._node(exponent))
        power = exponent.value if exponent.literal else None
        if power in (0.5, -0.5):
            root = self._apply("sqrt", base)
            return root if power == 0.5 else self._apply("div", Number.of(1.0), root)
        if power is None or int(power) != power or not 1 <= abs(power) <= 8:
            logarithm = self._apply("log", base)
            return self._apply("exp", self._apply("mul", logarithm, exponent))
        result: Any = base
        for _ in range(int(abs(power)) - 1):
            result = self._apply("mul", result, base)
        return result if power > 0 else self._apply("div", Number.of(1.0), result)

    def _where(self, test: Any, yes: Any, no: Any) -> Node:
        if isinstance(test, (Number, bool)):
            return self._node(yes if (test.value if isinstance(test, Number) else test) else no)
        return self._elementwise(
            "where", self._node(test), *(self._counting(self._node(each)) for each in (yes, no))
        )

    def _axes(self, node: Node, axis: Any) -> tuple[int, ...]:
        if axis is None:
            return tuple(range(len(node.dims)))
        given = axis if isinstance(axis, tuple) else (axis,)
        return tuple(sorted(int(each.value) % len(node.dims) for each in given))

    def _reduced(self, kind: str, value: Any, axis: Any = None, keepdims: Any = False, **rest: Any) -> Any:
        if isinstance(value, Windows):
            whole = self._pooled(kind, value, axis)
            if whole is not None:
                return whole
        node = self._counting(self._node(value))
        places = self._axes(node, axis)
        gone = tuple(name for place in places for name in node.dims[place])
        kept = tuple(() if k in places else dim for k, dim in enumerate(node.dims))
        shape = kept if keepdims else tuple(dim for k, dim in enumerate(kept) if k not in places)
        if not gone:
            return self._graph.node("as", (node,), shape)
        return self._graph.node("reduce", (node,), shape, (kind, gone))

    def _pooled(self, kind: str, value: Windows, axis: Any) -> Node | None:
        """Return windows of a whole input reduced, which have a program of their own; ``None`` for others."""
        source = value.source
        while source.op == "as":
            (source,) = source.args
        try:
            found = pooled(self._graph, kind, value, axis, next(iter(self._outputs.values())))
        except NotCoveredError:
            return None
        return found if source.op == "input" and len(self._outputs) == 1 else None

    def _np_mean(self, value: Any, axis: Any = None, keepdims: Any = False, **rest: Any) -> Any:
        if isinstance(value, Windows):
            whole = self._pooled("mean", value, axis)
            if whole is not None:
                return whole
        total = self._reduced("sum", value, axis, keepdims)
        node = self._node(value)
        count = product_of([self._graph.extent(node.dims[place]) for place in self._axes(node, axis)])
        return self._apply("mul", total, computed("div", Number.of(1.0), count))

    def _np_var(self, value: Any, axis: Any = None, keepdims: Any = False, ddof: Any = None) -> Any:
        off = self._apply("sub", value, self._np_mean(value, axis, True))
        square = self._apply("mul", off, off)
        if ddof is None:
            return self._np_mean(square, axis, keepdims)
        node = self._node(value)
        count = product_of([self._graph.extent(node.dims[place]) for place in self._axes(node, axis)])
        share = computed("div", Number.of(1.0), computed("sub", count, ddof))
        return self._apply("mul", self._reduced("sum", square, axis, keepdims), share)

    def _np_std(self, value: Any, axis: Any = None, keepdims: Any = False, ddof: Any = None) -> Any:
        return self._apply("sqrt", self._np_var(value, axis, keepdims, ddof))

    def _np_ptp(self, value: Any, axis: Any = None, keepdims: Any = False) -> Any:
        return self._apply("sub", *(self._reduced(kind, value, axis, keepdims) for kind in ("max", "min")))

    def _np_any(self, value: Any, axis: Any = None, keepdims: Any = False) -> Any:
        return self._reduced("max", self._truth(value), axis, keepdims)

    def _np_all(self, value: Any, axis: Any = None, keepdims: Any = False) -> Any:
        return self._reduced("min", self._truth(value), axis, keepdims)

    def _np_count_nonzero(self, value: Any, axis: Any = None, keepdims: Any = False) -> Any:
        return self._reduced("sum", self._truth(value), axis, keepdims)

    def _np_hypot(self, left: Any, right: Any) -> Any:
        squares = (self._apply("mul", each, each) for each in (left, right))
        return self._apply("sqrt", self._apply("add", *squares))

    def _np_mod(self, value: Any, divisor: Any) -> Any:
        whole = self._np_floor(self._apply("div", value, divisor))
        return self._apply("sub", value, self._apply("mul", whole, divisor))

    _np_remainder = _np_mod

    def _np_tile(self, value: Any, times: Any) -> Any:
        node = self._node(value)
        counts = times if isinstance(times, tuple) else (times,)
        if len(counts) > len(node.dims) or not all(each.literal for each in counts):
            raise NotCoveredError("tile with more axes, or as often as a shape says")
        for place, count in enumerate(counts, len(node.dims) - len(counts)):
            if count.value > 1:
                node = self._joined([node] * int(count.value), place)
        return node

    def _np_tensordot(self, left: Any, right: Any, axes: Any = None) -> Any:
        raise NotCoveredError("tensordot: einsum and @ are covered")

    def _np_norm(self, value: Any, ord: Any = None, axis: Any = None, keepdims: Any = False) -> Any:
        if ord is not None and ord.value not in (1, 2):
            raise NotCoveredError("norms other than 1 and 2")
        if ord is not None and ord.value == 1:
            return self._reduced("sum", self._apply("abs", value), axis, keepdims)
        return self._apply("sqrt", self._reduced("sum", self._apply("mul", value, value), axis, keepdims))

    def _np_cumsum(self, value: Any, axis: Any = None, **rest: Any) -> Any:
        return self._scanned("sum", value, axis)

    def _np_cumprod(self, value: Any, axis: Any = None, **rest: Any) -> Any:
        return self._scanned("prod", value, axis)

    def _accumulated(self, name: str, value: Any, axis: Any = None) -> Any:
        kinds = {"maximum": "max", "minimum": "min", "add": "sum", "multiply": "prod"}
        if name not in kinds:
            raise NotCoveredError(f"{name}.accumulate")
        return self._scanned(kinds[name], value, Number.of(0) if axis is None else axis)

    def _np_logaddexp(self, left: Any, right: Any) -> Any:
        off = self._apply("neg", self._apply("abs", self._apply("sub", left, right)))
        terms = self._apply("add", self._apply("exp", off), Number.of(1.0))
        return self._apply("add", self._apply("max", left, right), self._apply("log", terms))

    def _np_einsum(self, formula: Any, *operands: Any, **rest: Any) -> Any:
        given, arrow, wanted = formula.replace(" ", "").partition("->")
        parts = given.split(",")
        letters = sorted({letter for part in parts for letter in part}, key=given.replace(",", "").index)
        if not arrow or "." in formula or len(parts) != len(operands):
            raise NotCoveredError(f"einsum {formula!r}")
        product: Any = None
        for part, operand in zip(parts, operands, strict=True):
            node = self._node(operand)
            if len(set(part)) != len(part):
                raise NotCoveredError(f"einsum {formula!r}, which takes a diagonal")
            dims = [node.dims[part.index(letter)] if letter in part else () for letter in letters]
            spread = self._graph.node("as", (node,), dims)
            product = spread if product is None else self._apply("mul", product, spread)
        gone = tuple(Number.of(k) for k, letter in enumerate(letters) if letter not in wanted)
        found = self._reduced("sum", product, gone) if gone else product
        left = [letter for letter in letters if letter in wanted]
        return self._graph.node("as", (found,), [found.dims[left.index(letter)] for letter in wanted])

    def _scanned(self, kind: str, value: Any, axis: Any) -> Any:
        node = self._node(value)
        (place,) = self._axes(node, axis)
        if len(node.dims[place]) != 1:
            raise NotCoveredError("scans over joined axes")
        if node.op == "flip" and node.extra == place:
            inner = self._graph.node("scan", node.args, node.dims, (kind, node.dims[place][0], True))
            return self._graph.node("flip", (inner,), node.dims, place)
        return self._graph.node("scan", (node,), node.dims, (kind, node.dims[place][0], False))

    def _np_flip(self, value: Any, axis: Any = None) -> Any:
        node = self._node(value)
        (place,) = self._axes(node, axis)
        return self._flipped(node, place)

    def _np_reshape(self, value: Any, *shape: Any) -> Any:
        node = self._node(value)
        extents = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple) else shape
        axes = list(node.axes)
        sizes = [self._graph.axis_size[axis] for axis in axes]
        wanted = [int(each.value) for each in extents]
        if -1 in wanted:
            known = math.prod(each for each in wanted if each != -1)
            wanted[wanted.index(-1)] = math.prod(sizes) // known
        dims: list[Dim] = []
        for size, text in zip(wanted, extents, strict=True):
            dim: list[str] = []
            rest = size
            while rest > 1 and axes:
                if rest % sizes[0]:
                    raise SplitNeededError(axes[0], text.text, rest)
                rest //= sizes.pop(0)
                dim.append(axes.pop(0))
            dims.append(tuple(dim))
        return self._graph.node("as", (node,), dims)

    def _np_expand_dims(self, value: Any, axis: Any) -> Any:
        node = self._node(value)
        dims: list[Dim] = list(node.dims)
        dims.insert(int(axis.value) % (len(dims) + 1), ())
        return self._graph.node("as", (node,), dims)

    def _np_squeeze(self, value: Any, axis: Any = None) -> Any:
        node = self._node(value)
        return self._graph.node("as", (node,), [dim for dim in node.dims if dim])

    def _np_take_along_axis(self, value: Any, index: Any, axis: Any) -> Any:
        node, at = self._node(value), self._node(index)
        (place,) = self._axes(node, axis)
        if place != len(node.dims) - 1 or at.op not in ("as", "input") or at.dims[place]:
            raise NotCoveredError("take_along_axis other than one element of each row")
        return self._picked(node, at, node.dims[place][0])

    def _picked(self, node: Node, at: Node, axis: str) -> Node:
        """Push the choice of one element down to the inputs."""
        if axis not in node.axes:
            return node
        dims = tuple(() if axis in dim else dim for dim in node.dims)
        if node.op == "input":
            return self._graph.node("pick", (node, at), dims, axis)
        if node.op in ("reduce", "scan", "pool", "flip"):
            raise NotCoveredError(f"one element of a {node.op}")
        return self._graph.node(
            node.op, [self._picked(each, at, axis) for each in node.args], dims, node.extra
        )

    def _np_pad(self, value: Any, width: Any, mode: Any = "constant", constant_values: Any = None) -> Any:
        if mode in ("edge", "reflect"):
            return self._continued(self._node(value), width, reflected=mode == "reflect")
        return padded(self._node(value), width, mode, constant_values)

    def _np_sliding_window_view(self, value: Any, window_shape: Any, axis: Any = None) -> Windows:
        windows = value if isinstance(value, Windows) else Windows(self._node(value), {}, 0.0)
        return viewed(windows, window_shape, self._axes(windows.source, axis))

    def _continued(self, node: Node, width: Any, *, reflected: bool) -> Node:
        """Return a tensor with its ends repeated, or mirrored, beyond them."""
        for place, (before, after) in enumerate(width):
            if not (before.literal and after.literal):
                raise NotCoveredError("borders as wide as an attribute says that repeat or mirror the ends")
            one, extent = Number.of(1), self._graph.extent(node.dims[place])
            ends = []
            for turn in range(int(before.value), 0, -1):
                ends.append(Number.of(turn if reflected else 0))
            tails = []
            for turn in range(1, int(after.value) + 1):
                back = Number.of(turn + 1 if reflected else 1)
                tails.append(computed("sub", extent, back))
            slices = [slice(at, simple(computed("add", at, one))) for at in (*ends, *tails)]
            parts = [self._sliced(node, place, each) for each in slices]
            if parts:
                node = self._joined([*parts[: len(ends)], node, *parts[len(ends) :]], place)
        return node

    def _np_transpose(self, value: Any, *order: Any) -> Node:
        node = self._node(value)
        given = order[0] if len(order) == 1 and isinstance(order[0], tuple) else order
        places = [int(each.value) for each in given] or list(reversed(range(len(node.dims))))
        return self._graph.node("as", (node,), [node.dims[place] for place in places])

    def _np_swapaxes(self, value: Any, one: Any, other: Any) -> Node:
        node = self._node(value)
        dims = list(node.dims)
        a, b = int(one.value), int(other.value)
        dims[a], dims[b] = dims[b], dims[a]
        return self._graph.node("as", (node,), dims)

    def _np_moveaxis(self, value: Any, source: Any, destination: Any) -> Node:
        node = self._node(value)
        dims = list(node.dims)
        moved = dims.pop(int(source.value) % len(dims))
        dims.insert(int(destination.value) % (len(dims) + 1), moved)
        return self._graph.node("as", (node,), dims)

    def _np_concatenate(self, values: Any, axis: Any = None) -> Node:
        nodes = [self._node(each) for each in values]
        return self._joined(nodes, 0 if axis is None else int(axis.value) % len(nodes[0].dims))

    def _np_stack(self, values: Any, axis: Any = None) -> Node:
        place = Number.of(0) if axis is None else axis
        return self._np_concatenate([self._np_expand_dims(each, place) for each in values], place)

    def _np_split(self, value: Any, parts: Any, axis: Any = None) -> tuple[Node, ...]:
        node = self._node(value)
        place = 0 if axis is None else int(axis.value) % len(node.dims)
        if not isinstance(parts, Number) or not parts.literal:
            raise NotCoveredError("splits other than into a given number of equal parts")
        extent = computed("floordiv", self._graph.extent(node.dims[place]), parts)
        cuts = [computed("mul", extent, Number.of(each)) for each in range(int(parts.value) + 1)]
        return tuple(
            self._sliced(node, place, slice(low, high, None)) for low, high in itertools.pairwise(cuts)
        )

    def _np_roll(self, value: Any, shift: Any, axis: Any = None) -> Node:
        node = self._node(value)
        if axis is None or not shift.whole:
            raise NotCoveredError("roll without an axis")
        (place,) = self._axes(node, axis)
        cut = (
            computed("neg", shift)
            if shift.value < 0
            else computed("sub", self._graph.extent(node.dims[place]), shift)
        )
        parts = [self._sliced(node, place, each) for each in (slice(cut, None), slice(None, cut))]
        return self._joined(parts, place)

    def _np_diff(self, value: Any, axis: Any = None) -> Node:
        node = self._node(value)
        (place,) = self._axes(node, Number.of(-1) if axis is None else axis)
        later, sooner = slice(Number.of(1), None, None), slice(None, Number.of(-1), None)
        both = [self._sliced(node, place, each) for each in (later, sooner)]
        return self._apply("sub", *both)  # type: ignore[no-any-return]

    def _np_take(self, value: Any, index: Any, axis: Any = None) -> Node:
        node = self._node(value)
        if axis is None:
            raise NotCoveredError("take without an axis")
        keys = [slice(None)] * (int(axis.value) % len(node.dims))
        return self._indexed(node, (*keys, index))

    def _np_repeat(self, value: Any, times: Any, axis: Any = None) -> Node:
        """Return a tensor with each element several times."""
        node = self._node(value)
        if axis is None or not isinstance(times, Number):
            raise NotCoveredError("repeat without an axis, or as often as a tensor says")
        (place,) = self._axes(node, axis)
        extent = simple(computed("mul", self._graph.extent(node.dims[place]), times))
        if not node.dims[place]:
            dims = [(self._count(extent),) if k == place else () for k in range(len(node.dims))]
            return self._elementwise("add", node, self._filled(0.0, dims))
        old = self._axis(node, place)
        new = self._graph.axis(old, extent)
        return shifted(self._graph, node, old, Shift((new,), (Term(new, ONE, times),)))

    def _count(self, extent: Number) -> str:
        """Return an axis that no tensor has."""
        self._counted += 1
        name = f"counted|{extent.text}|{self._counted}"
        self._graph.axis_size[name], self._graph.axis_text[name] = int(extent.value), extent.text
        return name

    def _np_arange(self, *given: Any, **rest: Any) -> Node:
        start, stop, step = (Number.of(0), given[0], Number.of(1))
        if len(given) > 1:
            start, stop = given[:2]
        if len(given) > 2:
            step = given[2]
        span = computed("sub", stop, start)
        extent = (
            span
            if step == Number.of(1)
            else computed("floordiv", computed("sub", computed("add", span, step), Number.of(1)), step)
        )
        if not extent.whole:
            raise NotCoveredError("arange of numbers that are not whole")
        axis = self._count(simple(extent))
        return placed(self._graph, Shift((axis,), (Term(axis, step),), start), ((axis,),))

    def _np_outer(self, left: Any, right: Any) -> Node:
        a, b = self._node(left), self._node(right)
        column = self._graph.node("as", (a,), (*a.dims, ()))
        return self._apply("mul", column, self._graph.node("as", (b,), ((), *b.dims)))  # type: ignore[no-any-return]

    def _np_matmul(self, left: Any, right: Any) -> Any:
        a, b = self._node(left), self._node(right)
        if len(b.dims) == 1:
            return self._reduced("sum", self._apply("mul", a, b), Number.of(-1))
        a = self._graph.node("as", (a,), (*a.dims, ()))
        b = self._graph.node("as", (b,), (*b.dims[:-2], *([()] if len(a.dims) > 2 else []), *b.dims[-2:]))
        return self._reduced("sum", self._apply("mul", a, b), Number.of(-2))

    def _np_dot(self, left: Any, right: Any) -> Any:
        return self._np_matmul(left, right)

    def _np_argmax(self, value: Any, axis: Any = None, keepdims: Any = False) -> Any:
        return self._best_place("max", value, axis, keepdims)

    def _np_argmin(self, value: Any, axis: Any = None, keepdims: Any = False) -> Any:
        return self._best_place("min", value, axis, keepdims)

    def _best_place(self, kind: str, value: Any, axis: Any, keepdims: Any) -> Any:
        """Return the first place of an extreme: the least of the places where it is."""
        node = self._node(value)
        if axis is None:
            raise NotCoveredError("the place of an extreme without an axis")
        (place,) = self._axes(node, axis)
        dims = [dim if each == place else () for each, dim in enumerate(node.dims)]
        at = self._iota(self._axis(node, place), dims)
        best = self._reduced(kind, node, axis, True)
        places = self._where(self._apply("eq", node, best), at, Number.of(1.0e9))
        return self._reduced("min", places, axis, keepdims)

    def _np_zeros_like(self, value: Any, **rest: Any) -> Node:
        return self._filled(0.0, self._node(value).dims)

    def _np_ones_like(self, value: Any, **rest: Any) -> Node:
        return self._filled(1.0, self._node(value).dims)

    def _np_full_like(self, value: Any, fill: Any, **rest: Any) -> Node:
        return self._filled(fill.value, self._node(value).dims)

    def _np_zeros(self, shape: Any, **rest: Any) -> Node:
        return self._filled(0.0, self._dims_of(shape))

    def _np_ones(self, shape: Any, **rest: Any) -> Node:
        return self._filled(1.0, self._dims_of(shape))

    def _np_full(self, shape: Any, fill: Any, **rest: Any) -> Node:
        return self._filled(fill.value, self._dims_of(shape))

    _np_empty_like, _np_empty = _np_zeros_like, _np_zeros

    def _filled(self, value: float, dims: Sequence[Dim]) -> Node:
        return self._graph.node("as", (self._graph.number(Number.of(float(value))),), dims)

    def _dims_of(self, shape: Any) -> list[Dim]:
        extents = shape if isinstance(shape, tuple) else (shape,)
        known = {text: axis for axis, text in reversed(self._graph.axis_text.items())}
        texts = [simple(each).text for each in extents]
        found = [
            (known[text],) if text in known else (self._count(each),)
            for text, each in zip(texts, extents, strict=True)
        ]
        return [
            dim if found.index(dim) == at else (self._count(extents[at]),) for at, dim in enumerate(found)
        ]

    def _np_tril(self, value: Any, k: Any = None) -> Node:
        return self._triangle("le", value, k)

    def _np_triu(self, value: Any, k: Any = None) -> Node:
        return self._triangle("ge", value, k)

    def _triangle(self, side: str, value: Any, k: Any) -> Node:
        node = self._node(value)
        rank = len(node.dims)
        row, column = (
            self._iota(
                self._axis(node, place), [dim if each == place else () for each, dim in enumerate(node.dims)]
            )
            for place in (rank - 2, rank - 1)
        )
        limit = row if k is None else self._apply("add", row, k)
        return self._where(self._apply(side, column, limit), node, Number.of(0.0))

    def _np_sign(self, value: Any) -> Any:
        below = self._where(self._apply("lt", value, Number.of(0.0)), Number.of(-1.0), Number.of(0.0))
        return self._where(self._apply("gt", value, Number.of(0.0)), Number.of(1.0), below)

    def _np_floor(self, value: Any) -> Any:
        near = self._apply("round", value)
        return self._apply("sub", near, self._apply("gt", near, value))

    def _np_ceil(self, value: Any) -> Any:
        near = self._apply("round", value)
        return self._apply("add", near, self._apply("lt", near, value))

    def _np_trunc(self, value: Any) -> Any:
        size = self._np_floor(self._apply("abs", value))
        return self._apply("mul", size, self._np_sign(value))

    def _np_logical_and(self, left: Any, right: Any) -> Any:
        return self._apply("mul", *(self._truth(each) for each in (left, right)))

    def _np_logical_or(self, left: Any, right: Any) -> Any:
        return self._apply("max", *(self._truth(each) for each in (left, right)))

    def _np_logical_not(self, value: Any) -> Any:
        return self._apply("sub", Number.of(1.0), self._truth(value))

    def _truth(self, value: Any) -> Node:
        node = self._counting(self._node(value))
        return node if node.op == "where" else self._counting(self._apply_raw("ne", node, Number.of(0.0)))

    def _apply_raw(self, op: str, left: Node, right: Number) -> Node:
        return self._elementwise(op, left, self._graph.number(right))

    def _np_log2(self, value: Any) -> Any:
        return self._apply("mul", self._apply("log", value), Number.of(1.0 / math.log(2.0)))

    def _np_log10(self, value: Any) -> Any:
        return self._apply("mul", self._apply("log", value), Number.of(1.0 / math.log(10.0)))

    def _np_exp2(self, value: Any) -> Any:
        return self._apply("exp", self._apply("mul", value, Number.of(math.log(2.0))))

    def _np_sinh(self, value: Any) -> Any:
        return self._apply("mul", self._apply("sub", *self._both_exp(value)), Number.of(0.5))

    def _np_cosh(self, value: Any) -> Any:
        return self._apply("mul", self._apply("add", *self._both_exp(value)), Number.of(0.5))

    def _both_exp(self, value: Any) -> tuple[Any, Any]:
        return self._apply("exp", value), self._apply("exp", self._apply("neg", value))
