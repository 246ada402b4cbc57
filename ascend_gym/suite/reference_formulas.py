"""Formulas that several references share; everything is computed in float64."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np


def rms_norm_of_sum(inputs: Mapping[str, Any], epsilon: float) -> tuple[Any, Any, Any]:
    """Normalise ``x1 + x2`` by its root mean square along the last axis.

    Returns:
        The sum, the reciprocal of its root mean square, and the normalised sum times ``gamma``.
    """
    total = _sum(inputs)
    scale = 1.0 / np.sqrt((total**2).mean(axis=-1, keepdims=True) + epsilon)
    return total, scale, total * scale * inputs["gamma"].astype(np.float64)


def layer_norm_of_sum(inputs: Mapping[str, Any], epsilon: float) -> tuple[Any, Any, Any, Any]:
    """Normalise ``x1 + x2``, plus ``bias`` where there is one, by mean and deviation along the last axis.

    Returns:
        The sum, its mean, the reciprocal of its deviation, the normalised sum times ``gamma`` plus ``beta``.
    """
    total = _sum(inputs)
    if "bias" in inputs:
        total = total + inputs["bias"].astype(np.float64)
    mean = total.mean(axis=-1, keepdims=True)
    scale = 1.0 / np.sqrt(total.var(axis=-1, keepdims=True) + epsilon)
    normed = (total - mean) * scale * inputs["gamma"].astype(np.float64) + inputs["beta"].astype(np.float64)
    return total, mean, scale, normed


def grid_corners(value: Any, side: int, x: Any, y: Any) -> tuple[Any, Any, Any, Any]:
    """Return the values of a square grid at the four points around each sample, 0 outside of the grid.

    Args:
        value: shape (batch, side * side, head, channel).
        side: points of the grid along one axis.
        x: column of each sample, shape (batch, query, head, point); ``y`` likewise its row.
        y: see ``x``.

    Returns:
        Values above left, above right, below left and below right: (batch, query, head, point, channel) each.
    """
    batches, _, heads, channels = value.shape
    grid = value.reshape(batches, side, side, heads, channels)
    padded = np.pad(grid, ((0, 0), (1, 1), (1, 1), (0, 0), (0, 0)))
    batch, _, head, _ = np.ogrid[:batches, :1, :heads, :1]
    left, top = np.floor(x).astype(int) + 1, np.floor(y).astype(int) + 1
    around = [padded[batch, top + down, left + right, head] for down in (0, 1) for right in (0, 1)]
    return around[0], around[1], around[2], around[3]


def _sum(inputs: Mapping[str, Any]) -> Any:
    return inputs["x1"].astype(np.float64) + inputs["x2"].astype(np.float64)
