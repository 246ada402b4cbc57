"""Reference of TripletMarginLoss."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    a = inputs["anchor"].astype(np.float64)
    near = np.sqrt(((a - inputs["positive"].astype(np.float64)) ** 2).sum(axis=-1))
    far = np.sqrt(((a - inputs["negative"].astype(np.float64)) ** 2).sum(axis=-1))
    return {"loss": np.mean(np.maximum(near - far + attributes["margin"], 0.0)).reshape(1)}
