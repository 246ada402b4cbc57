"""What calls of numpy come to in the graph: functions, reductions, scans, reshapes, windows."""

from __future__ import annotations

import ast
import math
from dataclasses import dataclass
from typing import Any

from agents.ascend_craft.synthesis.graph import (
    Dim,
    Graph,
    Node,
    NotCoveredError,
    Number,
    computed,
    product_of,
)
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


class SplitNeededError(Exception):
    """An axis has to be split in two before tracing starts again."""

    def __init__(self, axis: str, outer: str, outer_size: int) -> None:
        super().__init__(axis)
        self.axis, self.outer, self.outer_size = axis, outer, outer_size


class NumpyCalls:
    """Makes nodes of calls; arguments and results are nodes, numbers, windows and tuples of these."""

    def __init__(self) -> None:
        self._graph = Graph()
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
        handler = getattr(self, f"_np_{name}", None)
        if handler is not None:
            return handler(*given, **keywords)
        if name in _REDUCTIONS:
            return self._reduced(_REDUCTIONS[name], *given, **keywords)
        raise NotCoveredError(f"the function {name}")

    def _node(self, value: Any) -> Node:
        if isinstance(value, Number):
            return self._graph.number(value)
        if isinstance(value, tuple) and len(value) == 1:
            inner = self._node(value[0])
            return self._graph.node("as", (inner,), [(), *inner.dims])
        if isinstance(value, Windows):
            raise NotCoveredError("padding and windows that something else than one reduction is made of")
        if not isinstance(value, Node):
            raise NotCoveredError(f"{type(value).__name__} where a tensor is expected")
        return value

    def _apply(self, op: str, *values: Any) -> Any:
        if all(isinstance(each, Number) for each in values):
            return computed(op, *values)
        if op == "pow" and isinstance(values[1], Number):
            return self._power(self._node(values[0]), values[1])
        return self._graph.elementwise(op, *(self._node(each) for each in values))

    def _power(self, base: Node, exponent: Number) -> Any:
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
        nodes = [self._node(each) for each in (test, yes, no)]
        return self._graph.elementwise("where", *nodes)

    def _axes(self, node: Node, axis: Any) -> tuple[int, ...]:
        if axis is None:
            return tuple(range(len(node.dims)))
        given = axis if isinstance(axis, tuple) else (axis,)
        return tuple(sorted(int(each.value) % len(node.dims) for each in given))

    def _reduced(self, kind: str, value: Any, axis: Any = None, keepdims: Any = False, **rest: Any) -> Any:
        if isinstance(value, Windows):
            return pooled(self._graph, kind, value, axis, next(iter(self._outputs.values())))
        node, places = self._node(value), self._axes(self._node(value), axis)
        gone = tuple(name for place in places for name in node.dims[place])
        kept = tuple(() if k in places else dim for k, dim in enumerate(node.dims))
        shape = kept if keepdims else tuple(dim for k, dim in enumerate(kept) if k not in places)
        if not gone:
            return self._graph.node("as", (node,), shape)
        return self._graph.node("reduce", (node,), shape, (kind, gone))

    def _np_mean(self, value: Any, axis: Any = None, keepdims: Any = False, **rest: Any) -> Any:
        if isinstance(value, Windows):
            return pooled(self._graph, "mean", value, axis, next(iter(self._outputs.values())))
        total = self._reduced("sum", value, axis, keepdims)
        node = self._node(value)
        count = product_of([self._graph.extent(node.dims[place]) for place in self._axes(node, axis)])
        return self._apply("mul", total, computed("div", Number.of(1.0), count))

    def _np_var(self, value: Any, axis: Any = None, keepdims: Any = False, **rest: Any) -> Any:
        off = self._apply("sub", value, self._np_mean(value, axis, True))
        return self._np_mean(self._apply("mul", off, off), axis, keepdims)

    def _np_std(self, value: Any, axis: Any = None, keepdims: Any = False, **rest: Any) -> Any:
        return self._apply("sqrt", self._np_var(value, axis, keepdims))

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
            if [letter for letter in letters if letter in part] != list(part):
                raise NotCoveredError(f"einsum {formula!r}, which transposes")
            dims = [node.dims[part.index(letter)] if letter in part else () for letter in letters]
            spread = self._graph.node("as", (node,), dims)
            product = spread if product is None else self._apply("mul", product, spread)
        if [letter for letter in letters if letter in wanted] != list(wanted):
            raise NotCoveredError(f"einsum {formula!r}, which transposes")
        gone = tuple(Number.of(k) for k, letter in enumerate(letters) if letter not in wanted)
        return self._reduced("sum", product, gone) if gone else product

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
        if node.op == "flip" and node.extra == place:
            return node.args[0]
        return self._graph.node("flip", (node,), node.dims, place)

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

    def _indexed(self, node: Node, keys: tuple[Any, ...]) -> Node:
        dims: list[Dim] = []
        place = 0
        for key in keys:
            if key is None:
                dims.append(())
            elif key is Ellipsis:
                keep = len(node.dims) - sum(each is not None and each is not Ellipsis for each in keys)
                dims += list(node.dims[place : place + keep])
                place += keep
            elif key == slice(None, None, None):
                dims.append(node.dims[place])
                place += 1
            elif isinstance(key, slice) and isinstance(key.step, Number) and key.step.value == -1:
                if place != len(dims):
                    raise NotCoveredError("a reversed axis behind new ones")
                node = self._np_flip(node, Number.of(place))
                dims.append(node.dims[place])
                place += 1
            elif isinstance(key, Number) and key.literal and not node.dims[place]:
                place += 1  # the only element of an extent of 1
            else:
                raise NotCoveredError("an index other than :, None, and 0 where the extent is 1")
        return self._graph.node("as", (node,), [*dims, *node.dims[place:]])

    def _np_pad(self, value: Any, width: Any, mode: Any = "constant", constant_values: Any = None) -> Windows:
        return padded(self._node(value), width, mode, constant_values)

    def _np_sliding_window_view(self, value: Any, window_shape: Any, axis: Any = None) -> Windows:
        windows = value if isinstance(value, Windows) else Windows(self._node(value), {}, 0.0)
        return viewed(windows, window_shape, self._axes(windows.source, axis))
