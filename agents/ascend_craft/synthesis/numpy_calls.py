"""What calls of numpy come to in the graph: functions, reductions, scans, reshapes, windows."""

from __future__ import annotations

import ast
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from agents.ascend_craft.synthesis.graph import Dim, Node, NotCoveredError, Number, computed, product_of
from agents.ascend_craft.synthesis.ranking import Ranking
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


class NumpyCalls(Ranking):
    """Makes nodes of calls; arguments and results are nodes, numbers, windows and tuples of these."""

    def __init__(self) -> None:
        super().__init__()
        self._outputs: dict[str, tuple[Dim, ...]] = {}

    def _function(self, name: str, given: list[Any], keywords: dict[str, Any]) -> Any:
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
        handler: Callable[..., Any] | None = getattr(self, f"_np_{name}", None)
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
            return self._truth(value)
        known = id(value) in self._chosen or id(value) in self._progressions
        return value if known or source.op in ("input", "iota") else self._np_trunc(value)

    def _of_one(self, op: str, value: Any, /) -> Any:
        return self._apply(op, value)

    def _of_two(self, op: str, left: Any, right: Any, /) -> Any:
        return self._apply(op, left, right)

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

    def _accumulated(self, name: str, value: Any, axis: Any = None, **rest: Any) -> Any:
        kinds = {"maximum": "max", "minimum": "min", "add": "sum", "multiply": "prod"}
        if name not in kinds or rest:
            raise NotCoveredError(f"{name}.accumulate, or other arguments of it than the axis")
        return self._scanned(kinds[name], value, Number.of(0) if axis is None else axis)

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

    def _np_squeeze(self, value: Any, axis: Any = None) -> Any:
        node = self._node(value)
        return self._graph.node("as", (node,), [dim for dim in node.dims if dim])

    def _np_take_along_axis(self, value: Any, index: Any, axis: Any) -> Any:
        if isinstance(index, Node) and id(index) in self._chosen:
            return self._at_ranks(self._node(value), *self._chosen[id(index)])
        node, at = self._node(value), self._node(index)
        (place,) = self._axes(node, axis)
        if place != len(node.dims) - 1 or at.op not in ("as", "input") or at.dims[place]:
            raise NotCoveredError("take_along_axis other than one element of each row")
        return self._picked(node, at, node.dims[place][0])

    def _at_ranks(self, node: Node, ranked: Node, values: Node) -> Node:
        """Return a tensor at the places of what was sorted: itself, or what it is the negative of."""
        if node is ranked:
            return values
        if ranked.op == "neg" and ranked.args[0] is node:
            return self._apply("neg", values)  # type: ignore[no-any-return]
        raise NotCoveredError("a tensor at the places of another one that was sorted")

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
