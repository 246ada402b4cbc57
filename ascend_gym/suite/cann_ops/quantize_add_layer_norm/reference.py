"""Reference of QuantizeAddLayerNorm: the int8 values before they are rounded."""

from __future__ import annotations

from typing import Any

import numpy as np

from ascend_gym.suite.reference_formulas import layer_norm_of_sum


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    total, _, _, normed = layer_norm_of_sum(inputs, attributes["epsilon"])
    values = normed / inputs["scales"].astype(np.float64) + inputs["zero_points"].astype(np.float64)
    return {"y": np.clip(values, -128.0, 127.0), "x": total}
