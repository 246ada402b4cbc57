"""Reference of GeGluV3."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    left, right = np.split(inputs["x"].astype(np.float64), 2, axis=-1)
    gelu = _gelu(right)
    return {"y": left * gelu, "gelu": gelu}


def _gelu(x: Any) -> Any:
    return x / (1.0 + np.exp(-np.sqrt(8.0 / np.pi) * (x + 0.044715 * x**3)))
