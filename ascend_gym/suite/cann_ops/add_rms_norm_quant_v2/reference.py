"""Reference of AddRmsNormQuantV2: the int8 values before they are rounded."""

from __future__ import annotations

from typing import Any

import numpy as np


def rms_norm(inputs: dict[str, Any], epsilon: float) -> tuple[Any, Any, Any]:
    """Return the sum, its reciprocal root mean square along the last axis, and the normalised sum."""
    total = inputs["x1"].astype(np.float64) + inputs["x2"].astype(np.float64)
    scale = 1.0 / np.sqrt((total**2).mean(axis=-1, keepdims=True) + epsilon)
    return total, scale, total * scale * inputs["gamma"].astype(np.float64)


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    total, _, normed = rms_norm(inputs, attributes["epsilon"])
    scaled = (normed + inputs["bias"].astype(np.float64)) / inputs["scales1"].astype(np.float64)
    return {"y1": np.clip(scaled + inputs["zero_points1"], -128.0, 127.0), "x": total}
