"""Reference of LayerNormV4."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    x = inputs["x"].astype(np.float64)
    mean = x.mean(axis=-1, keepdims=True)
    scale = 1.0 / np.sqrt(x.var(axis=-1, keepdims=True) + attributes["epsilon"])
    return {"y": (x - mean) * scale * inputs["gamma"] + inputs["beta"], "mean": mean, "rstd": scale}
