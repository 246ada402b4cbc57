"""Reference of Attention."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    q, k, v = (inputs[name].astype(np.float64) for name in ("q", "k", "v"))
    scores = attributes["scale"] * (q @ k.swapaxes(-1, -2))
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return {"y": weights / weights.sum(axis=-1, keepdims=True) @ v}
