"""Reference of InplaceAttnSoftmax."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    x = inputs["x"].astype(np.float64)
    weights = np.exp(x - x.max(axis=-1, keepdims=True))
    return {"x": weights / weights.sum(axis=-1, keepdims=True)}
