"""Reference of Lamb."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    p = inputs["param"].astype(np.float64)
    g = inputs["grad"].astype(np.float64)

    beta1, beta2, step = attributes["beta1"], attributes["beta2"], attributes["step"]
    m = beta1 * inputs["m"].astype(np.float64) + (1.0 - beta1) * g
    v = beta2 * inputs["v"].astype(np.float64) + (1.0 - beta2) * g**2
    update = (m / (1.0 - beta1**step)) / (np.sqrt(v / (1.0 - beta2**step)) + attributes["epsilon"])

    trust = np.sqrt(np.sum(p**2)) / np.sqrt(np.sum(update**2))
    return {"param_out": p - attributes["rate"] * trust * update, "m_out": m, "v_out": v}
