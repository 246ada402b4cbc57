"""Reference of HingeLoss."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    p = inputs["predictions"].astype(np.float64)
    t = inputs["targets"].astype(np.float64)
    return {"loss": np.mean(np.maximum(0.0, 1.0 - p * t)).reshape(1)}
