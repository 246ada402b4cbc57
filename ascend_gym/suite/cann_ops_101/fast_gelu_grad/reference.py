"""Reference of FastGeluGrad."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    dy, x = inputs["dy"].astype(np.float64), inputs["x"].astype(np.float64)
    e = np.exp(-1.702 * np.abs(x))
    return {"z": dy * (e + 1.702 * x * e + np.exp(1.702 * (x - np.abs(x)))) / (1.0 + e) ** 2}
