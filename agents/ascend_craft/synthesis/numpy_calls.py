"""What calls of numpy come to in the graph: functions, reductions, scans, reshapes, windows."""

# Methods np_NAME do what numpy.NAME does.
# ruff: noqa: D102

from __future__ import annotations

import ast
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from agents.ascend_craft.synthesis.arithmetic import Arithmetic
from agents.ascend_craft.synthesis.graph import (
    Dim,
    Graph,
    Node,
    NotCoveredError,
    Number,
    computed,
    product_of,
)
from agents.ascend_craft.synthesis.ranking import Ranking
from agents.ascend_craft.synthesis.rearranging import Rearranging
from agents.ascend_craft.synthesis.slicing import TensorParts
from agents.ascend_craft.synthesis.windows import Windows, padded, pooled, viewed

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
    "n",
    "kind",
    "a_min",
    "a_max",
    "min",
    "max",
}
_LIKE_REDUCTIONS = {
    *_REDUCTIONS,
    *("mean", "var", "std", "ptp", "any", "all", "count_nonzero", "argmax", "argmin", "cumsum", "cumprod"),
}
"""Functions of which no more than the tensor and the axis are told by their place."""
_SAME = {
    "astype",
    "asarray",
    "array",
    "ascontiguousarray",
    "copy",
    "float64",
    "float32",
    "float",
}


@dataclass(frozen=True)
class Function:
    """A function of the reference's own, or one of numpy's under another name."""

    name: str
    definition: ast.FunctionDef | ast.Lambda | None = None


def _called(
    name: str, function: Callable[..., Any], given: Sequence[Any], keywords: Mapping[str, Any]
) -> Any:
    """Call a function of the rules.

    Raises:
        NotCoveredError: it does not take these arguments.
    """
    try:
        inspect.signature(function).bind(*given, **keywords)
    except TypeError as error:
        raise NotCoveredError(f"{name} with these arguments: {error}") from error
    return function(*given, **keywords)


class SplitNeededError(Exception):
    """An axis has to be split in two before tracing starts again."""

    def __init__(self, axis: str, outer: str, outer_size: int) -> None:
        super().__init__(axis)
        self.axis, self.outer, self.outer_size = axis, outer, outer_size


class NumpyCalls:
    """Makes nodes of calls; arguments and results are nodes, numbers, windows and tuples of these.

    Args:
        graph: where the nodes are.
        outputs: dimensions of the outputs by name.
    """

    def __init__(self, graph: Graph, outputs: Mapping[str, tuple[Dim, ...]]) -> None:
        self.graph, self._outputs = graph, outputs
        self.parts = TensorParts(graph)
        self.arithmetic = Arithmetic(self.parts)
        self.rearranging = Rearranging(self.arithmetic)
        self.ranking = Ranking(self.rearranging)

    def function(self, name: str, given: list[Any], keywords: dict[str, Any]) -> Any:
        """Return what a function of numpy comes to.

        Raises:
            NotCoveredError: it is not covered, or not with these arguments.
        """
        if name == "vectorize" and isinstance(given[0], Function):
            return given[0]
        if name in _SAME and "dtype" in keywords:
            given = [*given, keywords["dtype"]]
        keywords = {key: value for key, value in keywords.items() if key not in ("dtype", "copy")}
        if set(keywords) - _KEYWORDS:
            raise NotCoveredError(f"{name} with {', '.join(sorted(set(keywords) - _KEYWORDS))}=")
        if len(given) > 2 and name in _LIKE_REDUCTIONS:
            raise NotCoveredError(f"{name} with more than an axis, told by its place")
        return _called(name, self._rule(name), given, keywords)

    def _rule(self, name: str) -> Callable[..., Any]:
        """Return what a function of numpy's is done by."""
        if name in _SAME:
            return self._of_type
        if name in _UNARY:
            return partial(self._of_one, _UNARY[name])
        if name in _BINARY or name in _COMPARING:
            return partial(self._of_two, _BINARY.get(name) or _COMPARING[name])
        for owner in (self, self.ranking, self.rearranging, self.arithmetic):
            handler: Callable[..., Any] | None = getattr(owner, f"np_{name}", None)
            if handler is not None:
                return handler
        if name in _REDUCTIONS:
            return partial(self._reduced, _REDUCTIONS[name])
        raise NotCoveredError(f"the function {name}")

    def _of_type(self, value: Any, kind: Any = None, /) -> Any:
        """Return a value of another type: what is not whole is cut, unless it is an input (of places)."""
        name = kind.name if isinstance(kind, Function) else str(kind)
        source = value
        while isinstance(source, Node) and source.op == "as":
            (source,) = source.args
        if not isinstance(source, Node) or not name.startswith(("bool", "int", "uint")):
            return value
        if name.startswith("bool"):
            return self.arithmetic.truth(value)
        known = id(value) in self.ranking.chosen or id(value) in self.parts.progressions
        return value if known or source.op in ("input", "iota") else self.arithmetic.np_trunc(value)

    def _of_one(self, op: str, value: Any, /) -> Any:
        return self.arithmetic.apply(op, value)

    def _of_two(self, op: str, left: Any, right: Any, /) -> Any:
        return self.arithmetic.apply(op, left, right)

    def _reduced(self, kind: str, value: Any, axis: Any = None, keepdims: Any = False, **rest: Any) -> Any:
        if isinstance(value, Windows):
            whole = self._pooled(kind, value, axis)
            if whole is not None:
                return whole
        return self.arithmetic.reduction(kind, value, axis, keepdims)

    def _pooled(self, kind: str, value: Windows, axis: Any) -> Node | None:
        """Return windows of a whole input reduced, which have a program of their own; ``None`` for others."""
        source = value.source
        while source.op == "as":
            (source,) = source.args
        try:
            found = pooled(self.graph, kind, value, axis, next(iter(self._outputs.values())))
        except NotCoveredError:
            return None
        return found if source.op == "input" and len(self._outputs) == 1 else None

    def np_mean(self, value: Any, axis: Any = None, keepdims: Any = False, **rest: Any) -> Any:
        if isinstance(value, Windows):
            whole = self._pooled("mean", value, axis)
            if whole is not None:
                return whole
        total = self._reduced("sum", value, axis, keepdims)
        node = self.arithmetic.node(value)
        count = product_of(
            [self.graph.extent(node.dims[place]) for place in self.arithmetic.axes(node, axis)]
        )
        return self.arithmetic.apply("mul", total, computed("div", Number.of(1.0), count))

    def np_var(self, value: Any, axis: Any = None, keepdims: Any = False, ddof: Any = None) -> Any:
        off = self.arithmetic.apply("sub", value, self.np_mean(value, axis, True))
        square = self.arithmetic.apply("mul", off, off)
        if ddof is None:
            return self.np_mean(square, axis, keepdims)
        node = self.arithmetic.node(value)
        count = product_of(
            [self.graph.extent(node.dims[place]) for place in self.arithmetic.axes(node, axis)]
        )
        share = computed("div", Number.of(1.0), computed("sub", count, ddof))
        return self.arithmetic.apply("mul", self._reduced("sum", square, axis, keepdims), share)

    def np_std(self, value: Any, axis: Any = None, keepdims: Any = False, ddof: Any = None) -> Any:
        return self.arithmetic.apply("sqrt", self.np_var(value, axis, keepdims, ddof))

    def np_ptp(self, value: Any, axis: Any = None, keepdims: Any = False) -> Any:
        return self.arithmetic.apply(
            "sub", *(self._reduced(kind, value, axis, keepdims) for kind in ("max", "min"))
        )

    def np_any(self, value: Any, axis: Any = None, keepdims: Any = False) -> Any:
        return self._reduced("max", self.arithmetic.truth(value), axis, keepdims)

    def np_all(self, value: Any, axis: Any = None, keepdims: Any = False) -> Any:
        return self._reduced("min", self.arithmetic.truth(value), axis, keepdims)

    def np_count_nonzero(self, value: Any, axis: Any = None, keepdims: Any = False) -> Any:
        return self._reduced("sum", self.arithmetic.truth(value), axis, keepdims)

    def np_tensordot(self, left: Any, right: Any, axes: Any = None) -> Any:
        raise NotCoveredError("tensordot: einsum and @ are covered")

    def np_norm(self, value: Any, ord: Any = None, axis: Any = None, keepdims: Any = False) -> Any:
        if ord is not None and ord.value not in (1, 2):
            raise NotCoveredError("norms other than 1 and 2")
        if ord is not None and ord.value == 1:
            return self._reduced("sum", self.arithmetic.apply("abs", value), axis, keepdims)
        return self.arithmetic.apply(
            "sqrt", self._reduced("sum", self.arithmetic.apply("mul", value, value), axis, keepdims)
        )

    def np_cumsum(self, value: Any, axis: Any = None, **rest: Any) -> Any:
        return self._scanned("sum", value, axis)

    def np_cumprod(self, value: Any, axis: Any = None, **rest: Any) -> Any:
        return self._scanned("prod", value, axis)

    def accumulated(self, name: str, value: Any, axis: Any = None, **rest: Any) -> Any:
        """Return what ``numpy.NAME.accumulate`` comes to."""
        kinds = {"maximum": "max", "minimum": "min", "add": "sum", "multiply": "prod"}
        if name not in kinds or rest:
            raise NotCoveredError(f"{name}.accumulate, or other arguments of it than the axis")
        return self._scanned(kinds[name], value, Number.of(0) if axis is None else axis)

    def np_einsum(self, formula: Any, *operands: Any, **rest: Any) -> Any:
        given, arrow, wanted = formula.replace(" ", "").partition("->")
        parts = given.split(",")
        letters = sorted({letter for part in parts for letter in part}, key=given.replace(",", "").index)
        if not arrow or "." in formula or len(parts) != len(operands):
            raise NotCoveredError(f"einsum {formula!r}")
        product: Any = None
        for part, operand in zip(parts, operands, strict=True):
            node = self.arithmetic.node(operand)
            if len(set(part)) != len(part):
                raise NotCoveredError(f"einsum {formula!r}, which takes a diagonal")
            dims = [node.dims[part.index(letter)] if letter in part else () for letter in letters]
            spread = self.graph.node("as", (node,), dims)
            product = spread if product is None else self.arithmetic.apply("mul", product, spread)
        gone = tuple(Number.of(k) for k, letter in enumerate(letters) if letter not in wanted)
        found = self._reduced("sum", product, gone) if gone else product
        left = [letter for letter in letters if letter in wanted]
        return self.graph.node("as", (found,), [found.dims[left.index(letter)] for letter in wanted])

    def _scanned(self, kind: str, value: Any, axis: Any) -> Any:
        node = self.arithmetic.node(value)
        (place,) = self.arithmetic.axes(node, axis)
        if len(node.dims[place]) != 1:
            raise NotCoveredError("scans over joined axes")
        if node.op == "flip" and node.extra == place:
            inner = self.graph.node("scan", node.args, node.dims, (kind, node.dims[place][0], True))
            return self.graph.node("flip", (inner,), node.dims, place)
        return self.graph.node("scan", (node,), node.dims, (kind, node.dims[place][0], False))

    def np_reshape(self, value: Any, *shape: Any) -> Any:
        node = self.arithmetic.node(value)
        extents = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple) else shape
        axes = list(node.axes)
        sizes = [self.graph.axis_size[axis] for axis in axes]
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
        return self.graph.node("as", (node,), dims)

    def np_squeeze(self, value: Any, axis: Any = None) -> Any:
        node = self.arithmetic.node(value)
        return self.graph.node("as", (node,), [dim for dim in node.dims if dim])

    def np_take_along_axis(self, value: Any, index: Any, axis: Any) -> Any:
        if isinstance(index, Node) and id(index) in self.ranking.chosen:
            return self._at_ranks(self.arithmetic.node(value), *self.ranking.chosen[id(index)])
        node, at = self.arithmetic.node(value), self.arithmetic.node(index)
        (place,) = self.arithmetic.axes(node, axis)
        if place != len(node.dims) - 1 or at.op not in ("as", "input") or at.dims[place]:
            raise NotCoveredError("take_along_axis other than one element of each row")
        return self._picked(node, at, node.dims[place][0])

    def _at_ranks(self, node: Node, ranked: Node, values: Node) -> Node:
        """Return a tensor at the places of what was sorted: itself, or what it is the negative of."""
        if node is ranked:
            return values
        if ranked.op == "neg" and ranked.args[0] is node:
            return self.arithmetic.apply("neg", values)  # type: ignore[no-any-return]
        raise NotCoveredError("a tensor at the places of another one that was sorted")

    def _picked(self, node: Node, at: Node, axis: str) -> Node:
        """Push the choice of one element down to the inputs."""
        if axis not in node.axes:
            return node
        dims = tuple(() if axis in dim else dim for dim in node.dims)
        if node.op == "input":
            return self.graph.node("pick", (node, at), dims, axis)
        if node.op in ("reduce", "scan", "pool", "flip"):
            raise NotCoveredError(f"one element of a {node.op}")
        return self.graph.node(
            node.op, [self._picked(each, at, axis) for each in node.args], dims, node.extra
        )

    def np_pad(self, value: Any, width: Any, mode: Any = "constant", constant_values: Any = None) -> Any:
        if mode in ("edge", "reflect"):
            return self.rearranging.continued(self.arithmetic.node(value), width, reflected=mode == "reflect")
        return padded(self.arithmetic.node(value), width, mode, constant_values)

    def np_sliding_window_view(self, value: Any, window_shape: Any, axis: Any = None) -> Windows:
        windows = value if isinstance(value, Windows) else Windows(self.arithmetic.node(value), {}, 0.0)
        return viewed(windows, window_shape, self.arithmetic.axes(windows.source, axis))

    def np_outer(self, left: Any, right: Any) -> Node:
        a, b = self.arithmetic.node(left), self.arithmetic.node(right)
        column = self.graph.node("as", (a,), (*a.dims, ()))
        return self.arithmetic.apply("mul", column, self.graph.node("as", (b,), ((), *b.dims)))  # type: ignore[no-any-return]

    def np_matmul(self, left: Any, right: Any) -> Any:
        a, b = self.arithmetic.node(left), self.arithmetic.node(right)
        if len(b.dims) == 1:
            return self._reduced("sum", self.arithmetic.apply("mul", a, b), Number.of(-1))
        a = self.graph.node("as", (a,), (*a.dims, ()))
        b = self.graph.node("as", (b,), (*b.dims[:-2], *([()] if len(a.dims) > 2 else []), *b.dims[-2:]))
        return self._reduced("sum", self.arithmetic.apply("mul", a, b), Number.of(-2))

    def np_dot(self, left: Any, right: Any) -> Any:
        return self.np_matmul(left, right)

    def np_argmax(self, value: Any, axis: Any = None, keepdims: Any = False) -> Any:
        return self.ranking.best_place("max", value, axis, keepdims)

    def np_argmin(self, value: Any, axis: Any = None, keepdims: Any = False) -> Any:
        return self.ranking.best_place("min", value, axis, keepdims)
