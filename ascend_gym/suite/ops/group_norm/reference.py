"""Reference of GroupNorm."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    x, gamma, beta = (inputs[name].astype(np.float64) for name in ("x", "gamma", "beta"))
    grouped = x.reshape(x.shape[0], attributes["groups"], -1)
    mean, variance = (grouped.mean(axis=-1, keepdims=True), grouped.var(axis=-1, keepdims=True))
    normal = ((grouped - mean) / np.sqrt(variance + attributes["epsilon"])).reshape(x.shape)
    return {"y": normal * gamma[:, None] + beta[:, None]}
