"""Reference of MatmulLeaky."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    product = inputs["a"].astype(np.float64) @ inputs["b"].astype(np.float64) + inputs["bias"]
    return {"c": np.where(product > 0, product, 0.125 * product)}
