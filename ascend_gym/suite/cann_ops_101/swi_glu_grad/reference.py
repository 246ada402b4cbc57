"""Reference of SwiGluGrad."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    dy, x = inputs["y_grad"].astype(np.float64), inputs["x"].astype(np.float64)
    left, right = np.split(x, 2, axis=-1)
    share = 1.0 / (1.0 + np.exp(-left))
    slope = share * (1.0 + left * (1.0 - share))
    return {"x_grad": np.concatenate([dy * right * slope, dy * left * share], axis=-1)}
