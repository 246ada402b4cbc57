"""Reference of GroupNorm."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    x = inputs["x"].astype(np.float64)

    groups = attributes["groups"]
    parts = x.reshape(x.shape[0], groups, -1)
    mean = parts.mean(axis=-1, keepdims=True)
    variance = ((parts - mean) ** 2).mean(axis=-1, keepdims=True)
    normed = ((parts - mean) / np.sqrt(variance + attributes["epsilon"])).reshape(x.shape)
    return {"y": normed * inputs["gamma"][None, :, None, None] + inputs["beta"][None, :, None, None]}
