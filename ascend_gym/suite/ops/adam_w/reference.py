"""Reference of AdamW (Loshchilov, Hutter 2019) with bias correction."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    var, mean, square, grad = (inputs[name].astype(np.float64) for name in ("var", "m", "v", "grad"))
    beta1, beta2, step = attributes["beta1"], attributes["beta2"], attributes["step"]
    mean = beta1 * mean + (1 - beta1) * grad
    square = beta2 * square + (1 - beta2) * grad * grad
    root = np.sqrt(square / (1 - beta2**step)) + attributes["epsilon"]
    update = attributes["lr"] * mean / (1 - beta1**step) / root
    var = var * (1 - attributes["lr"] * attributes["weight_decay"]) - update
    return {"var_out": var, "m_out": mean, "v_out": square}
