"""Reference of MaxPool3DWithArgmaxV2 without padding: places count the elements of one channel."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    x = inputs["x"]
    starts = [
        np.arange(0, extent - reach, stride)
        for extent, reach, stride in zip(x.shape[2:], _reach(attributes), attributes["strides"], strict=True)
    ]
    steps = [
        np.arange(size) * dilation
        for size, dilation in zip(attributes["ksize"], attributes["dilation"], strict=True)
    ]
    d, h, w = (
        start.reshape(_at(axis)) + step.reshape(_at(axis + 3))
        for axis, (start, step) in enumerate(zip(starts, steps, strict=True))
    )
    places = ((d * x.shape[3] + h) * x.shape[4] + w).reshape(*map(len, starts), -1)
    windows = x.reshape(*x.shape[:2], -1)[..., places]
    largest = windows.argmax(axis=-1)
    argmax = np.take_along_axis(np.broadcast_to(places, windows.shape), largest[..., None], axis=-1)[..., 0]
    return {"y": windows.max(axis=-1), "argmax": argmax}


def _reach(attributes: dict[str, Any]) -> list[int]:
    """Return how far the last element of a window lies from its first, by axis."""
    pairs = zip(attributes["ksize"], attributes["dilation"], strict=True)
    return [(size - 1) * dilation for size, dilation in pairs]


def _at(axis: int) -> list[int]:
    return [-1 if other == axis else 1 for other in range(6)]
