"""Reference of LayerNorm."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    x = inputs["x"].astype(np.float64)

    mean = x.mean(axis=-1, keepdims=True)
    variance = x.var(axis=-1, keepdims=True)
    return {"y": (x - mean) / np.sqrt(variance + attributes["epsilon"]) * inputs["gamma"] + inputs["beta"]}
