"""Reference of MultiScaleDeformableAttentionGrad, one square level; queries are the last axis of samples."""

from __future__ import annotations

from typing import Any

import numpy as np

from ascend_gym.suite.reference_formulas import grid_corners


def spread(shape: tuple[int, ...], side: int, x: Any, y: Any, shares: Any) -> Any:
    """Add ``shares`` (batch, query, head, point, channel) to the grid points around each sample."""
    batches, _, heads, channels = shape
    padded = np.zeros((batches, side + 2, side + 2, heads, channels))
    batch, _, head, _ = np.ogrid[:batches, :1, :heads, :1]
    left, top = np.floor(x).astype(int) + 1, np.floor(y).astype(int) + 1
    right, down = (x - np.floor(x))[..., np.newaxis], (y - np.floor(y))[..., np.newaxis]
    for row, row_weight in ((0, 1 - down), (1, down)):
        for column, weight in ((0, 1 - right), (1, right)):
            np.add.at(padded, (batch, top + row, left + column, head), shares * row_weight * weight)
    return padded[:, 1:-1, 1:-1].reshape(shape)


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    side = int(inputs["value_spatial_shapes"][0, 0])
    places = np.moveaxis(inputs["sampling_locations"][:, :, 0].astype(np.float64) * side - 0.5, -1, 1)
    x, y = places[:, :, :, :, 0], places[:, :, :, :, 1]
    right, down = (x - np.floor(x))[..., np.newaxis], (y - np.floor(y))[..., np.newaxis]
    near, far, below, beyond = grid_corners(inputs["value"].astype(np.float64), side, x, y)
    weights = np.moveaxis(inputs["attention_weights"][:, :, 0].astype(np.float64), -1, 1)
    gradient = inputs["grad_output"].astype(np.float64).reshape(*x.shape[:3], 1, -1)
    sampled = (near * (1 - right) + far * right) * (1 - down) + (below * (1 - right) + beyond * right) * down
    along_x = (far - near) * (1 - down) + (beyond - below) * down
    along_y = (below - near) * (1 - right) + (beyond - far) * right
    moves = np.stack(
        [(gradient * along).sum(axis=-1) * weights * side for along in (along_x, along_y)], axis=4
    )
    return {
        "grad_value": spread(inputs["value"].shape, side, x, y, gradient * weights[..., np.newaxis]),
        "grad_sampling_locations": np.moveaxis(moves, 1, -1)[:, :, np.newaxis],
        "grad_attention_weights": np.moveaxis((gradient * sampled).sum(axis=-1), 1, -1)[:, :, np.newaxis],
    }
