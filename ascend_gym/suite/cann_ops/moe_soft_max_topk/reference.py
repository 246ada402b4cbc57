"""Reference of MoeSoftMaxTopk."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    x = inputs["x"].astype(np.float64)
    weights = np.exp(x - x.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    indices = np.argsort(-weights, axis=-1, kind="stable")[:, : attributes["k"]]
    return {"y": np.take_along_axis(weights, indices, axis=-1), "indices": indices}
