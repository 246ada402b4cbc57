"""Reference of AddRmsNormQuantV2: the int8 values before they are rounded."""

from __future__ import annotations

from typing import Any

import numpy as np

from ascend_gym.suite.reference_formulas import rms_norm_of_sum


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    total, _, normed = rms_norm_of_sum(inputs, attributes["epsilon"])
    scaled = (normed + inputs["bias"].astype(np.float64)) / inputs["scales1"].astype(np.float64)
    return {"y1": np.clip(scaled + inputs["zero_points1"], -128.0, 127.0), "x": total}
