"""Reference of DynamicQuantUpdateScatter along axis 1: the int8 values before they are rounded."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    smoothed = inputs["updates"].astype(np.float64) * inputs["smooth_scales"].astype(np.float64)
    scale = np.abs(smoothed).max(axis=-1, keepdims=True) / 127.0
    var, var_scale = inputs["var"].astype(np.float64), inputs["var_scale"].astype(np.float64)
    for batch, start in enumerate(inputs["indices"]):
        rows = slice(start, start + smoothed.shape[1])
        var[batch, rows], var_scale[batch, rows] = smoothed[batch] / scale[batch], scale[batch]
    return {"var": var, "var_scale": var_scale}
