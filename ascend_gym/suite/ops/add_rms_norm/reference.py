"""Reference of AddRmsNorm."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    x = inputs["x1"].astype(np.float64) + inputs["x2"].astype(np.float64)
    rms = np.sqrt((x * x).mean(axis=-1, keepdims=True) + attributes["epsilon"])
    return {"y": x / rms * inputs["gamma"].astype(np.float64), "x": x}
