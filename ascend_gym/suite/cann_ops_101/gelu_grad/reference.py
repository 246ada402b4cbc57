"""Reference of GeluGrad."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    dy, x = inputs["dy"].astype(np.float64), inputs["x"].astype(np.float64)
    rate = np.sqrt(8.0 / np.pi)
    share = 1.0 / (1.0 + np.exp(-rate * (x + 0.044715 * x**3)))
    return {"z": dy * (share + x * share * (1.0 - share) * rate * (1.0 + 3.0 * 0.044715 * x**2))}
