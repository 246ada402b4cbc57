"""Reference of MultiScaleDeformableAttnFunction for one square level."""

from __future__ import annotations

from typing import Any

import numpy as np


def corners(value: Any, side: int, x: Any, y: Any) -> tuple[Any, Any, Any, Any]:
    """Return the values (batch, query, head, point, channel) at the four grid points around each sample."""
    batches, _, heads, channels = value.shape
    grid = value.reshape(batches, side, side, heads, channels)
    padded = np.pad(grid, ((0, 0), (1, 1), (1, 1), (0, 0), (0, 0)))
    batch, _, head, _ = np.ogrid[:batches, :1, :heads, :1]
    left, top = np.floor(x).astype(int) + 1, np.floor(y).astype(int) + 1
    around = [padded[batch, top + down, left + right, head] for down in (0, 1) for right in (0, 1)]
    return around[0], around[1], around[2], around[3]


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    side = int(inputs["value_spatial_shapes"][0, 0])
    x, y = np.moveaxis(inputs["sampling_locations"][:, :, :, 0].astype(np.float64) * side - 0.5, -1, 0)
    right, down = (x - np.floor(x))[..., np.newaxis], (y - np.floor(y))[..., np.newaxis]
    near, far, below, beyond = corners(inputs["value"].astype(np.float64), side, x, y)
    sampled = (near * (1 - right) + far * right) * (1 - down) + (below * (1 - right) + beyond * right) * down
    weights = inputs["attention_weights"][:, :, :, 0, :, np.newaxis]
    return {"output": (sampled * weights).sum(axis=3).reshape(*x.shape[:2], -1)}
