"""Reference of InstanceNorm."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    x = inputs["x"].astype(np.float64)

    mean = x.mean(axis=(2, 3), keepdims=True)
    variance = ((x - mean) ** 2).mean(axis=(2, 3), keepdims=True)
    return {"y": (x - mean) / np.sqrt(variance + attributes["epsilon"])}
