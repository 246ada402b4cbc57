"""Reference of HuberLoss."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    p = inputs["predictions"].astype(np.float64)
    t = inputs["targets"].astype(np.float64)

    error = np.abs(p - t)
    delta = attributes["delta"]
    terms = np.where(error < delta, 0.5 * error**2, delta * (error - 0.5 * delta))
    return {"loss": terms.mean().reshape(1)}
