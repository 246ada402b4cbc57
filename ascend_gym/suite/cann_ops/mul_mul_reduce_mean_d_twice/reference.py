"""Reference of MulMulReduceMeanDTwice."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    wide = {name: array.astype(np.float64) for name, array in inputs.items()}
    product = wide["mul0_input0"] * wide["mul0_input1"] * wide["mul1_input0"]
    centred = product - product.mean(axis=1, keepdims=True)
    deviation = np.sqrt((centred**2).mean(axis=1, keepdims=True) + wide["add_y"])
    return {"output": centred / deviation * wide["gamma"] + wide["beta"]}
