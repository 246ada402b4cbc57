"""Reference of KlDivLoss."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    p = inputs["predictions"].astype(np.float64)
    t = inputs["targets"].astype(np.float64)
    return {"loss": (np.sum(t * (np.log(t) - np.log(p))) / p.shape[0]).reshape(1)}
