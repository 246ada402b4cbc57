"""Reference of VectorMotifs."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    a, b = (inputs[name].astype(np.float64) for name in ("x1", "x2"))
    y = (b + 2.0 * a + a * b) * a + b
    y = y + 1.0 / np.sqrt(b) + 1.0 / a + a * a
    y = y * 0.25 * 0.5 + 3.0
    mean = a.mean(axis=1, keepdims=True)
    return {"y": np.maximum(y + mean * b, 0.0) + 0.5}
