"""Reference of Selu."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    x = inputs["x"].astype(np.float64)
    return {"y": 1.0507009873554805 * np.where(x > 0.0, x, 1.6732632423543772 * (np.exp(x) - 1.0))}
