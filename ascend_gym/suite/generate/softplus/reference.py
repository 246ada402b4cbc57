"""Reference of Softplus."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    x = inputs["x"].astype(np.float64)
    return {"y": np.maximum(x, 0.0) + np.log(1.0 + np.exp(-np.abs(x)))}
