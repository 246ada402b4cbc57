"""Reference of AdaptiveAvgPool3dGrad."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    result = inputs["y_grad"].astype(np.float64)
    for axis, size in enumerate(inputs["x"].shape[2:]):
        count = result.shape[axis]
        shares = np.zeros((size, count))
        for window in range(count):
            first, last = window * size // count, -(-(window + 1) * size // count)
            shares[first:last, window] = 1.0 / (last - first)
        result = np.moveaxis(np.tensordot(shares, result, (1, axis)), 0, axis)
    return {"x_grad": result}
