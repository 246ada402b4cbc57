"""Reference of Softmax."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    x = inputs["x"].astype(np.float64)
    terms = np.exp(x - x.max(axis=-1, keepdims=True))
    return {"y": terms / terms.sum(axis=-1, keepdims=True)}
