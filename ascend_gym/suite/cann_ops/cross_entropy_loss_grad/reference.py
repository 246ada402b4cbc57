"""Reference of CrossEntropyLossGrad without smoothing, for the mean and no target to ignore."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    target = inputs["target"]
    chosen = inputs["weight"].astype(np.float64)[target]
    scale = float(inputs["grad_loss"][0]) * chosen / chosen.sum()
    gradient = np.exp(inputs["log_prob"].astype(np.float64)) * scale[:, np.newaxis]
    gradient[np.arange(target.size), target] -= scale
    return {"x_grad": gradient}
