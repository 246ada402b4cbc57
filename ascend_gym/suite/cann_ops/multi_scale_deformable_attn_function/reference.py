"""Reference of MultiScaleDeformableAttnFunction for one square level."""

from __future__ import annotations

from typing import Any

import numpy as np

from ascend_gym.suite.reference_formulas import grid_corners


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    side = int(inputs["value_spatial_shapes"][0, 0])
    x, y = np.moveaxis(inputs["sampling_locations"][:, :, :, 0].astype(np.float64) * side - 0.5, -1, 0)
    right, down = (x - np.floor(x))[..., np.newaxis], (y - np.floor(y))[..., np.newaxis]
    near, far, below, beyond = grid_corners(inputs["value"].astype(np.float64), side, x, y)
    sampled = (near * (1 - right) + far * right) * (1 - down) + (below * (1 - right) + beyond * right) * down
    weights = inputs["attention_weights"][:, :, :, 0, :, np.newaxis]
    return {"output": (sampled * weights).sum(axis=3).reshape(*x.shape[:2], -1)}
