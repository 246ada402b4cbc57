"""Reference of LayerNorm."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    x, gamma, beta = (inputs[name].astype(np.float64) for name in ("x", "gamma", "beta"))
    mean = x.mean(axis=-1, keepdims=True)
    rstd = 1.0 / np.sqrt(x.var(axis=-1, keepdims=True) + attributes["epsilon"])
    return {"y": (x - mean) * rstd * gamma + beta, "mean": mean, "rstd": rstd}
