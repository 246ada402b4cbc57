"""Reference of RoiAlignRotatedGrad for aligned clockwise boxes: each sample spreads over four points."""

from __future__ import annotations

from typing import Any

import numpy as np


def spread(gradient: Any, share: Any, y: float, x: float) -> None:
    """Add ``share`` (channels) to the points of ``gradient`` (height, width, channels) around (y, x)."""
    height, width = gradient.shape[:2]
    if not (-1.0 <= y <= height and -1.0 <= x <= width):
        return
    y, x = min(max(y, 0.0), height - 1.0), min(max(x, 0.0), width - 1.0)
    top, left = int(y), int(x)
    for row, row_weight in ((top, 1.0 - (y - top)), (top + 1, y - top)):
        for column, column_weight in ((left, 1.0 - (x - left)), (left + 1, x - left)):
            if row_weight * column_weight > 0.0:
                gradient[row, column] += share * row_weight * column_weight


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    gradient = np.zeros(attributes["y_grad_shape"])
    bins = (attributes["pooled_h"], attributes["pooled_w"])
    samples = attributes["sampling_ratio"]
    for box, shares in zip(
        inputs["rois"].astype(np.float64).T, inputs["x_grad"].astype(np.float64), strict=True
    ):
        x, y, width, height = box[1:5] * attributes["spatial_scale"]
        cosine, sine = np.cos(-box[5]), np.sin(-box[5])
        for row, column in np.ndindex(bins[0] * samples, bins[1] * samples):
            down = ((row + 0.5) / (bins[0] * samples) - 0.5) * height
            right = ((column + 0.5) / (bins[1] * samples) - 0.5) * width
            at_y = down * cosine - right * sine + y - 0.5
            at_x = down * sine + right * cosine + x - 0.5
            share = shares[row // samples, column // samples] / samples**2
            spread(gradient[round(box[0])], share, at_y, at_x)
    return {"y_grad": gradient}
