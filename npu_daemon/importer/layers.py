"""Adaptation layers: what hand-written aclnn functions of cann-ops do around a kernel, by operator.

The example of an operator calls an aclnn function. Most of these functions are generated and pass their
arguments on unchanged. A hand-written one (``op_host/aclnn_*.cpp``) may first reorder axes, drop
arguments or turn an array into a tensor. A ``Layer`` repeats these steps, so that the kernel gets the same
arguments as on the device. Examples also leave outputs unchecked: ``references`` computes those that are
defined.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ascend_gym.core.errors import OperatorFormatError
from ascend_gym.core.records import AttributeValue
from ascend_gym.suite.inputs import Array
from npu_daemon.importer.record import CallArgument

Arrange = Callable[[Sequence[CallArgument]], Sequence[CallArgument]]
Layout = Callable[[Array], Array]

_PADDED_RANK = 4


@dataclass(frozen=True)
class Layer:
    """Steps between the arguments of an aclnn call and those of its kernel.

    Attributes:
        arrange: converts arguments of the call to arguments in the order of the definition.
        layouts: reordering of axes by parameter name, for inputs and outputs alike.
        attributes: attributes that the function sets itself.
    """

    arrange: Arrange = tuple
    layouts: Mapping[str, Layout] = field(default_factory=dict)
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)

    def shape(self, name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of a parameter as the kernel sees it."""
        if name not in self.layouts:
            return shape
        return self.array(name, np.broadcast_to(np.uint8(0), shape)).shape

    def array(self, name: str, array: Array) -> Array:
        """Return an array as the kernel sees it, in the shape that ``shape`` gives."""
        layout = self.layouts.get(name)
        return array if layout is None else np.ascontiguousarray(layout(array))


def layer_of(op_type: str) -> Layer:
    """Return the layer of an operator; the identity unless the operator is listed."""
    return _LAYERS.get(op_type, Layer())


def permuted(*axes: int) -> Layout:
    """Return the layout that transposes the axes into this order; it rejects arrays of other rank.

    Raises:
        OperatorFormatError: the returned layout raises it for arrays of other rank.
    """

    def layout(array: Array) -> Array:
        if array.ndim != len(axes):
            raise OperatorFormatError(
                f"main.cpp calls the aclnn function with {array.ndim} axes; only {len(axes)} are understood"
            )
        moved: Array = array.transpose(axes)
        return moved

    return layout


def _order(*positions: int) -> Arrange:
    """Return the arrangement that takes the arguments at these positions, in this order."""
    return lambda arguments: [arguments[position] for position in positions]


def _without(*positions: int) -> Arrange:
    return lambda arguments: [each for index, each in enumerate(arguments) if index not in positions]


def _named(argument: CallArgument, *names: str) -> CallArgument:
    """Return a numeric mode of the call by the name of the kernel's attribute."""
    return CallArgument(kind="string", value=names[int(argument.value)])


def _updated(argument: CallArgument, result: CallArgument) -> CallArgument:
    """Return an input that the kernel updates in place, for the call's separate result."""
    tensor = argument.tensors[0].model_copy(update={"number": result.tensors[0].number})
    return argument.model_copy(update={"tensors": (tensor,)})


def _paddings_of_all_axes(arguments: Sequence[CallArgument]) -> list[CallArgument]:
    """(grad, self, padding, out): paddings of the last axes become pairs for all axes, in order."""
    grad, tensor, padding, out = arguments
    rank = max(len(tensor.tensors[0].shape), _PADDED_RANK)
    pairs = [padding.value[index : index + 2] for index in range(0, len(padding.value), 2)]
    every = [[0, 0]] * (rank - len(pairs)) + pairs[::-1]
    return [grad, CallArgument(kind="ints", value=[extent for pair in every for extent in pair]), out]


def _with_mode(mode: str) -> Arrange:
    """Return the arrangement of a padding gradient whose kernel takes the padding mode."""

    def arrange(arguments: Sequence[CallArgument]) -> list[CallArgument]:
        grad, pairs, out = _paddings_of_all_axes(arguments)
        contiguous = CallArgument(kind="bool", value=True)
        return [grad, pairs, CallArgument(kind="string", value=mode), contiguous, out]

    return arrange


def _embedding_bag(arguments: Sequence[CallArgument]) -> list[CallArgument]:
    weight, indices, offsets, by_frequency, mode, sparse, weights, last, padding, *outputs = arguments
    chosen = _named(mode, "sum", "mean", "max")
    return [weight, indices, offsets, weights, chosen, by_frequency, sparse, last, padding, *outputs]


def _grid_sampler_grad(arguments: Sequence[CallArgument]) -> list[CallArgument]:
    grad, x, grid, interpolation, padding, align, _, dx, dgrid = arguments
    chosen = _named(interpolation, "bilinear", "nearest")
    return [grad, x, grid, chosen, _named(padding, "zeros", "border", "reflection"), align, dx, dgrid]


def _loss_reduction(arguments: Sequence[CallArgument]) -> list[CallArgument]:
    *tensors, reduction, out = arguments
    return [*tensors, _named(reduction, "none", "mean", "sum"), out]


def _index_add(arguments: Sequence[CallArgument]) -> list[CallArgument]:
    x, axis, index, source, alpha, out = arguments
    return [_updated(x, out), source, index, index, alpha, axis]


def _scatter_add(arguments: Sequence[CallArgument]) -> list[CallArgument]:
    x, _, index, source, out = arguments
    return [_updated(x, out), source, index, index]


def _scatter_elements(arguments: Sequence[CallArgument]) -> list[CallArgument]:
    """Move the first axis last, because the kernel works on the last axis."""
    x, axis, index, source, reduction, out = arguments
    if axis.value != 0:
        raise OperatorFormatError(f"main.cpp scatters along axis {axis.value}; only axis 0 is understood")
    last = CallArgument(kind="int", value=-1)
    return [_updated(x, out), index, source, last, _named(reduction, "none", "add", "mul")]


def _average_pool_grad(arguments: Sequence[CallArgument]) -> list[CallArgument]:
    grad, x, kernel, stride, padding, *rest = arguments
    extents = CallArgument(kind="ints", value=list(x.tensors[0].shape))
    three = [_three_extents(argument) for argument in (kernel, stride, padding)]
    return [extents, grad, *three, *rest]


def _three_extents(argument: CallArgument) -> CallArgument:
    value = argument.value * 3 if len(argument.value) == 1 else argument.value
    return argument.model_copy(update={"value": value})


def _fake_quant(arguments: Sequence[CallArgument]) -> list[CallArgument]:
    """Repeat one scale and one zero point for each row."""
    x, scale, zero_point, _, *rest = arguments
    rows = x.tensors[0].shape[0]
    axis = CallArgument(kind="int", value=0)
    return [x, _repeated(scale, rows), _repeated(zero_point, rows), axis, *rest]


def _repeated(argument: CallArgument, count: int) -> CallArgument:
    return argument.model_copy(update={"tensors": argument.tensors * count, "kind": "scalars"})


def _merged_channels_last(array: Array) -> Array:
    """N, C, D, H, W becomes 1, D, H, W, N * C."""
    return _depth_first(array)[np.newaxis]


def _depth_first(array: Array) -> Array:
    """N, C, D, H, W (or without N) becomes D, H, W, N * C."""
    *outer, depth, height, width = array.shape
    result: Array = array.reshape(math.prod(outer), depth, height, width).transpose(1, 2, 3, 0)
    return result


def _ranked(array: Array) -> Array:
    """Put axes of extent 1 first, up to the rank that the padding kernels work on."""
    return array.reshape((1,) * (_PADDED_RANK - array.ndim) + array.shape)


def _as_nchw(array: Array) -> Array:
    """Put axes of extent 1 last, up to the rank that the normalisation kernel works on."""
    return array.reshape(array.shape + (1,) * (4 - array.ndim))


def _channels_last(array: Array) -> Array:
    """N, C, ... becomes N, ..., C."""
    return np.moveaxis(array, 1, -1)


def _with_rows(array: Array) -> Array:
    """N, C, L becomes N, C, 1, L."""
    return np.expand_dims(array, 2)


def _first_axis_last(array: Array) -> Array:
    result: Array = array.swapaxes(0, -1)
    return result


def _sorted(array: Array) -> Array:
    return np.sort(array, axis=-1, kind="stable")


def _sort_order(array: Array) -> Array:
    return np.argsort(array, axis=-1, kind="stable")


_CHANNELS_LAST = permuted(0, 2, 3, 1)
_CHANNELS_LAST_3D = permuted(0, 2, 3, 4, 1)
_PAD_GRADIENT = Layer(arrange=_paddings_of_all_axes, layouts={"x": _ranked, "y": _ranked, "z": _ranked})
_SORTED = {"sorted_indices": _sorted, "sorted_index": _sorted, "pos": _sort_order}


# Resizing operators: one scale an axis, 0 or less for none; their kernels expect lists, or the inverse.


def _resize_volume_gradient(arguments: Sequence[CallArgument]) -> list[CallArgument]:
    """(grad, output size, input size, three scales, out): without all three scales, the sizes decide."""
    grad, output_size, input_size, *scales, out = arguments
    given = [float(scale.value) for scale in scales]
    if all(scale > 0 for scale in given):
        return [grad, input_size, _integers([]), _floats(given), out]
    return [grad, input_size, output_size, _floats([0.0] * len(given)), out]


def _resize_bicubic_gradient(arguments: Sequence[CallArgument]) -> list[CallArgument]:
    """(grad, output size, input size, aligned, two scales, out): converted to scales from output to input."""
    grad, output_size, input_size, aligned, scale_h, scale_w, out = arguments
    extents = zip(input_size.value[-2:], output_size.value, (scale_h, scale_w), strict=True)
    scales = [
        _inverse_scale(float(scale.value), wide, narrow, bool(aligned.value))
        for wide, narrow, scale in extents
    ]
    return [grad, aligned, *(CallArgument(kind="float", value=scale) for scale in scales), out]


def _resize_bilinear(arguments: Sequence[CallArgument]) -> list[CallArgument]:
    """(x, size, aligned, two scales, out): scales are inverted, if given."""
    x, size, aligned, *scales, out = arguments
    given = [float(scale.value) for scale in scales]
    resized = x.tensors[0].shape[2:] != out.tensors[0].shape[2:]
    if all(scale > 0 for scale in given) and any(scale != 1.0 for scale in given):
        chosen = [1.0 / scale for scale in given]
    else:
        chosen = [0.0, 0.0] if all(scale == 1.0 for scale in given) and resized else [1.0, 1.0]
    return [x, size, aligned, _floats(chosen), out]


def _resize_linear(arguments: Sequence[CallArgument]) -> list[CallArgument]:
    """(x, size, aligned, scale, out): the scale is inverted, or 0 if not given."""
    x, size, aligned, scale, out = arguments
    given = float(scale.value)
    return [x, size, aligned, CallArgument(kind="float", value=1.0 / given if given > 0 else 0.0), out]


def _inverse_scale(scale: float, wide: int, narrow: int, aligned: bool) -> float:
    if aligned:
        return (wide - 1) / (narrow - 1) if narrow > 1 else 0.0
    return 1.0 / scale if scale > 0 else wide / narrow


def _floats(values: Sequence[float]) -> CallArgument:
    return CallArgument(kind="floats", value=list(values))


def _integers(values: Sequence[int]) -> CallArgument:
    return CallArgument(kind="ints", value=list(values))


_LAYERS: dict[str, Layer] = {
    "AdaptiveAvgPool3dGrad": Layer(layouts={"y_grad": _depth_first, "x_grad": _depth_first}),
    "AdaptiveAvgPool3d": Layer(layouts={"x": _CHANNELS_LAST_3D, "y": _CHANNELS_LAST_3D}),
    "AdaptiveMaxPool3DGrad": Layer(arrange=_order(1, 0, 2, 3)),
    "ApplyAdamWV2": Layer(arrange=_order(0, 1, 2, 4, 5, 3, 6, 7, 8, 9, 10, 11, 12)),
    "AvgPool3D": Layer(
        layouts={"x": _CHANNELS_LAST_3D, "y": _CHANNELS_LAST_3D}, attributes={"data_format": "NDHWC"}
    ),
    "AvgPool3DGrad": Layer(
        arrange=_average_pool_grad,
        layouts={"grads": _merged_channels_last, "output": _merged_channels_last},
        attributes={"data_format": "NDHWC"},
    ),
    "BatchNormV3": Layer(
        arrange=_order(0, 1, 2, 3, 4, 7, 6, 5, 8, 9, 10), layouts={"x": _as_nchw, "y": _as_nchw}
    ),
    "CircularPadGrad": _PAD_GRADIENT,
    "EmbeddingBag": Layer(arrange=_embedding_bag),
    "FakeQuantAffineCachemask": Layer(arrange=_fake_quant),
    "GatherV3": Layer(arrange=_order(0, 2, 1, 3)),
    "GridSampler2DGrad": Layer(
        arrange=_grid_sampler_grad,
        layouts={"grad": _CHANNELS_LAST, "x": _CHANNELS_LAST, "dx": _CHANNELS_LAST},
    ),
    "GroupNormGrad": Layer(arrange=_order(0, 2, 3, 1, 4, 8, 10, 11, 12)),
    "HistogramV2": Layer(arrange=_order(0, 2, 3, 1, 4)),
    "InplaceIndexAddWithSorted": Layer(arrange=_index_add, layouts=_SORTED),
    "LayerNormGradV3": Layer(arrange=_order(0, 1, 4, 3, 5, 8, 9, 10)),
    "LayerNormV4": Layer(arrange=_without(8)),
    "MSELossV2": Layer(arrange=_loss_reduction),
    "MseLossGradV2": Layer(arrange=lambda arguments: _loss_reduction(_order(1, 2, 0, 3, 4)(arguments))),
    "PadV3GradReplicate": Layer(arrange=_with_mode("edge"), layouts=_PAD_GRADIENT.layouts),
    "PadV3GradReplication": _PAD_GRADIENT,
    "PadV4Grad": Layer(arrange=_with_mode("reflect"), layouts=_PAD_GRADIENT.layouts),
    "ReflectionPad3dGrad": _PAD_GRADIENT,
    "ScatterAddWithSorted": Layer(arrange=_scatter_add, layouts=_SORTED),
    "TopKV3": Layer(arrange=_order(0, 1, 4, 2, 3, 5, 6)),
    "ScatterElementsV2": Layer(
        arrange=_scatter_elements,
        layouts={"var": _first_axis_last, "indices": _first_axis_last, "updates": _first_axis_last},
    ),
    "UpsampleBicubic2dGrad": Layer(arrange=_resize_bicubic_gradient),
    "UpsampleBilinear2d": Layer(arrange=_resize_bilinear),
    "UpsampleLinear1d": Layer(arrange=_resize_linear, layouts={"x": _with_rows}),
    "UpsampleNearest3dGrad": Layer(arrange=_resize_volume_gradient),
    "UpsampleNearestExact3dGrad": Layer(arrange=_resize_volume_gradient),
    "UpsampleNearest": Layer(
        layouts={"x": _channels_last, "y": _channels_last}, attributes={"exact_mode": True}
    ),
}
