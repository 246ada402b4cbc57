"""Windows of padded tensors, and their reductions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agents.ascend_craft.synthesis.graph import Dim, Graph, Node, NotCoveredError, Number


@dataclass(frozen=True)
class Windows:
    """Windows of a padded tensor: what ``sliding_window_view`` gives, before it is reduced.

    Attributes:
        source: the tensor.
        dims: for each dimension with windows: kernel, stride and padding before and after.
        fill: value of the padding.
        viewed: whether the windows have been taken.
    """

    source: Node
    dims: Mapping[int, tuple[Number, Number, Number, Number]]
    fill: float
    viewed: bool = False


def padded(node: Node, width: Any, mode: Any, constant_values: Any) -> Windows:
    """Return a tensor with borders, told for each dimension.

    Raises:
        NotCoveredError: they are not filled with a constant.
    """
    fill = 0.0 if constant_values is None else constant_values.value
    if mode != "constant" or len(width) != len(node.dims):
        raise NotCoveredError("padding other than by a constant, told for each dimension")
    dims = {
        place: (Number.of(1), Number.of(1), before, after)
        for place, (before, after) in enumerate(width)
        if not (before.literal and before.value == 0 and after.literal and after.value == 0)
    }
    return Windows(node, dims, fill)


def viewed(windows: Windows, window_shape: Any, places: Sequence[int]) -> Windows:
    """Return the windows over some dimensions.

    Raises:
        NotCoveredError: there are windows already, or borders elsewhere.
    """
    kernels = window_shape if isinstance(window_shape, tuple) else (window_shape,)
    if len(places) != len(kernels) or windows.viewed:
        raise NotCoveredError("windows of windows")
    dims = dict(windows.dims)
    for place, kernel in zip(places, kernels, strict=True):
        _, stride, before, after = dims.get(place, (None, Number.of(1), Number.of(0), Number.of(0)))
        dims[place] = (kernel, stride, before, after)
    if set(dims) != set(places):
        raise NotCoveredError("padding of dimensions without windows")
    return replace(windows, dims=dims, viewed=True)


def strided(windows: Windows, keys: tuple[Any, ...]) -> Windows:
    """Return every so many of the windows.

    Raises:
        NotCoveredError: the index is another one than steps.
    """
    dims = dict(windows.dims)
    keys = tuple(key for key in keys if key is not Ellipsis)
    for place, key in enumerate(keys):
        if not isinstance(key, slice):
            raise NotCoveredError("an index into windows")
        if key.step is not None:
            if place not in dims:
                raise NotCoveredError("strides of dimensions without windows")
            kernel, _, before, after = dims[place]
            dims[place] = (kernel, key.step, before, after)
    return replace(windows, dims=dims)


def pooled(graph: Graph, kind: str, windows: Windows, axis: Any, shape: Sequence[Dim]) -> Node:
    """Return the reduction of all windows.

    Args:
        graph: takes the node.
        kind: of the reduction.
        windows: what is reduced.
        axis: the dimensions that are.
        shape: dimensions of the outcome, from which those with windows are taken.

    Raises:
        NotCoveredError: other dimensions than those of the windows, or windows over others than the last.
    """
    source, count = windows.source, len(windows.dims)
    rank = len(source.dims)
    given = axis if isinstance(axis, tuple) else (axis,)
    places = sorted(int(each.value) % (rank + count) for each in given)
    ordered = sorted(windows.dims)
    if not windows.viewed or places != list(range(rank, rank + count)):
        raise NotCoveredError("a reduction of other dimensions than all of the windows")
    if ordered != list(range(rank - count, rank)):
        raise NotCoveredError("windows over other dimensions than the last ones")
    dims = list(source.dims)
    for place in ordered:
        dims[place] = shape[place]
    extra = (kind, tuple(windows.dims[place] for place in ordered), windows.fill)
    return graph.node("pool", (source,), dims, extra)
