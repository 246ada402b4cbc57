"""Adaptation layers of the resizing operators: sizes and scales (see ``layers``).

The functions take one scale per axis, 0 or less for none; their kernels expect lists, or the inverse.
"""

from __future__ import annotations

from collections.abc import Sequence

from npu_daemon.importer.record import CallArgument


def volume_gradient(arguments: Sequence[CallArgument]) -> list[CallArgument]:
    """(grad, output size, input size, three scales, out): without all three scales, the sizes decide."""
    grad, output_size, input_size, *scales, out = arguments
    given = [float(scale.value) for scale in scales]
    if all(scale > 0 for scale in given):
        return [grad, input_size, _integers([]), _floats(given), out]
    return [grad, input_size, output_size, _floats([0.0] * len(given)), out]


def bicubic_gradient(arguments: Sequence[CallArgument]) -> list[CallArgument]:
    """(grad, output size, input size, aligned, two scales, out): converted to scales from output to input."""
    grad, output_size, input_size, aligned, scale_h, scale_w, out = arguments
    extents = zip(input_size.value[-2:], output_size.value, (scale_h, scale_w), strict=True)
    scales = [
        _inverse_scale(float(scale.value), wide, narrow, bool(aligned.value))
        for wide, narrow, scale in extents
    ]
    return [grad, aligned, *(CallArgument(kind="float", value=scale) for scale in scales), out]


def bilinear(arguments: Sequence[CallArgument]) -> list[CallArgument]:
    """(x, size, aligned, two scales, out): scales are inverted, if given."""
    x, size, aligned, *scales, out = arguments
    given = [float(scale.value) for scale in scales]
    resized = x.tensors[0].shape[2:] != out.tensors[0].shape[2:]
    if all(scale > 0 for scale in given) and any(scale != 1.0 for scale in given):
        chosen = [1.0 / scale for scale in given]
    else:
        chosen = [0.0, 0.0] if all(scale == 1.0 for scale in given) and resized else [1.0, 1.0]
    return [x, size, aligned, _floats(chosen), out]


def linear(arguments: Sequence[CallArgument]) -> list[CallArgument]:
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
