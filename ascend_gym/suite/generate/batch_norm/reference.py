"""Reference of BatchNorm."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    x = inputs["x"].astype(np.float64)

    mean = x.mean(axis=(0, 2, 3), keepdims=True)
    variance = ((x - mean) ** 2).mean(axis=(0, 2, 3), keepdims=True)
    normed = (x - mean) / np.sqrt(variance + attributes["epsilon"])
    return {"y": normed * inputs["gamma"][None, :, None, None] + inputs["beta"][None, :, None, None]}
