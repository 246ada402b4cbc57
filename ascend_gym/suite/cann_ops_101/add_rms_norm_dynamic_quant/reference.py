"""Reference of AddRmsNormDynamicQuant."""

from __future__ import annotations

from typing import Any

import numpy as np

from ascend_gym.suite.reference_formulas import rms_norm_of_sum


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    total, _, normed = rms_norm_of_sum(inputs, attributes["epsilon"])
    results = {"x": total}
    for number in "12":
        smooth = normed * inputs[f"smooth_scale{number}"].astype(np.float64)
        scale = np.abs(smooth).max(axis=-1, keepdims=True) / 127.0
        results |= {f"y{number}": smooth / scale, f"scale{number}": scale}
    return results
