"""Reference of Sgd."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    p = inputs["param"].astype(np.float64)
    g = inputs["grad"].astype(np.float64)

    momentum = attributes["mu"] * inputs["momentum"].astype(np.float64) + g
    return {"param_out": p - attributes["rate"] * momentum, "momentum_out": momentum}
