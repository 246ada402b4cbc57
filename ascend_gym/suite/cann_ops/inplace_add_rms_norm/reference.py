"""Reference of InplaceAddRmsNorm."""

from __future__ import annotations

from typing import Any

import numpy as np


def rms_norm(inputs: dict[str, Any], epsilon: float) -> tuple[Any, Any, Any]:
    """Return the sum, its reciprocal root mean square along the last axis, and the normalised sum."""
    total = inputs["x1"].astype(np.float64) + inputs["x2"].astype(np.float64)
    scale = 1.0 / np.sqrt((total**2).mean(axis=-1, keepdims=True) + epsilon)
    return total, scale, total * scale * inputs["gamma"].astype(np.float64)


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    total, scale, normed = rms_norm(inputs, attributes["epsilon"])
    return {"x1": normed, "rstd": scale, "x2": total}
