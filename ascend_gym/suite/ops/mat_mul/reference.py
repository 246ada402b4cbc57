"""Reference of MatMul."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    wide = np.int32 if inputs["a"].dtype == np.int8 else np.float64
    product = inputs["a"].astype(np.float64) @ inputs["b"].astype(np.float64)
    return {"c": product.astype(wide)}
