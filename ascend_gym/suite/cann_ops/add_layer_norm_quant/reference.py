"""Reference of AddLayerNormQuant, dynamic: the int8 values before they are rounded."""

from __future__ import annotations

from typing import Any

import numpy as np

from ascend_gym.suite.reference_formulas import layer_norm_of_sum


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    total, _, _, normed = layer_norm_of_sum(inputs, attributes["epsilon"])
    outputs = {"x": total}
    for number in ("1", "2"):
        smoothed = normed * inputs[f"scales{number}"].astype(np.float64)
        scale = np.abs(smoothed).max(axis=-1) / 127.0
        outputs |= {f"y{number}": smoothed / scale[:, np.newaxis], f"out_scales{number}": scale}
    return outputs
