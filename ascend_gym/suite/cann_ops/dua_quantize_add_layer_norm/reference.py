"""Reference of DuaQuantizeAddLayerNorm: the int8 values before they are rounded."""

from __future__ import annotations

from typing import Any

import numpy as np

from ascend_gym.suite.reference_formulas import layer_norm_of_sum


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    total, _, _, normed = layer_norm_of_sum(inputs, attributes["epsilon"])
    outputs = {"x": total}
    for number in ("1", "2"):
        scaled = normed / inputs[f"scales{number}"].astype(np.float64)
        values = scaled + inputs[f"zero_points{number}"].astype(np.float64)
        outputs[f"y{number}"] = np.clip(values, -128.0, 127.0)
    return outputs
