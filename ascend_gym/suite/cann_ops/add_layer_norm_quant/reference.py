"""Reference of AddLayerNormQuant, dynamic: the int8 values before they are rounded."""

from __future__ import annotations

from typing import Any

import numpy as np


def layer_norm(inputs: dict[str, Any], epsilon: float) -> tuple[Any, Any, Any, Any]:
    """Return the sum, its mean and reciprocal deviation along the last axis, and the normalised sum."""
    total = inputs["x1"].astype(np.float64) + inputs["x2"].astype(np.float64)
    if "bias" in inputs:
        total = total + inputs["bias"].astype(np.float64)
    mean = total.mean(axis=-1, keepdims=True)
    scale = 1.0 / np.sqrt(total.var(axis=-1, keepdims=True) + epsilon)
    normed = (total - mean) * scale * inputs["gamma"].astype(np.float64) + inputs["beta"].astype(np.float64)
    return total, mean, scale, normed


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    total, _, _, normed = layer_norm(inputs, attributes["epsilon"])
    outputs = {"x": total}
    for number in ("1", "2"):
        smoothed = normed * inputs[f"scales{number}"].astype(np.float64)
        scale = np.abs(smoothed).max(axis=-1) / 127.0
        outputs |= {f"y{number}": smoothed / scale[:, np.newaxis], f"out_scales{number}": scale}
    return outputs
